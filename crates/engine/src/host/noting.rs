//! Records of the queue pairs that a run records over time or follows. All other queue pairs skip this code.

use super::nic::Host;
use super::queue_pair::Recorded;
use crate::outcome::EventKind;
use crate::record::Note;
use crate::record::counts::Arrivals;
use crate::setup::{NO_TRACK, Setup};
use model::congestion::Congestion;
use model::transport::{Fate, Receiver, Reception, Reply, Sender};
use model::{Kind, Pace, Packet, Parts, Psn, QpId, Time};

/// The start of a data packet at its sender.
pub(super) struct PacketStart {
    pub(super) now: u64,
    /// Time from which rate and window allowed it.
    pub(super) ready: u64,
    /// Bytes that it takes on the wire, preamble and gap included.
    pub(super) bytes: u64,
    /// Pace of the packets after it.
    pub(super) pace: Pace,
}

impl<P: Parts> Host<P> {
    /// Adds counts for a queue pair that has just been added, if its arrivals are recorded or followed.
    pub(super) fn watch_arrivals(&mut self, setup: &Setup<'_>, id: QpId) {
        let record = &setup.plan.record;
        let track = record.track(id);
        if track.is_none() && !setup.follows(id) {
            return;
        }
        let at = self.arrivals.len() as u32;
        self.arrivals.push(Recorded { track: track.unwrap_or(NO_TRACK), counts: Arrivals::default() });
        self.arrivals_of.resize((id.0 - self.first_incoming) as usize, NO_TRACK);
        self.arrivals_of.push(at);
    }

    /// Records the start of a data packet.
    #[inline(never)]
    pub(super) fn note_sent(&mut self, setup: &Setup<'_>, slot: u32, start: PacketStart, packet: &Packet) {
        let PacketStart { now, ready, bytes, pace } = start;
        let (track, again) = (self.send_queues[slot as usize].track, packet.retransmission());
        if let Some(Recorded { counts: sends, .. }) = self.sends.get_mut(track as usize) {
            sends.sent(bytes, again);
        }
        if setup.follows(packet.qp()) {
            let what = if again { EventKind::Resent } else { EventKind::Sent };
            let node = setup.fabric().node_of(setup.plan.qps[packet.qp().index()].from);
            let rate = self.at_most_line_rate(setup, slot, pace);
            let note = Note::new(now, node, what).with_value(rate).ready_since(ready);
            self.recorder.note(setup, note, packet);
        }
    }

    /// Records that the port has been paused or resumed, see [`Host::on_pause`].
    #[cold]
    pub(super) fn note_pause(&mut self, setup: &Setup<'_>, now: u64, before: u8, after: u8) {
        for slot in 0..self.outgoing.len() {
            let mask = setup.holding(self.outgoing[slot].qp);
            let [was_held, held] = [before, after].map(|paused| paused & mask != 0);
            let what = if held { EventKind::Paused } else { EventKind::Resumed };
            if self.outgoing[slot].peer.watched() && was_held != held {
                let oldest = self.oldest(setup, slot as u32);
                let node = setup.fabric().node_of(setup.plan.qps[oldest.qp().index()].from);
                self.recorder.note(setup, Note::new(now, node, what), &oldest);
            }
        }
    }

    /// Records a NACK or CNP after its sender has processed it.
    #[inline(never)]
    pub(super) fn note_feedback(&mut self, setup: &Setup<'_>, now: u64, slot: u32, packet: &Packet) {
        let track = self.send_queues[slot as usize].track;
        if let Some(Recorded { counts: sends, .. }) = self.sends.get_mut(track as usize) {
            match packet.kind() {
                Kind::Nack => sends.nacks += 1,
                Kind::Cnp => sends.cnps += 1,
                _ => {}
            }
        }
        if setup.follows(packet.qp()) && matches!(packet.kind(), Kind::Nack | Kind::Cnp) {
            let rate = self.rate(setup, now, slot);
            let node = setup.fabric().node_of(setup.plan.qps[packet.qp().index()].from);
            let note = Note::new(now, node, EventKind::FeedbackReceived).with_value(rate);
            self.recorder.note(setup, note, packet);
        }
    }

