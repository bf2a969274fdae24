//! The state of the program.

use super::instances::{DecodeInstance, PrefillInstance};
use crate::network::Message;
use crate::place::Rates;
use crate::record::Record;
use crate::spec::Spec;
use model::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) request: usize,
    pub(super) message: Message,
    /// For a request of a READ: the bytes that answer it.
    pub(super) answer: Option<u64>,
}

/// An event of the program. Events of one time come in the order in which they were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A request comes.
    Arrive(usize),
    /// So many groups of layers of a prefill instance's batch are computed.
    Computed(usize, u64),
    /// The host software has prepared a group of a request's transfer.
    Post(usize, u64),
    /// A decode instance ends a step.
    Step(usize),
}

/// Times of a request so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// Memory was granted.
    pub(super) granted: Time,
    pub(super) prefill_start: Time,
    pub(super) prefill_end: Time,
    /// The messages of the last group started.
    pub(super) posted: Time,
    /// Time that these would take if only NICs were shared.
    pub(super) by_nics: Time,
    /// End of the transfer alone on the fabric: without the host software, and with it.
    pub(super) alone: Time,
    pub(super) with_host: Time,
    pub(super) received: Time,
    pub(super) admitted: Time,
}

/// A request on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Going {
    pub(super) prefill: usize,
    pub(super) decode: Option<usize>,
    /// Tokens of its prompt that the prefill instance knows.
    pub(super) cached: u64,
    /// Blocks of KV to send, and their bytes.
    pub(super) blocks: u64,
    pub(super) bytes: u64,
    pub(super) times: Times,
    /// Groups whose messages have not been posted, and messages that have not arrived.
    pub(super) groups: u64,
    pub(super) messages: u64,
    /// Tokens of the answer so far.
    pub(super) tokens: u64,
    pub(super) last_token: Time,
}

/// The program.
pub struct Program<N> {
    pub(super) spec: Spec,
    pub(super) network: N,
    pub(super) events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    pub(super) set: u64,
    pub(super) going: Vec<Going>,
    pub(super) records: Vec<Record>,
    pub(super) prefills: Vec<PrefillInstance>,
    pub(super) decodes: Vec<DecodeInstance>,
    /// Messages under way, by number.
    pub(super) flights: BTreeMap<u64, Flight>,
    /// Messages of requests that have a decode instance, and whose KV has not arrived; kept only for placement by the network.
    pub(super) promised: BTreeMap<usize, Vec<Message>>,
    pub(super) sent: u64,
    /// Bytes under way by the rank that stands for the sender's NIC, and slices that each prefill instance has sent.
    pub(super) under_way: BTreeMap<u32, u64>,
    pub(super) slices: Vec<u64>,
    pub(super) out: Vec<Message>,
    pub(super) turns: (usize, usize),
    pub(super) rates: Rates,
    /// Times between tokens, ps, with their numbers.
    pub(super) gaps: BTreeMap<u64, u64>,
    /// Requests that have ended, and the tokens of their answers.
    pub(super) ended: (u64, u64),
}

impl<N> Program<N> {
    pub(super) fn at(&mut self, at: Time, event: Event) {
        self.set += 1;
        self.events.push(Reverse((at, self.set, event)));
    }
}
