//! The ToR, frame by frame. One program, since each would be linked with all of the crate.

mod config;
mod events;
mod frames;
#[path = "../lab/mod.rs"]
mod lab;
mod learning;
mod safety;
mod switch;
mod themis;
