//! Is the bus bandwidth of a log what it should be, and if not, why?
//!
//! | file | content |
//! |---|---|
//! | [`read`] | readers: nccl-tests and rccl-tests as text and JSON, NCCL's log, its topology, perftest, counters |
//! | [`log`] | what they find |
//! | [`cluster`] | the cluster: described, from a scenario, or told by logs |
//! | [`expect`] | the expected range of a size |
//! | `case`, `likelihood`, [`suspects`] | a row per suspect, and how well its curve fits |
//! | [`simulate`] | suspects as scenarios, by packets |
//! | [`pairs`] | several logs: the slow node and the slow path |
//! | [`mod@answer`], [`mod@text`], [`mod@page`] | the answer, as text and as a page |

#![forbid(unsafe_code)]

pub mod answer;
mod case;
pub mod cluster;
pub mod expect;
mod likelihood;
pub mod log;
pub mod page;
pub mod pairs;
pub mod read;
pub mod simulate;
pub mod suspects;
pub mod text;

pub use answer::{Answer, Request, Verdict, answer};
pub use log::Input;
pub use page::page;
pub use text::text;
