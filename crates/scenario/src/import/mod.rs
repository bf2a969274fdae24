//! Scenarios from files of other tools.

pub mod hpcc;
