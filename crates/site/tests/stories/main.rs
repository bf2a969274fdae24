//! A site's own files, good and damaged. One program, since each would be linked with all of the crate.

mod cabling;
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod real;
mod switches;
