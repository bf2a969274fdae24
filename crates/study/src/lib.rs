//! Studies of our own over the fabric of a site.
//!
//! | file | content |
//! |---|---|
//! | [`acceptance`] | the acceptance plans of operators and of standards, as cases over the site's own settings |
//! | [`faults`] | what a month's failures cost |

#![forbid(unsafe_code)]

pub mod acceptance;
pub mod faults;
