//! Files of users: read up to a limit, if memory is left for their content, and printed without what a terminal obeys. [`tree`] has JSON and
//! YAML as one tree with lines.

#![forbid(unsafe_code)]

pub mod damage;
pub mod file;
pub mod printable;
pub mod room;
pub mod tree;
