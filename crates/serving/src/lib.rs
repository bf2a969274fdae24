//! Inference serving: requests wait, their prompts are computed, their keys and values (KV) go to another server, and tokens follow.
//!
//! The program knows no fabric. It hands out messages, and learns when they have arrived.
//!
//! | file | task |
//! |---|---|
//! | [`kv`] | bytes of keys and values |
//! | [`models`] | the models of `models/` |
//! | [`compute`] | times of prefills and of steps of decoding |

#![forbid(unsafe_code)]

pub mod compute;
pub mod kv;
pub mod models;
