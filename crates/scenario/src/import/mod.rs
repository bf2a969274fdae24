//! Other tools' files, turned into scenarios.

pub mod hpcc;
