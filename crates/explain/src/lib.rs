//! The life of one flow: where its completion time went, and what happened to it when.
//!
//! [`Explanation::of`] makes it from results alone, whether a run has just ended or was written long ago, and from the plan of
//! the scenario, which says where a message begins on its queue pair and how long a frame takes. A flow's time is
//! cut into pieces that add up to its FCT, to the picosecond ([`account`]); docs/explain.md says what each is and what of it is
//! inferred.
//!
//! | file | what |
//! |---|---|
//! | [`trace`] | the events of its queue pair |
//! | [`account`] | where the time went |
//! | [`packets`] | what became of its packets: retransmissions, arrivals, NACKs, queues |
//! | [`timeline`] | what happened when, with runs of like events in one line |
//! | [`words`] | all of it for people |

pub mod subject;

mod account;
mod cuts;
mod explanation;
mod flow;
mod kept;
mod life;
mod packets;
#[cfg(test)]
mod stories;
mod timeline;
mod trace;
mod words;

pub use account::{Account, Cause};
pub use explanation::{Explanation, Unexplained};
pub use flow::{Flow, find};
pub use kept::Kept;
pub use packets::{Link, Packets, Rate, Resends, Transit};
pub use timeline::Line;
