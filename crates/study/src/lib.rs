//! Studies of our own over the fabric of a site.
//!
//! | file | content |
//! |---|---|
//! | [`acceptance`] | the acceptance plans of operators and of standards, as cases over the site's own settings |
//! | [`faults`] | what a month's failures cost |
//! | `site` | what the fabric has: racks, queues, thresholds |
//! | `traffic` | flows and settings of a run as `--set` changes of the site's scenario |
//! | `seen` | values of a run |

#![forbid(unsafe_code)]

pub mod acceptance;
pub mod faults;
mod seen;
mod site;
mod traffic;
