//! The two ends of the recovery modes whose replies carry a map of arrived packets ([`model::annex::Sack`]).
//!
//! The sender composes small state machines, none of which knows another but those named here: `ring` holds the packets and
//! `flight` their fate, `age` orders them by time, `beyond` infers losses from arrivals beyond ePSN, and `probe` measures by
//! `trips`.

mod age;
mod beyond;
mod flight;
mod map;
mod messages;
pub mod penalty;
mod probe;
pub mod receiver;
pub mod reply_paths;
mod ring;
pub mod sender;
mod timer;
mod trips;
