//! The two ends of the recovery modes whose replies carry a map of arrived packets ([`model::annex::Sack`]).
//!
//! `sender` composes small state machines:
//!
//! | file | state | uses |
//! |---|---|---|
//! | `ring` | the packets that are sent and not acknowledged | |
//! | `flight` | their fate, and the bytes in flight | `ring` |
//! | `age` | their order by time, and losses by age | `flight`, `ring` |
//! | `rack` | losses by the latest arrival, and probes of the tail | |
//! | `beyond` | a recovery, and losses by arrivals beyond ePSN | `flight`, `ring` |
//! | `map` | the last map, and what is new in the next one | |
//! | `messages` | the messages that are not wholly sent | |
//! | `trips` | the round trip of an idle path | |
//! | `probe` | when to ask the receiver for an ACK | `ring`, `trips` |
//! | `timer` | the retransmission timer | |

mod age;
mod beyond;
mod flight;
mod map;
mod messages;
pub mod penalty;
mod probe;
pub(crate) mod rack;
pub mod receiver;
pub mod reply_paths;
mod ring;
pub mod sender;
mod timer;
mod trips;
