//! What fast runs leave out. One program, since each would be linked with all of the crate.

mod cuts;
mod lone;
