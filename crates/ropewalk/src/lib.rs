//! ropewalk

pub mod clock;
pub mod digest;
pub mod interrupt;
pub mod progress;
pub mod results;
pub mod stats;
pub mod summary;
#[cfg(test)]
mod testing;
