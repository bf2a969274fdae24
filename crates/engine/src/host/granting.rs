//! Packets that a host makes at a deadline: replies of receivers that wait with their ACKs, grants, and senders' probes.

use super::nic::Host;
use super::ports::End;
use super::timers::{ReplyTimer, Timer};
use crate::setup::Setup;
use model::annex::Sack;
use model::congestion::Congestion;
use model::granter::{Arrival, Grant};
use model::transport::{Inbound, Overdue, Receiver, Telling};
use model::{Dialogue, Granter, Kind, Packet, Parcel, Parts, PortIndex, QpId, Stamped, Steering, Time};

impl<P: Parts> Host<P> {
    /// Takes the packets that its timers have made, in their order. The engine must take them after every timer.
    pub(crate) fn take_made(&mut self) -> Vec<Parcel<P::Annex>> {
        std::mem::take(&mut self.made)
    }

    /// Takes the room of these packets back.
    pub(crate) fn keep_room(&mut self, mut made: Vec<Parcel<P::Annex>>) {
        made.clear();
        if self.made.is_empty() {
            self.made = made;
        }
    }

    /// Makes sure that a timer fires no later than the deadline of a receiver, after the arrival of `pkt`.
    #[inline(always)]
    pub(super) fn arm_receiver(&mut self, now: u64, deadline: Time, index: u32, pkt: &Parcel<P::Annex>) {
        if deadline != Time::NEVER {
            self.arm_replies(now, index, pkt);
        }
    }

    #[inline(never)]
    fn arm_replies(&mut self, now: u64, index: u32, pkt: &Parcel<P::Annex>) {
        let none = ReplyTimer { armed: u64::MAX, annex: P::Annex::default(), port: PortIndex(0) };
        self.reply_timers.resize(self.incoming.len(), none);
        let timer = &mut self.reply_timers[index as usize];
        (timer.annex, timer.port) = (pkt.annex, pkt.ingress());
        self.rearm_receiver(now, index);
    }

    #[inline(never)]
    fn rearm_receiver(&mut self, now: u64, index: u32) {
        let deadline = self.incoming[index as usize].receiver.standing().deadline.ps();
        let timer = &mut self.reply_timers[index as usize];
        if deadline < timer.armed {
            timer.armed = deadline.max(now + 1);
            self.timers.push(timer.armed, Timer::Reply(index));
        }
    }

    /// Handles a timer of a receiver that was set for `at`.
    pub(super) fn on_reply_timer(&mut self, setup: &Setup<'_>, at: u64, now: u64, index: u32) {
        let timer = &mut self.reply_timers[index as usize];
        if at != timer.armed {
            return; // a stale entry: a later one has replaced it
        }
        timer.armed = u64::MAX;
        let (annex, port) = (timer.annex, timer.port);
        let (to, port) = self.back(self.incoming[index as usize].from, port, End::Receiver(index));
        let qp = QpId(self.first_incoming + index);
        let Overdue { probe, reply } = self.incoming[index as usize].receiver.on_deadline(Time(now));
        if let Some(entropy) = probe {
            let label = Packet::new(Kind::Control, qp, to, Packet::PROBE, setup.plan.wire.ack);
            self.control.probes += 1;
            self.control.created += 1;
            let annex = P::Annex::probe(Time(now + self.clock), entropy, false);
            self.made.push(Parcel { label: label.arriving(0, port), annex });
        }
        if let Some((reply, echo)) = reply {
            let annex = self.incoming[index as usize].answer(Time(now + self.clock), &annex, echo, port);
            let label = self.label(setup, qp, to, reply).with_echo(echo);
            self.made.push(Parcel { label: label.arriving(0, port), annex });
        }
        self.rearm_receiver(now, index);
    }

    /// Tells the granter of a data packet that has arrived, or of the headers of one.
    pub(super) fn ask_granter(&mut self, now: u64, pkt: &Parcel<P::Annex>) {
        let cut = pkt.kind() == Kind::Trimmed;
        let (qp, last_hop) = (pkt.qp(), cut && pkt.echo());
        self.granter.demand(Time(now), qp, pkt.annex.amount());
        let arrival = Arrival { qp, frame: pkt.frame(), marked: pkt.marked(), cut, last_hop };
        self.granter.arrived(Time(now), arrival);
        self.arm_granter(now);
    }

    /// Makes sure that a timer fires no later than the granter's deadline, but not before `from`.
    pub(super) fn arm_granter(&mut self, from: u64) {
        let deadline = self.granter.deadline().ps();
        if deadline < self.grant_at {
            self.grant_at = deadline.max(from);
            self.timers.push(self.grant_at, Timer::Grant);
        }
    }

    /// Handles the granter's timer that was set for `at`.
    pub(super) fn on_grant_timer(&mut self, setup: &Setup<'_>, at: u64, now: u64) {
        if at != self.grant_at {
            return; // a stale entry: a later one has replaced it
        }
        self.grant_at = u64::MAX;
        if self.granter.deadline().ps() <= now {
            while let Some(Grant { qp, total, entropy }) = self.granter.grant(Time(now)) {
                let (port, to) = self.way_back(setup, now, qp);
                let annex = P::Annex::message(total, entropy);
                // Our choice: a grant has the size of an ACK.
                let label = Packet::new(Kind::Control, qp, to, Packet::AMOUNT, setup.plan.wire.ack);
                let label = label.arriving(0, port);
                self.control.grants += 1;
                self.control.created += 1;
                self.made.push(Parcel { label, annex });
            }
        }
        self.arm_granter(now + 1);
    }