    /// Records a retransmission timeout after its sender has processed it.
    #[inline(never)]
    pub(super) fn note_timeout(&mut self, setup: &Setup<'_>, now: u64, slot: u32) {
        let track = self.send_queues[slot as usize].track;
        if let Some(Recorded { counts: sends, .. }) = self.sends.get_mut(track as usize) {
            sends.timeouts += 1;
        }
        if setup.follows(self.outgoing[slot as usize].qp) {
            let oldest = self.oldest(setup, slot);
            let rate = self.rate(setup, now, slot);
            let node = setup.fabric().node_of(setup.plan.qps[oldest.qp().index()].from);
            let note = Note::new(now, node, EventKind::TimedOut).with_value(rate);
            self.recorder.note(setup, note, &oldest);
        }
    }

    /// The rate allowed to a queue pair, at most its NIC's, bits per second.
    fn rate(&mut self, setup: &Setup<'_>, now: u64, slot: u32) -> u64 {
        let pace = self.outgoing[slot as usize].congestion.allowance(Time(now)).pace;
        self.at_most_line_rate(setup, slot, pace)
    }

    fn at_most_line_rate(&self, setup: &Setup<'_>, slot: u32, pace: Pace) -> u64 {
        let qp = &setup.plan.qps[self.outgoing[slot as usize].qp.index()];
        let line = setup.plan.line(qp.from).bps();
        (pace.bps() as u64).min(line)
    }

    /// The oldest unacknowledged packet of a queue pair, or the next one if all are acknowledged. Events that
    /// concern no single packet name this packet.
    fn oldest(&self, setup: &Setup<'_>, slot: u32) -> Packet {
        let out = &self.outgoing[slot as usize];
        let to = setup.plan.qps[out.qp.index()].to;
        Packet::new(Kind::Data, out.qp, to, Psn::from_seq(out.sender.position().una), 0)
    }

    /// Records the arrival of data at a receiver whose ePSN was `expected`.
    #[inline(never)]
    pub(super) fn note_arrival(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        expected: u64,
        packet: &Packet,
        got: &Reception,
    ) {
        let index = (packet.qp().0 - self.first_incoming) as usize;
        let Some(Recorded { track, counts: arrivals }) =
            self.arrivals_of.get(index).and_then(|at| self.arrivals.get_mut(*at as usize))
        else {
            return;
        };
        let ahead = packet.psn().unwrap_near(expected).saturating_sub(expected);
        if *track != NO_TRACK {
            arrivals.packets += 1;
            arrivals.out_of_order += u64::from(got.out_of_order);
            arrivals.expected = self.incoming[index].receiver.standing().expected;
            if got.out_of_order {
                arrivals.ahead = arrivals.ahead.max(ahead);
            }
        }
        if setup.follows(packet.qp()) {
            let what = match got.fate {
                Fate::Accepted if got.out_of_order => EventKind::Ahead,
                Fate::Accepted => EventKind::Arrived,
                Fate::Duplicate => EventKind::Duplicate,
                Fate::Discarded => EventKind::Discarded,
            };
            let node = setup.fabric().node_of(setup.plan.qps[packet.qp().index()].to);
            self.recorder.note(setup, Note::new(now, node, what).with_value(ahead), packet);
        }
    }

    /// Records the NACK and the CNP with which a receiver answers `packet`.
    #[inline(never)]
    pub(super) fn note_feedback_sent(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        packet: &Packet,
        got: &Reception,
    ) {
        if !setup.follows(packet.qp()) {
            return;
        }
        let qp = &setup.plan.qps[packet.qp().index()];
        let nack = match got.reply {
            Some(Reply::Nack(psn)) => Some((Kind::Nack, psn)),
            Some(Reply::Ack(_)) | None => None,
        };
        for (kind, psn) in nack.into_iter().chain(got.cnp.then(|| (Kind::Cnp, packet.psn()))) {
            let answer = Packet::new(kind, packet.qp(), qp.from, psn, 0);
            self.recorder.note(
                setup,
                Note::new(now, setup.fabric().node_of(qp.to), EventKind::FeedbackSent),
                &answer,
            );
        }
    }
}
