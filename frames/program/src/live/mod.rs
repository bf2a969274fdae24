//! Commands that carry real frames: they read the clock, own the ports and obey signals.
//!
//! | file | what it holds |
//! |---|---|
//! | [`io`] | the keys of a port, and ports that are open |
//! | [`clock`] | times since the start |
//! | [`status`] | `status.json`, metrics in the text format of Prometheus, and the decision log |
//! | [`keep`] | the last frames, for a capture file |
//! | [`carry`] | the loop: frames from the ports to a state machine and back |
//! | [`tor`] | `ropewalk tor`: a software ToR |
//! | [`nic`] | `ropewalk nic`: NICs in front of hosts |

pub mod carry;
pub mod clock;
pub mod io;
pub mod keep;
pub mod nic;
pub mod status;
pub mod tor;

use crate::failure::Failure;

/// A failure of the system.
fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::Asked(format!("{what}: {error}"))
}
