//! Collectives: who sends which bytes to whom, and after what.
//!
//! An algorithm is one file. It turns a [`Call`] into a [`Schedule`], which names members of a group by number and knows no
//! fabric and no times. To add an algorithm, write a file with a function that
//! makes schedules, and add its line to the list below.
//!
//! Sizes are those of nccl-tests: the buffer of each rank for all-reduce, broadcast and reduce; all gathered or scattered bytes
//! for all-gather and reduce-scatter; the send buffer of each rank for all-to-all.

#![forbid(unsafe_code)]

mod chain;
mod direct;
mod halving_doubling;
mod hierarchical;
mod nccl;
mod nvls;
mod pat;
mod recursive_doubling;
mod ring;
mod schedule;
#[cfg(test)]
mod tests;
mod tree;

pub use nccl::{CANDIDATES, Cpu, Gpu, Machine, channels, compared, near_tie};
pub use schedule::{After, Builder, Schedule, Step, Way};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a collective does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Every rank ends with the sum of all buffers.
    AllReduce,
    /// Every rank ends with the shares of all ranks.
    AllGather,
    /// Every rank ends with its share of the sum of all buffers.
    ReduceScatter,
    /// Every rank ends with the buffer of the first rank.
    Broadcast,
    /// The first rank ends with the sum of all buffers.
    Reduce,
    /// Every rank ends with a share of every rank's buffer.
    AllToAll,
}

impl Kind {
    /// The name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::AllReduce => "all-reduce",
            Kind::AllGather => "all-gather",
            Kind::ReduceScatter => "reduce-scatter",
            Kind::Broadcast => "broadcast",
            Kind::Reduce => "reduce",
            Kind::AllToAll => "all-to-all",
        }
    }

    /// The algorithm that a collective has by default.
    pub fn usual_algorithm(self) -> Algorithm {
        match self {
            Kind::AllReduce | Kind::AllGather | Kind::ReduceScatter => Algorithm::Ring,
            Kind::Broadcast | Kind::Reduce => Algorithm::Chain,
            Kind::AllToAll => Algorithm::Direct,
        }
    }

    /// Bytes on the bus per byte of size among `n` ranks, as numerator and denominator (nccl-tests, PERFORMANCE.md).
    pub const fn bus(self, n: u32) -> (u32, u32) {
        let n = if n == 0 { 1 } else { n };
        match self {
            Kind::AllReduce => (2 * (n - 1), n),
            Kind::AllGather | Kind::ReduceScatter | Kind::AllToAll => (n - 1, n),
            Kind::Broadcast | Kind::Reduce => (1, 1),
        }
    }
}

/// A collective of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// What it does.
    pub kind: Kind,
    /// Size as nccl-tests count it.
    pub bytes: u64,
    /// Number of ranks in each server of the group, server by server.
    pub servers: Vec<u32>,
    /// Number of channels; each carries its share of the bytes by its own connections.
    pub channels: u32,
    /// Most bytes of a message; [`u64::MAX`] for NCCL's.
    pub chunk: u64,
    /// True if rings and direct exchanges send slices, as NCCL does, in place of whole chunks.
    pub slices: bool,
    /// Number of peers to which a rank of a direct algorithm sends at the same time; 0 for all.
    pub window: u32,
    /// Parts of a buffer are multiples of this many bytes, except for the last part.
    pub grain: u64,
    /// True if ranks of one server have NVLink with a switch that reduces.
    pub nvlink: bool,
    /// Encoding of bytes on the wire.
    pub protocol: Protocol,
    /// What NCCL's choice knows beside the call.
    pub machine: Machine,
}

impl Call {
    /// A call with one channel, of whole messages.
    pub fn plain(kind: Kind, servers: Vec<u32>, bytes: u64) -> Self {
        Call {
            kind,
            bytes,
            servers,
            channels: 1,
            chunk: u64::MAX,
            slices: false,
            window: 0,
            grain: 1,
            nvlink: false,
            protocol: Protocol::Simple,
            machine: Machine::default(),
        }
    }
}

/// NCCL's protocol, which determines how many bytes a byte of payload takes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Payload alone.
    #[default]
    Simple,
    /// 8 B of flags with 8 B of payload.
    Ll,
    /// 8 B of flags with 120 B of payload.
    Ll128,
}

impl Protocol {
    /// Bytes on the wire of so many bytes of payload.
    pub const fn wire(self, payload: u64) -> u64 {
        match self {
            Protocol::Simple => payload,
            Protocol::Ll => payload.div_ceil(8) * 16,
            Protocol::Ll128 => payload.div_ceil(120) * 128,
        }
    }

