//! What a run records besides its results, if it is asked to. Nothing of it changes what happens.
//!
//! Series cost nothing where packets go: what ports and queue pairs count anyway is looked at between two windows,
//! whenever a bin has ended ([`sampler`]). Only the queue pairs that are recorded count a little more
//! ([`counts`]). Single events, hops and frames are written down where they happen ([`Recorder`]), for queue pairs and
//! links that somebody has named.

pub(crate) mod counts;
pub(crate) mod sampler;

use crate::outcome::{Event, Frame, Happening, Hop, Passed};
use crate::setup::Setup;
use model::{LinkId, NodeId, Packet, PortIndex, QpId, Time};
use std::collections::BTreeMap;

/// What nodes write down: a host keeps one, and a group of switches.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    events: Vec<Event>,
    /// Events by node and queue pair, packets and others. Those of one node come in order of time.
    counted: BTreeMap<(NodeId, QpId), [u64; 2]>,
    hops: BTreeMap<(QpId, LinkId), Hop>,
    frames: Vec<Frame>,
    /// Frames by tap. Those of one tap come in order of time.
    seen: BTreeMap<LinkId, u64>,
}

/// What a node reports of a packet: an [`Event`] without the packet's own fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    at: u64,
    node: NodeId,
    what: Happening,
    value: u64,
    ready: u64,
}

impl Note {
    /// An event with value 0.
    pub(crate) fn new(at: u64, node: NodeId, what: Happening) -> Self {
        Note { at, node, what, value: 0, ready: at }
    }

    pub(crate) fn with_value(self, value: u64) -> Self {
        Note { value, ..self }
    }

    /// The event is the start of a packet that rate and window had allowed since `ready`.
    pub(crate) fn ready_since(self, ready: u64) -> Self {
        Note { ready, ..self }
    }
}

impl Recorder {
    /// Records what has happened to a packet, or to its queue pair, if the run follows the queue pair.
    #[cold]
    #[inline(never)]
    pub(crate) fn note(&mut self, setup: &Setup<'_>, note: Note, pkt: &Packet) {
        if !setup.follows(pkt.qp()) {
            return;
        }
        let Note { at, node, what, value, ready } = note;
        let plan = &setup.plan.record;
        let counted = self.counted.entry((node, pkt.qp())).or_default();
        let count = &mut counted[usize::from(!what.is_passage())];
        *count += 1;
        if *count <= plan.events as u64 {
            let (qp, kind, psn) = (pkt.qp(), pkt.kind(), pkt.psn());
            let (at, ready) = (Time(at), Time(ready));
            self.events.push(Event { qp, at, node, what, kind, psn, value, ready });
        }
    }

    /// Data joins the queue of link `gp`, behind `queue` bytes.
    #[cold]
    #[inline(never)]
    pub(crate) fn hop(&mut self, setup: &Setup<'_>, gp: usize, pkt: &Packet, queue: u64) {
        if !setup.follows(pkt.qp()) {
            return;
        }
        let link = LinkId(gp as u32);
        let new = Hop { qp: pkt.qp(), link, packets: 0, queue: 0, most: 0 };
        let hop = self.hops.entry((pkt.qp(), link)).or_insert(new);
        hop.packets += 1;
        hop.queue += queue;
        hop.most = hop.most.max(queue);
    }

    /// A frame starts on link `gp`; it is kept if the link is tapped.
    #[cold]
    #[inline(never)]
    pub(crate) fn frame(&mut self, setup: &Setup<'_>, gp: usize, at: u64, what: Passed) {
        let (plan, link) = (&setup.plan.record, LinkId(gp as u32));
        if plan.taps.binary_search(&link).is_err() {
            return;
        }
        let what = match what {
            // Where it is on its way is the engines' own affair.
            Passed::Packet(pkt, lost) => Passed::Packet(pkt.arriving(0, PortIndex(0)), lost),
            pause => pause,
        };
        let seen = self.seen.entry(link).or_default();
        *seen += 1;
        if *seen <= plan.frames as u64 {
            self.frames.push(Frame { link, at: Time(at), what });
        }
    }
}

/// Puts together what all nodes wrote down: the same whatever nodes shared a recorder.
pub(crate) fn gather<'r>(
    setup: &Setup<'_>,
    recorders: impl Iterator<Item = &'r Recorder>,
) -> crate::outcome::Notes {
    let plan = &setup.plan.record;
    let mut notes = crate::outcome::Notes::default();
    let mut hops: BTreeMap<(QpId, LinkId), Hop> = BTreeMap::new();
    let (mut counted, mut seen) = (0, 0);
    for recorder in recorders {
        notes.events.extend(&recorder.events);
        notes.frames.extend(&recorder.frames);
        hops.extend(recorder.hops.iter().map(|(key, hop)| (*key, *hop)));
        counted += recorder.counted.values().flatten().sum::<u64>();
        seen += recorder.seen.values().sum::<u64>();
    }
    notes.events.sort_by_key(|e| (e.qp, e.at, e.node, e.what, e.kind as u8, e.psn.value(), e.value));
    let (mut of, mut kept) = (None, [0; 2]);
    notes.events.retain(|event| {
        if of != Some(event.qp) {
            (of, kept) = (Some(event.qp), [0; 2]);
        }
        let kept = &mut kept[usize::from(!event.what.is_passage())];
        *kept += 1;
        *kept <= plan.events
    });
    notes.frames.sort_by_key(|frame| (frame.at, frame.link));
    notes.more_events = counted - notes.events.len() as u64;
    notes.more_frames = seen - notes.frames.len() as u64;
    notes.hops = hops.into_values().collect();
    notes
}
