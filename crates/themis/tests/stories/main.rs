//! Themis against rival rules, on random paths and maps. One program, since each would be linked with all of the crate.

#[path = "../common/mod.rs"]
mod common;
mod comparison;
mod path_map;
mod properties;