    /// Payload of an eighth of the buffer between two GPUs: the longest message of trees and chains (NCCL, `init.cc`).
    const fn step(self) -> u64 {
        match self {
            Protocol::Simple => 512 << 10,
            Protocol::Ll => 32 << 10,
            Protocol::Ll128 => 576_000,
        }
    }

    /// Payload of a slice of a chunk of a ring: half of it with `Simple`, of two eighths of the buffer at most (NCCL, `enqueue.cc`).
    fn slice(self, chunk: u64) -> u64 {
        match self {
            Protocol::Simple => chunk.div_ceil(2).clamp(1, 2 * self.step()),
            _ => chunk.clamp(1, self.step()),
        }
    }

    /// The name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Simple => "simple",
            Protocol::Ll => "ll",
            Protocol::Ll128 => "ll128",
        }
    }
}

impl Call {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.servers.iter().sum()
    }

    /// Number of ranks of every server, if all servers have the same number.
    fn per_server(&self) -> Option<u32> {
        let first = *self.servers.first()?;
        self.servers.iter().all(|&n| n == first).then_some(first)
    }

    /// Bytes of a rank on one channel of a ring.
    fn share(&self) -> u64 {
        self.bytes.div_ceil(u64::from(self.ranks().max(1)) * u64::from(self.channels.max(1)))
    }

    /// Number of ranks of the server that has the most of them.
    fn most(&self) -> u32 {
        self.servers.iter().copied().max().unwrap_or(1).max(1)
    }

    /// The place of every member in its server.
    fn places(&self) -> Vec<u32> {
        self.servers.iter().flat_map(|&members| 0..members).collect()
    }

    /// Bytes of part `i` of `n` parts of `bytes`, with their offset.
    fn part(&self, bytes: u64, n: u64, i: u64) -> std::ops::Range<u64> {
        let n = n.max(1);
        if self.grain <= 1 {
            let start = |i: u64| i * (bytes / n) + i.min(bytes % n);
            return start(i)..start(i + 1);
        }
        let each = bytes.div_ceil(n).next_multiple_of(self.grain);
        (i * each).min(bytes)..((i + 1) * each).min(bytes)
    }

    /// Bytes of a member's part of the buffer.
    pub fn part_of(&self, member: u32) -> u64 {
        let part = self.part(self.bytes, self.ranks().into(), member.into());
        part.end - part.start
    }

    /// The bytes of every channel.
    fn by_channel(&self) -> impl Iterator<Item = (u32, std::ops::Range<u64>)> + '_ {
        (0..self.channels).map(|c| (c, self.part(self.bytes, self.channels.into(), c.into())))
    }

    /// A range in pieces of at most `chunk` bytes; an empty range is one piece.
    fn pieces(&self, range: std::ops::Range<u64>) -> Vec<std::ops::Range<u64>> {
        let bytes = range.end - range.start;
        let count = bytes.div_ceil(self.chunk.max(1)).max(1);
        let piece = |i| {
            let start = |i: u64| range.start + i * (bytes / count) + i.min(bytes % count);
            start(i)..start(i + 1)
        };
        (0..count).map(piece).collect()
    }
}

macro_rules! algorithms {
    ($($(#[$doc:meta])* $file:ident: $variant:ident = $name:tt, $kinds:expr;)+) => {
        /// Algorithm of a collective.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum Algorithm {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl Algorithm {
            /// All algorithms.
            pub const ALL: &'static [Algorithm] = &[$(Algorithm::$variant),+];

            /// The name in scenarios and results.
            pub const fn name(self) -> &'static str {
                match self { $(Algorithm::$variant => $name,)+ }
            }

            /// Collectives that the algorithm can do.
            pub const fn kinds(self) -> &'static [Kind] {
                match self { $(Algorithm::$variant => $kinds,)+ }
            }

            /// The schedule of a call that [`Algorithm::resolve`] has returned, or the reason why the algorithm cannot do it.
            ///
            /// # Errors
            /// The collectives that it can do, or the numbers of ranks.
            pub fn schedule(self, call: &Call) -> Result<Schedule, String> {
                if !self.kinds().contains(&call.kind) {
                    let can: Vec<_> = self.kinds().iter().map(|kind| kind.name()).collect();
                    return Err(format!("`{}` can do {}, not {}", self.name(), can.join(", "), call.kind.name()));
                }
                match self { $(Algorithm::$variant => $file::schedule(call),)+ }
            }
        }
    };
}

use Kind::{AllGather, AllReduce, AllToAll, Broadcast, Reduce, ReduceScatter};

