//! What a host writes down of queue pairs that are recorded over time or followed. Off the way of all others.

use super::Host;
use crate::outcome::Happening;
use crate::record::counts::Arrivals;
use crate::setup::{NO_TRACK, Setup};
use model::congestion::Congestion;
use model::transport::{Fate, Receiver, Reception, Sender};
use model::{Kind, Packet, Parts, Psn, QpId, Time};

impl<P: Parts> Host<P> {
    /// Makes room for the arrivals of a queue pair that has just been added, if they are recorded or followed.
    pub(super) fn watch_arrivals(&mut self, setup: &Setup<'_>, id: QpId) {
        let record = &setup.plan.record;
        let track = record.track(id);
        if track.is_none() && !setup.follows(id) {
            return;
        }
        let at = self.arrivals.len() as u32;
        self.arrivals.push((track.unwrap_or(NO_TRACK), Arrivals::default()));
        self.arrivals_of.resize((id.0 - self.first_incoming) as usize, NO_TRACK);
        self.arrivals_of.push(at);
    }

    /// A packet of data starts; it takes `bytes` of the wire.
    #[inline(never)]
    pub(super) fn note_sent(
        &mut self,
        setup: &Setup<'_>,
        (now, slot): (u64, u32),
        bytes: u64,
        packet: &Packet,
    ) {
        let (track, again) = (self.letters[slot as usize].track, packet.retransmission());
        if let Some((_, sends)) = self.sends.get_mut(track as usize) {
            sends.sent(bytes, again);
        }
        if setup.follows(packet.qp()) {
            let what = if again { Happening::Resent } else { Happening::Sent };
            let node = setup.plan.qps[packet.qp().index()].from.node();
            self.recorder.note(setup, (now, node), what, packet, 0);
        }
    }

    /// A NACK or a CNP has reached its sender, and has been taken note of.
    #[inline(never)]
    pub(super) fn note_heard(&mut self, setup: &Setup<'_>, (now, slot): (u64, u32), packet: &Packet) {
        let track = self.letters[slot as usize].track;
        if let Some((_, sends)) = self.sends.get_mut(track as usize) {
            match packet.kind() {
                Kind::Nack => sends.nacks += 1,
                Kind::Cnp => sends.cnps += 1,
                Kind::Ack | Kind::Data | Kind::Signal => {}
            }
        }
        if setup.follows(packet.qp()) && matches!(packet.kind(), Kind::Nack | Kind::Cnp) {
            let rate = self.rate(setup, now, slot);
            let node = setup.plan.qps[packet.qp().index()].from.node();
            self.recorder.note(setup, (now, node), Happening::Heard, packet, rate);
        }
    }

    /// A sender's timer has fired, and has been taken note of.
    #[inline(never)]
    pub(super) fn note_timeout(&mut self, setup: &Setup<'_>, now: u64, slot: u32) {
        let track = self.letters[slot as usize].track;
        if let Some((_, sends)) = self.sends.get_mut(track as usize) {
            sends.timeouts += 1;
        }
        let out = &self.outgoing[slot as usize];
        if setup.follows(out.qp) {
            let (qp, to) = (out.qp, setup.plan.qps[out.qp.index()].to);
            let oldest = Packet::new(Kind::Data, qp, to, Psn::from_seq(out.sender.una()), 0);
            let rate = self.rate(setup, now, slot);
            let node = setup.plan.qps[qp.index()].from.node();
            self.recorder.note(setup, (now, node), Happening::TimedOut, &oldest, rate);
        }
    }

    /// The rate that a queue pair may send at, bits per second; at most its NIC's.
    fn rate(&mut self, setup: &Setup<'_>, now: u64, slot: u32) -> u64 {
        let out = &mut self.outgoing[slot as usize];
        let fabric = setup.fabric();
        let line = fabric.ports(setup.plan.qps[out.qp.index()].from.node())[0].rate.bps();
        (out.congestion.allowance(Time(now)).pace.bps() as u64).min(line)
    }

    /// Data has arrived, when `expected` was what its receiver waited for.
    #[inline(never)]
    pub(super) fn note_arrival(
        &mut self,
        setup: &Setup<'_>,
        (now, expected): (u64, u64),
        packet: &Packet,
        got: &Reception,
    ) {
        let index = (packet.qp().0 - self.first_incoming) as usize;
        let Some((track, arrivals)) =
            self.arrivals_of.get(index).and_then(|at| self.arrivals.get_mut(*at as usize))
        else {
            return;
        };
        let ahead = packet.psn().unwrap_near(expected).saturating_sub(expected);
        if *track != NO_TRACK {
            arrivals.packets += 1;
            arrivals.out_of_order += u64::from(got.out_of_order);
            arrivals.expected = self.incoming[index].receiver.expected();
            if got.out_of_order {
                arrivals.ahead = arrivals.ahead.max(ahead);
            }
        }
        if setup.follows(packet.qp()) {
            let what = match got.fate {
                Fate::Accepted if got.out_of_order => Happening::Ahead,
                Fate::Accepted => Happening::Arrived,
                Fate::Duplicate => Happening::Duplicate,
                Fate::Discarded => Happening::Discarded,
            };
            let node = setup.plan.qps[packet.qp().index()].to.node();
            self.recorder.note(setup, (now, node), what, packet, ahead);
        }
    }

    /// A receiver has answered with a NACK or a CNP.
    #[inline]
    pub(super) fn note_answer(&mut self, setup: &Setup<'_>, now: u64, answer: &Packet) {
        if setup.follows(answer.qp()) {
            let node = setup.plan.qps[answer.qp().index()].to.node();
            self.recorder.note(setup, (now, node), Happening::Answered, answer, 0);
        }
    }
}
