//! Memory that this process may still take: the least of what the machine has available, what the limits of the process
//! (`ulimit -v`, `ulimit -d`) leave, and what the limits of its control groups leave.

#[cfg(not(target_family = "wasm"))]
mod system;

use std::fmt;

/// The limit that leaves the least memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Available memory of the machine.
    Machine,
    /// Address space of the process: `ulimit -v`, RLIMIT_AS.
    AddressSpace,
    /// Data of the process: `ulimit -d`, RLIMIT_DATA.
    Data,
    /// A control group of the process, or a group above it.
    Group,
    /// The 4 GiB that a WebAssembly module can address.
    Module,
}

/// The limit as the subject of "... has 22 MB left".
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Machine => "this machine",
            Limit::AddressSpace => "the address space of this process (ulimit -v)",
            Limit::Data => "the data segment of this process (ulimit -d)",
            Limit::Group => "the control group of this process (cgroup)",
            Limit::Module => "the memory of this WebAssembly module",
        })
    }
}

/// Memory that this process may still take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that the process may still take.
    pub left: u64,
    /// The limit that leaves the least memory.
    pub limit: Limit,
}

impl Room {
    /// The memory that is left now; `None` if the system does not report it.
    pub fn now() -> Option<Room> {
        rooms().into_iter().min_by_key(|room| room.left)
    }
}

/// The memory that each limit leaves.
#[cfg(not(target_family = "wasm"))]
use system::rooms;

/// The memory that each limit leaves. The memory of a module only grows, so all that it has counts as used.
#[cfg(target_family = "wasm")]
fn rooms() -> Vec<Room> {
    let used = (core::arch::wasm32::memory_size(0) as u64) << 16;
    vec![Room { left: (1 << 32) - used, limit: Limit::Module }]
}

/// An amount of memory in MB or GB.
pub fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_left() {
        if cfg!(target_os = "linux") {
            assert!(Room::now().is_some_and(|room| room.left > 1_000_000));
        }
    }
}
