//! The life of one flow: where its completion time went, and what happened to it when. And the critical path of a step.
//!
//! [`Explanation::of`] takes the results of a run and the plan of its scenario. The results may come from a run that
//! has just ended or from a directory. The plan gives the first packet of each message on its queue pair, and the time
//! that a frame takes. A flow's time is divided into pieces that add up to its FCT, to the picosecond ([`account`]).
//! docs/explain.md defines the pieces, and tells which statements are measured and which are inferred.
//!
//! | file | what it holds |
//! |---|---|
//! | [`subject`] | the run that a flow belongs to: read from a directory, or run for the explanation |
//! | [`explanation`] | the parts of an explanation, put together |
//! | [`flow`] | the flow, and how to find it by name |
//! | [`trace`] | the events of its queue pair |
//! | [`cuts`] | the rate cuts of its queue pair, and the feedback that caused them |
//! | [`history`] | the flow with its plan and its events, as the following files read them |
//! | [`account`], [`cause`] | where the time went, and the causes of delay |
//! | [`packets`] | what happened to its packets: retransmissions, reordering, NACKs, queues |
//! | [`lost`] | the links that lost its packets, and why |
//! | [`timeline`] | what happened when, with one line for similar events that follow each other closely |
//! | [`words`] | the explanation as text |
//! | [`step`], [`step_words`] | a step of a job: its critical path, and the path as text |
//! | [`bottleneck`] | the busiest link between two hosts |
//! | [`links`] | what links did, and why a link was paused |
//! | [`deciding`] | what decides a comparison, what it rests on, and whether it survives |

pub mod subject;

mod account;
mod bottleneck;
mod cause;
mod cuts;
pub mod deciding;
mod explanation;
mod failed;
mod flow;
mod history;
mod links;
mod lost;
mod packets;
mod pauses;
mod step;
#[cfg(test)]
mod step_stories;
mod step_words;
#[cfg(test)]
mod stories;
mod timeline;
mod trace;
mod words;

pub use account::{Account, Delay};
pub use bottleneck::Bottleneck;
pub use cause::Cause;
pub use explanation::{Explanation, Unexplained};
pub use flow::{Flow, find};
pub use links::Pauses;
pub use lost::LostOn;
pub use packets::{Feedback, Link, Packets, Rate, Resends, Transit};
pub use step::{Leg, Message, Piece, Spent, Step};
pub use timeline::Line;
