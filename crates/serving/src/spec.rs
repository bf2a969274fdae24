//! What is served, by whom and how, once a scenario is checked.

use crate::compute::{Decode, Prefill};
use crate::kv::Kv;
use model::Time;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Time at which it comes.
    pub at: Time,
    /// Tokens of the prompt, at least 1.
    pub input: u64,
    /// Tokens of the answer, at least 1.
    pub output: u64,
    /// Ids of the prompt's blocks of [`Spec::prefix_block`] tokens; equal ids at the start are a common prefix.
    pub blocks: Vec<u64>,
}

/// Some GPUs of one server that hold the model together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// For each of its ranks, the rank that stands for the NIC of that rank: of ranks that share a NIC, the first.
    pub nics: Vec<u32>,
    /// The ranks that stand for all NICs of the server.
    pub server_nics: Vec<u32>,
}

/// How KV crosses the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// The prefill side writes when the prompt is computed.
    #[default]
    Push,
    /// The decode side reads: a request crosses first.
    Pull,
    /// The prefill side writes so many groups of layers, each when it is computed.
    Layers(u64),
}

/// Which NICs of a server carry a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rails {
    /// Each rank's own NIC.
    #[default]
    Own,
    /// All NICs of the server, an equal number of slices each.
    RoundRobin,
    /// All NICs of the server; each slice goes to the one with the fewest bytes under way.
    LeastInflight,
}

/// When memory is reserved at the decode side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reserve {
    /// When the prompt is computed, before the transfer.
    #[default]
    AtTransfer,
    /// When the request comes, before its prefill.
    Early,
}

/// Transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// How KV crosses.
    pub way: Way,
    /// Which NICs carry it.
    pub rails: Rails,
    /// Queue pairs of each pair of NICs, which share the bytes evenly.
    pub qps: u64,
    /// Bytes of a slice, if `rails` spreads slices.
    pub slice: u64,
    /// Time of the host software before the first byte.
    pub host: Time,
    /// Time of the host software for each descriptor of a rank.
    pub descriptor: Time,
    /// Whether each block of each layer has a descriptor of its own; else blocks of a layer are merged into one.
    pub by_block: bool,
    /// When memory is reserved.
    pub reserve: Reserve,
}

/// Placement of a request among instances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Place {
    /// One instance after the other.
    RoundRobin,
    /// The instance with the fewest tokens to compute, or to hold.
    #[default]
    LeastLoaded,
    /// The instance with the most tokens of the prompt's start in its cache, less this weight times its load in tokens.
    CacheAware(f64),
    /// The instance that is expected to start soonest, by its queue and by rates that are this old at most.
    NetworkAware(Time),
    /// The instance that is expected to start soonest, by its queue and by all bytes of KV that are under way.
    Oracle,
    /// Of the instances over the fewest switches, the one with the fewest tokens.
    SameTier,
}

/// The event that counts as the first token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstToken {
    /// The end of the request's first step of decoding.
    #[default]
    Decode,
    /// The end of its prefill.
    Prefill,
}

/// Limits that a user sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slo {
    /// Longest time to the first token.
    pub ttft: Option<Time>,
    /// Longest mean time per further token.
    pub tpot: Option<Time>,
}

/// What is served, by whom and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Requests in the order of time.
    pub requests: Vec<Request>,
    /// Keys and values.
    pub kv: Kv,
    /// Tokens of a block of [`Request::blocks`].
    pub prefix_block: u64,
    /// Prefill instances.
    pub prefills: Vec<Instance>,
    /// Decode instances.
    pub decodes: Vec<Instance>,
    /// Compute model of a prefill instance.
    pub prefill: Prefill,
    /// Compute model of a decode instance.
    pub decode: Decode,
    /// Most tokens of a prefill batch, unless one request alone has more.
    pub batch_tokens: u64,
    /// Bytes of KV that a decode instance holds.
    pub memory: u64,
    /// Most requests of a step of decoding.
    pub slots: usize,
    /// Tokens in the prefix cache of a prefill instance, and of a decode instance; 0 for none.
    pub caches: (u64, u64),
    /// Transfers.
    pub transfer: Transfer,
    /// True if nothing that the network does moves the start of a transfer: memory at the decode side is without end, and the loads of decode
    /// instances count all that was placed.
    pub open: bool,
    /// Placement of prefills.
    pub place_prefill: Place,
    /// Placement of decodes.
    pub place_decode: Place,
    /// What counts as the first token.
    pub first_token: FirstToken,
    /// Limits.
    pub slo: Slo,
}

impl Spec {
    /// Ranks of a prefill instance and of a decode instance.
    pub fn tp(&self) -> (u64, u64) {
        let ranks = |all: &[Instance]| all.first().map_or(1, |instance| instance.nics.len().max(1) as u64);
        (ranks(&self.prefills), ranks(&self.decodes))
    }

    /// Pairs of NICs between which KV may go, at most.
    pub fn pairs(&self) -> u64 {
        let most =
            |all: &[Instance]| all.first().map_or(1, |one| one.nics.len().max(one.server_nics.len()) as u64);
        let each = most(&self.prefills).max(most(&self.decodes));
        (self.prefills.len() as u64).saturating_mul(self.decodes.len() as u64).saturating_mul(each)
    }

    /// Bytes of KV that a request needs at the decode side, its answer included.
    pub fn need(&self, request: &Request) -> u64 {
        self.kv.bytes(self.kv.blocks(request.input.saturating_add(request.output)), self.tp().1)
    }
}
