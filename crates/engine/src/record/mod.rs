//! Records that a run keeps on demand besides its results. Recording never changes a result.
//!
//! Series cost nothing on a packet's path: between two windows, at the end of a bin, the sampler reads counts that
//! ports and queue pairs keep anyway ([`sampler`]). Only recorded queue pairs keep a few more counts ([`counts`]).
//! Single events, hops and frames are recorded where they happen ([`Recorder`]), for the queue pairs and links that
//! the scenario names.

pub(crate) mod counts;
mod earliest;
pub(crate) mod sampler;

use self::earliest::{Earliest, order};
use crate::failing::LinkLoss;
use crate::gentle::Gentle;
use crate::observer::Observer;
use crate::outcome::{Event, EventKind, Frame, Hop, Losses, Passed, PriorityRecord};
use crate::setup::Setup;
use model::{LinkId, NodeId, Packet, PortIndex, QpId, Time};
use std::collections::BTreeMap;

/// Records of one host, or of one group of switches.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Events by node and queue pair: passages of packets, and others.
    events: BTreeMap<(NodeId, QpId), [Earliest; 2]>,
    hops: BTreeMap<(QpId, LinkId), Hop>,
    /// Frames that no observer has taken. The frames of one tap come in order of time.
    frames: Vec<Frame>,
    /// The last packet or reply of each queue pair that a link lost: its start, ps, and the link. Only of runs with a limit on retries.
    last_lost: BTreeMap<QpId, (u64, LinkId)>,
    /// Losses by link, start of its failure in ps, and whether it was gray.
    losses: BTreeMap<(Option<LinkId>, u64, bool), Losses>,
    /// Pauses and their ends, by link and priority.
    priorities: BTreeMap<(usize, u8), Pauses>,
    /// Pauses of links by storms, with start and end in ps. A storm may outlast the run's traffic, and what comes later does not count.
    storms: Vec<(usize, [u64; 2])>,
    /// The last time for which each link had no credits: words may come after the run's traffic, too.
    unpaid: BTreeMap<usize, [u64; 2]>,
    /// Rulings of watchdogs: time in ps, link, and whether the link's queue was stormed from then on.
    pub(crate) rulings: Vec<(u64, usize, bool)>,
}

/// An [`Event`] without the fields of its packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    at: u64,
    node: NodeId,
    what: EventKind,
    value: u64,
    ready: u64,
}

impl Note {
    /// An event with value 0.
    pub(crate) fn new(at: u64, node: NodeId, what: EventKind) -> Self {
        Note { at, node, what, value: 0, ready: at }
    }

    pub(crate) fn with_value(self, value: u64) -> Self {
        Note { value, ..self }
    }

    /// Sets the time from which rate and window allowed the packet that starts.
    pub(crate) fn ready_since(self, ready: u64) -> Self {
        Note { ready, ..self }
    }
}

/// Pauses of a priority of a link.
#[derive(Clone, Debug, Default)]
struct Pauses {
    begun: u64,
    ended: u64,
    /// Times for which it stood paused, ps: their sum, the last of them if it had no credits, and those of storms, which the sum
    /// leaves out.
    paused: u64,
    last: [u64; 2],
    storms: Vec<[u64; 2]>,
    /// Start of the pause that has not ended, ps.
    since: Option<u64>,
}

impl Pauses {
    /// Time for which the priority stood paused up to the end of the run.
    fn until(&self, end: u64) -> u64 {
        let up_to_end = |[since, until]: [u64; 2]| until.min(end).saturating_sub(since);
        let storms: u64 = self.storms.iter().map(|storm| up_to_end(*storm)).sum();
        let open = self.since.map_or(0, |since| up_to_end([since, end]));
        let [since, until] = self.last;
        self.paused - until.saturating_sub(since.max(end)) + storms + open
    }
}

/// What may pause a link for longer than its traffic lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outlasts {
    pub(crate) storm: bool,
    pub(crate) credits: bool,
}

impl Recorder {
    /// Records an event of a packet or of its queue pair, if the run follows the queue pair.
    #[cold]
    #[inline(never)]
    pub(crate) fn note(&mut self, setup: &Setup<'_>, note: Note, pkt: &Packet) {
        if !setup.follows(pkt.qp()) {
            return;
        }
        let Note { at, node, what, value, ready } = note;
        let plan = &setup.plan.record;
        let (qp, kind, psn) = (pkt.qp(), pkt.kind(), pkt.psn());
        let (at, ready) = (Time(at), Time(ready));
        let events = self.events.entry((node, qp)).or_default();
        let event = Event { qp, at, node, what, kind, psn, value, ready };
        events[usize::from(!what.is_passage())].add(event, plan.events);
    }

