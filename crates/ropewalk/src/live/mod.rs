//! Commands that carry real frames: they read the clock, own the ports and obey signals.
//!
//! | file | what it holds |
//! |---|---|
//! | [`io`] | the keys of a port, and ports that are open |
//! | [`clock`] | times since the start |
//! | [`status`] | `status.json`, metrics in the text format of Prometheus, and the decision log |
//! | [`keep`] | the last frames, for a capture file |
//! | [`tor`] | `ropewalk tor`: a software ToR |
//! | [`nic`] | `ropewalk nic`: NICs in front of hosts |

pub mod clock;
pub mod io;
pub mod keep;
pub mod nic;
pub mod status;
pub mod tor;

use lab::failure::Failure;

/// Time after SIGTERM in which frames that are under way still leave. Our choice: longer than any path of a lab.
const DRAIN: std::time::Duration = std::time::Duration::from_millis(100);
/// Time between two writes of the status.
const STATUS: std::time::Duration = std::time::Duration::from_secs(1);
/// Most frames that are read from one port before the others have their turn.
const TURN: usize = 64;

/// A failure of the system.
fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::Asked(format!("{what}: {error}"))
}
