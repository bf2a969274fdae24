//! GOAL schedules of LogGOPSim: per rank, operations that send, receive and compute, and their dependencies.
//!
//! A file has one of two forms, which its first bytes tell apart: [`text`] and [`binary`]. Both become a [`Schedule`].

pub mod binary;
mod from_file;
pub mod matching;
pub mod text;

pub use from_file::read;

use super::order::order;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

/// Any source, or any tag: -1 in the text.
pub const ANY: u32 = u32::MAX;

/// Most ranks of a schedule (our choice). Ranks without operations take no memory here, but a line in a binary file.
pub const MOST_RANKS: u32 = 1 << 20;

/// A schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Number of ranks, with those that do nothing.
    pub ranks: u32,
    /// Programs of the ranks that have operations.
    pub programs: BTreeMap<u32, Program>,
}

/// The operations of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Operations in the order of the file.
    pub operations: Vec<Operation>,
    /// Dependencies. No operation waits for itself, directly or by way of others of its rank.
    pub dependencies: Vec<Dependency>,
}

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The rank sends a message.
    Send,
    /// The rank receives a message.
    Receive,
    /// The rank computes.
    Compute,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What the rank does.
    pub kind: Kind,
    /// Rank to which it sends, or from which it receives, or [`ANY`]; 0 for computations.
    pub peer: u32,
    /// Tag, or [`ANY`]; 0 for computations.
    pub tag: u32,
    /// Bytes, or nanoseconds of computation.
    pub size: u64,
    /// Stream of the rank that the operation occupies.
    pub cpu: u8,
    /// NIC of the rank that a message takes.
    pub nic: u8,
}

/// An operation that waits for another one of its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Index of the operation that comes first.
    pub first: u32,
    /// Index of the operation that waits.
    pub then: u32,
    /// Event of the first operation for which the second one waits.
    pub on: On,
}

/// Event of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// Its end (`requires`).
    Finish,
    /// Its start (`irequires`).
    Start,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |n: u32| if n == ANY { "-1".to_owned() } else { n.to_string() };
        let (peer, tag) = (number(self.peer), number(self.tag));
        match self.kind {
            Kind::Send => write!(f, "send {}b to {peer} tag {tag}", self.size),
            Kind::Receive => write!(f, "recv {}b from {peer} tag {tag}", self.size),
            Kind::Compute => write!(f, "calc {}", self.size),
        }
    }
}

impl Program {
    /// Dependencies that form a cycle, as indices, if there are any.
    fn cycle(&self) -> Option<Vec<usize>> {
        let edges: Vec<(u32, u32)> = self.dependencies.iter().map(|d| (d.first, d.then)).collect();
        order(self.operations.len(), &edges).err()
    }

    /// A cycle in words; `name` names an operation.
    fn cycle_text(&self, cycle: &[usize], name: &dyn Fn(u32) -> String) -> String {
        let names = cycle.iter().map(|&d| name(self.dependencies[d].first));
        let back = cycle.first().map(|&d| name(self.dependencies[d].first));
        format!("operations wait for each other: {}", chain(names.chain(back).collect()))
    }
}

/// Names in the order of a cycle; those in the middle of a long one are left out.
pub fn chain(mut names: Vec<String>) -> String {
    const MOST: usize = 9;
    if names.len() > MOST {
        let left_out = names.len() - MOST + 1;
        names.splice(MOST / 2..MOST / 2 + left_out, [format!("({left_out} more)")]);
    }
    names.join(" -> ")
}

/// Digest of a schedule, 16 hexadecimal digits: XXH3 of its binary form.
pub fn digest(schedule: &Schedule) -> String {
    let mut hash = Hash(xxhash_rust::xxh3::Xxh3::new());
    // A hash takes all that is written.
    let _ = binary::write(schedule, &mut hash);
    format!("{:016x}", hash.0.digest())
}

struct Hash(xxhash_rust::xxh3::Xxh3);

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