    /// Records that data joins the queue of link `gp`, behind `queue` bytes.
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

    /// Records that a priority of link `gp` has been paused or resumed.
    pub(crate) fn repaused(&mut self, gp: usize, priority: u8, on: bool) {
        let pauses = self.priorities.entry((gp, priority)).or_default();
        match on {
            true => pauses.begun += 1,
            false => pauses.ended += 1,
        }
    }

    /// Records at `now` that these priorities of link `gp` stood paused `before` and are `held` from now on. `since` is the time since which
    /// any was paused.
    pub(crate) fn held(
        &mut self,
        gp: usize,
        [before, held]: [u8; 2],
        [since, now]: [u64; 2],
        outlasts: Outlasts,
    ) {
        if before != 0 && held == 0 {
            if outlasts.storm {
                self.storms.push((gp, [since, now]));
            } else if outlasts.credits {
                self.unpaid.insert(gp, [since, now]);
            }
        }
        for priority in (0..u8::BITS as u8).filter(|priority| (before ^ held) >> priority & 1 != 0) {
            let pauses = self.priorities.entry((gp, priority)).or_default();
            match pauses.since.take() {
                None => pauses.since = Some(now),
                Some(since) if outlasts.storm => pauses.storms.push([since, now]),
                Some(since) => {
                    pauses.paused += now - since;
                    pauses.last = if outlasts.credits { [since, now] } else { [0; 2] };
                }
            }
        }
    }

    /// Times for which links stood paused that may lie after the end of the run.
    pub(crate) fn outlasting(&self) -> impl Iterator<Item = (usize, [u64; 2])> + '_ {
        let unpaid = self.unpaid.iter().map(|(gp, span)| (*gp, *span));
        self.storms.iter().copied().chain(unpaid)
    }

    /// Records the start of a frame on link `gp`, if the link is tapped.
    #[cold]
    #[inline(never)]
    pub(crate) fn frame(&mut self, setup: &Setup<'_>, gp: usize, at: u64, what: Passed) {
        let link = LinkId(gp as u32);
        if setup.plan.record.taps.binary_search(&link).is_err() {
            return;
        }
        let what = match what {
            // The fields that engines use on the way are not part of the record.
            Passed::Packet(pkt, lost) => Passed::Packet(pkt.arriving(0, PortIndex(0)), lost),
            pause => pause,
        };
        self.frames.make_room();
        self.frames.push(Frame { link, at: Time(at), what });
    }

    /// Records that link `gp` has lost a packet that started at `at`: what a failure cost, the event of a followed queue pair, and the
    /// last loss of each queue pair in runs with a limit on retries.
    #[cold]
    #[inline(never)]
    pub(crate) fn lost(&mut self, setup: &Setup<'_>, gp: usize, at: u64, pkt: &Packet, how: LinkLoss) {
        match how {
            LinkLoss::Outage { since, into } => {
                self.count((Some(LinkId(gp as u32)), since, false), at, pkt, into);
            }
            LinkLoss::Gray { since } => self.count((Some(LinkId(gp as u32)), since, true), at, pkt, false),
            _ => {}
        }
        let node = setup.fabric().links()[gp].from;
        let value = Event::value_of_loss(gp, how.cause());
        self.note(setup, Note::new(at, node, EventKind::Lost).with_value(value), pkt);
        if !setup.plan.retries.is_empty() {
            let last = self.last_lost.entry(pkt.qp()).or_default();
            *last = (*last).max((at, LinkId(gp as u32)));
        }
    }

    /// Records that a packet has run in circles until `at`.
    #[cold]
    #[inline(never)]
    pub(crate) fn lost_in_loop(&mut self, setup: &Setup<'_>, at: u64, pkt: &Packet) {
        self.count((None, setup.failing.last_turn(at), false), at, pkt, false);
    }

    fn count(&mut self, by: (Option<LinkId>, u64, bool), at: u64, pkt: &Packet, into: bool) {
        if !pkt.is_data() {
            return;
        }
        let ((link, since, gray), at) = (by, Time(at));
        let new = Losses { link, since: Time(since), gray, packets: 0, black_hole: 0, first: at, last: at };
        let losses = self.losses.entry(by).or_insert(new);
        losses.packets += 1;
        losses.black_hole += u64::from(into);
        losses.first = losses.first.min(at);
        losses.last = losses.last.max(at);
    }

    /// Moves its frames to others.
    pub(crate) fn give_frames(&mut self, frames: &mut Vec<Frame>) {
        frames.append(&mut self.frames);
    }

    /// Memory of the events and frames, bytes.
    pub(crate) fn memory(&self) -> u64 {
        let events: usize = self.events.values().flatten().map(Earliest::capacity).sum();
        (events * size_of::<Event>() + self.frames.capacity() * size_of::<Frame>()) as u64
    }
}

