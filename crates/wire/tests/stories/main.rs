//! Bytes of any kind, and those of another implementation. One program, since each would be linked with all of the crate.

mod any_bytes;
mod scapy;
