//! The two ends of the recovery modes whose replies carry a map of arrived packets ([`model::annex::Sack`]).

pub mod penalty;
pub mod receiver;
pub mod reply_paths;
pub mod sender;