/// How NCCL, or the scenario, does a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Encoding of bytes on the wire.
    pub protocol: Protocol,
    /// Number of channels.
    pub channels: u32,
}

/// Most pieces of a channel's bytes, unless a longest message is given. Our choice: a longer pipeline costs memory, and saves less than
/// a 64th of the time.
const MOST_PIECES: u64 = 64;

impl Algorithm {
    /// The algorithm and the call as they are done: NCCL's choice is made, and messages are as long as NCCL's, unless the call says how
    /// long they are.
    ///
    /// # Errors
    /// NCCL has no algorithm for the call.
    pub fn resolve(self, call: &Call) -> Result<(Algorithm, Call), String> {
        let (algorithm, call) = match self {
            Algorithm::Nccl => nccl::chosen(call)?,
            own => (own, call.clone()),
        };
        let chunk = if call.chunk == u64::MAX { algorithm.longest_message(&call) } else { call.chunk };
        Ok((algorithm, Call { chunk, ..call }))
    }

    /// How a resolved call is done.
    pub fn made(self, call: &Call) -> Made {
        let channels = if self == Algorithm::Tree { 2 * tree::pairs(call) } else { call.channels };
        Made { algorithm: self, protocol: call.protocol, channels }
    }

    /// The longest message of those algorithms that NCCL pipelines (`enqueue.cc`): an eighth of the protocol's buffer for a chain
    /// and a tree, 128 KiB for NVLS, and 64 KiB from four servers on; and with slices, a slice of a ring's chunk.
    fn longest_message(self, call: &Call) -> u64 {
        let (usual, parts) = match self {
            Algorithm::Ring if call.slices => return call.protocol.slice(call.share()),
            Algorithm::Direct if call.slices => return 128 << 10,
            Algorithm::Chain => (call.protocol.step(), call.channels),
            Algorithm::Tree => (tree::chunk(call), 2 * tree::pairs(call)),
            Algorithm::Nvls if call.servers.len() < 4 => (128 << 10, call.most()),
            Algorithm::Nvls => (64 << 10, call.most()),
            _ => return u64::MAX,
        };
        usual.max((call.bytes / u64::from(parts.max(1))).div_ceil(MOST_PIECES))
    }

    /// A lower bound of the number of steps of a resolved call.
    pub fn least_steps(self, call: &Call) -> u64 {
        let n = u64::from(call.ranks());
        let others = n.saturating_sub(1);
        let rounds = if call.kind == Kind::AllReduce { 2 } else { 1 };
        let whole = match self {
            Algorithm::Ring => u64::from(call.channels) * rounds * n * others,
            Algorithm::Direct => n * others,
            _ => others,
        };
        // All members but one get all bytes, in every round.
        let cut = |others: u64| whole.max((rounds * others).saturating_mul(call.bytes / call.chunk.max(1)));
        match self {
            Algorithm::Nccl => 0,
            // It cuts no messages.
            Algorithm::Pat => whole,
            // It cuts those between servers.
            Algorithm::Nvls => cut(call.servers.len().saturating_sub(1) as u64),
            _ => cut(others),
        }
    }
}

algorithms! {
    /// A ring through all ranks.
    ring: Ring = "ring", &[AllReduce, AllGather, ReduceScatter];
    /// Two binary trees of servers, each for one half of the buffer, and a chain inside each server.
    tree: Tree = "tree", &[AllReduce];
    /// Recursive halving, then recursive doubling. The number of ranks is a power of two.
    halving_doubling: HalvingDoubling = "halving-doubling", &[AllReduce, AllGather, ReduceScatter];
    /// Every rank exchanges its whole buffer with ranks 1, 2, 4, ... away. The number of ranks is a power of two.
    recursive_doubling: RecursiveDoubling = "recursive-doubling", &[AllReduce];
    /// Parallel aggregated trees: a logarithmic number of steps, with one rank per server.
    pat: Pat = "pat", &[AllGather, ReduceScatter];
    /// The NVSwitch of a server reduces and copies; between servers, a double binary tree for each GPU of a server.
    nvls: Nvls = "nvls", &[AllReduce, AllGather, ReduceScatter];
    /// Reduce-scatter in each server, all-reduce between the GPUs of one number, and all-gather in each server, by rings.
    hierarchical: Hierarchical = "hierarchical", &[AllReduce];
    /// Every rank sends to every other rank, in NCCL's order of peers.
    direct: Direct = "direct", &[AllToAll, AllGather, ReduceScatter];
    /// A chain from rank to rank.
    chain: Chain = "chain", &[Broadcast, Reduce];
    /// The algorithm that NCCL's cost model takes.
    nccl: Nccl = "nccl", &[AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll];
}
