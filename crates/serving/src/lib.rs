//! Inference serving: requests wait, their prompts are computed, their keys and values (KV) go to another server, and tokens follow.
//!
//! The program knows no fabric. It hands out messages, and learns when they have arrived.
//!
//! | file | task |
//! |---|---|
//! | [`kv`] | bytes of keys and values |
//! | [`models`] | the models of `models/` |
//! | [`compute`] | times of prefills and of steps of decoding |
//! | [`spec`] | what is served, by whom and how |
//! | [`program`] | the program: queues, batches, memory, steps |
//! | `lanes` | which NICs carry a transfer |
//! | `place` | which instance takes a request |
//! | `cache` | prefix caches |
//! | [`network`] | what the program asks of a network |
//! | [`record`] | what became of requests |

#![forbid(unsafe_code)]

mod cache;
pub mod compute;
pub mod kv;
mod lanes;
pub mod models;
pub mod network;
mod place;
pub mod program;
pub mod record;
pub mod spec;

pub use network::{Message, Network};
pub use program::Program;
pub use record::{Parts, Record, Served, Verdict};
pub use spec::Spec;