    /// Takes a control message: headers that come back, a grant, or the answer to a probe, at the sender of its queue pair; a
    /// demand or a probe at the receiver. A receiver's probe and its answer go the other way, and reports on ports go both ways.
    /// Returns the answer to a probe or to a report.
    pub(super) fn on_message(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
    ) -> Option<Parcel<P::Annex>> {
        if pkt.annex.is_returned() {
            self.on_control(setup, now, pkt);
            return None;
        }
        let of_sender = self.received_by(pkt.qp()).is_none() || self.is_for_sender(setup, pkt);
        let end = match of_sender {
            true => End::Sender(setup.sender_slot[pkt.qp().index()]),
            false => End::Receiver(pkt.qp().0 - self.first_incoming),
        };
        match pkt.psn() {
            Packet::PORTS => return self.on_port_report(setup, now, pkt, end),
            Packet::PORTS_HEARD => {
                self.on_port_report_heard(pkt.annex.amount(), end);
                return None;
            }
            Packet::PROBE if of_sender => return Some(self.answer_reverse_probe(setup, now, pkt)),
            Packet::PROBE => return self.answer_probe(setup, now, pkt),
            Packet::ANSWER if !of_sender => {
                let port = self.port_of_nic(pkt.ingress());
                let receiver = &mut self.incoming[(pkt.qp().0 - self.first_incoming) as usize].receiver;
                let sent = pkt.annex.sent().map_or(now, Time::ps);
                let round_trip = Time((now + self.clock).saturating_sub(sent));
                receiver.on_probed(pkt.annex.entropy(), round_trip, port);
                return None;
            }
            Packet::ANSWER => {
                let slot = setup.sender_slot[pkt.qp().index()];
                let out = &mut self.outgoing[slot as usize];
                out.steering.on_probed(Time(now + self.clock), &pkt.annex);
                out.arm(now, slot, self.clock, &mut self.timers);
                self.enqueue(slot, now);
                return None;
            }
            _ => {}
        }
        let amount = pkt.annex.amount();
        if of_sender {
            let slot = setup.sender_slot[pkt.qp().index()];
            self.outgoing[slot as usize].congestion.on_grant(Time(now), amount);
            self.enqueue(slot, now);
        } else if !self.granter.is_idle() {
            self.granter.demand(Time(now), pkt.qp(), amount);
            self.arm_granter(now);
        }
        None
    }

    /// The answer to a probe: an ACK to a sender, and the probe itself to a steering.
    pub(super) fn answer_probe(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
    ) -> Option<Parcel<P::Annex>> {
        let index = (pkt.qp().0 - self.first_incoming) as usize;
        let (to, port) = self.back(self.incoming[index].from, pkt.ingress(), End::Receiver(index as u32));
        let receiver = &mut self.incoming[index].receiver;
        let asks = pkt.annex.request().asks;
        let reply = if asks { receiver.on_arrival(Time(now), Inbound::Probe).0.reply } else { None };
        let annex = pkt.annex.answer(Time(now + self.clock), pkt.marked(), || {
            let Telling { sack, entropy, .. } = receiver.telling(pkt.annex.entropy(), port);
            Telling { sack: if asks { sack } else { Sack::default() }, entropy, ..Telling::default() }
        });
        let label = if asks {
            self.label(setup, pkt.qp(), to, reply?)
        } else {
            self.control.probes += 1;
            self.control.created += 1;
            Packet::new(Kind::Control, pkt.qp(), to, Packet::ANSWER, setup.plan.wire.ack)
        };
        Some(Parcel { label: label.arriving(0, port), annex })
    }

    /// The answer to a receiver's probe. Our choice: it has the entropy of the probe.
    fn answer_reverse_probe(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
    ) -> Parcel<P::Annex> {
        let slot = setup.sender_slot[pkt.qp().index()];
        let (to, port) = self.back(self.outgoing[slot as usize].peer, pkt.ingress(), End::Sender(slot));
        let telling = || Telling { entropy: pkt.annex.entropy(), ..Telling::default() };
        let annex = pkt.annex.answer(Time(now + self.clock), false, telling);
        self.control.probes += 1;
        self.control.created += 1;
        let label = Packet::new(Kind::Control, pkt.qp(), to, Packet::ANSWER, setup.plan.wire.ack);
        Parcel { label: label.arriving(0, port), annex }
    }

    /// Sends a sender's probe, which leaves before the data of its host.
    #[cold]
    pub(super) fn send_probe(&mut self, setup: &Setup<'_>, now: u64, slot: u32, kind: Kind) {
        let out = &self.outgoing[slot as usize];
        let (qp, peer) = (out.qp, out.peer);
        let (port, to) =
            self.way_to(setup, now, (setup.plan.qps[qp.index()].from, peer), End::Sender(slot), 0);
        // Our choice: a probe has the size of an ACK.
        let label = Packet::new(kind, qp, to, Packet::PROBE, setup.plan.wire.ack);
        self.control.probes += 1;
        self.control.created += 1;
        let annex = P::Annex::probe(Time(now + self.clock), 0, true);
        self.made.push(Parcel { label: label.arriving(0, port), annex });
    }
}