/// The link that lost the last packet or reply of a queue pair, see [`Recorder::lost`].
pub(crate) fn last_lost<'r>(recorders: impl Iterator<Item = &'r Recorder>, qp: QpId) -> Option<LinkId> {
    recorders.filter_map(|recorder| recorder.last_lost.get(&qp)).max().map(|&(_, link)| link)
}

/// The pauses of all recorders by link and priority up to the end of the run, and `frames` of storms: link, priorities and pauses of
/// each of them.
pub(crate) fn priorities<'r>(
    recorders: impl Iterator<Item = &'r Recorder>,
    frames: &[(usize, u8, u64)],
    end: u64,
) -> Vec<PriorityRecord> {
    let mut all: BTreeMap<(usize, u8), [u64; 3]> = BTreeMap::new();
    for (key, of) in recorders.flat_map(|recorder| &recorder.priorities) {
        let sum = all.entry(*key).or_default();
        let counts = [of.begun, of.ended, of.until(end)];
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    for &(link, paused, pauses) in frames.iter().filter(|(.., pauses)| *pauses > 0) {
        for priority in (0..u8::BITS as u8).filter(|priority| paused >> priority & 1 != 0) {
            all.entry((link, priority)).or_default()[0] += pauses;
        }
    }
    let record = |((link, priority), [pauses, resumes, paused]): ((usize, u8), [u64; 3])| PriorityRecord {
        link: LinkId(link as u32),
        priority,
        pauses,
        resumes,
        paused: Time(paused),
    };
    all.into_iter().filter(|(_, counts)| *counts != [0; 3]).map(record).collect()
}

/// The losses of all recorders.
pub(crate) fn losses<'r>(recorders: impl Iterator<Item = &'r Recorder>) -> Vec<Losses> {
    let mut all: BTreeMap<(Option<LinkId>, u64, bool), Losses> = BTreeMap::new();
    for (key, one) in recorders.flat_map(|recorder| &recorder.losses) {
        let sum = all.entry(*key).or_insert(Losses { packets: 0, black_hole: 0, ..*one });
        sum.packets += one.packets;
        sum.black_hole += one.black_hole;
        sum.first = sum.first.min(one.first);
        sum.last = sum.last.max(one.last);
    }
    all.into_values().collect()
}

/// Hands the frames so far to an observer that takes them. Every later frame starts at `until` or later, ps.
pub(crate) fn hand_over<'r>(
    observer: &mut dyn Observer,
    recorders: impl Iterator<Item = &'r mut Recorder>,
    until: u64,
) {
    if !observer.takes_frames() {
        return;
    }
    let mut frames = Vec::new();
    recorders.for_each(|recorder| frames.append(&mut recorder.frames));
    frames.sort_by_key(by_time);
    observer.on_frames(&frames, Time(until));
}

/// Order of frames.
fn by_time(frame: &Frame) -> (Time, LinkId) {
    (frame.at, frame.link)
}

/// Merges the records of all nodes. The result does not depend on which nodes share a recorder.
pub(crate) fn gather<'r>(
    setup: &Setup<'_>,
    recorders: impl Iterator<Item = &'r Recorder>,
) -> crate::outcome::Notes {
    let plan = &setup.plan.record;
    let mut notes = crate::outcome::Notes::default();
    let mut hops: BTreeMap<(QpId, LinkId), Hop> = BTreeMap::new();
    let mut counted = 0;
    for recorder in recorders {
        let events = || recorder.events.values().flatten();
        notes.events.extend(events().flat_map(Earliest::kept));
        notes.frames.extend(&recorder.frames);
        hops.extend(recorder.hops.iter().map(|(key, hop)| (*key, *hop)));
        counted += events().map(|events| events.seen).sum::<u64>();
    }
    notes.events.sort_by_key(order);
    let (mut of, mut kept) = (None, [0; 2]);
    notes.events.retain(|event| {
        if of != Some(event.qp) {
            (of, kept) = (Some(event.qp), [0; 2]);
        }
        let kept = &mut kept[usize::from(!event.what.is_passage())];
        *kept += 1;
        *kept <= plan.events
    });
    notes.frames.sort_by_key(by_time);
    notes.more_events = counted - notes.events.len() as u64;
    notes.hops = hops.into_values().collect();
    notes
}
