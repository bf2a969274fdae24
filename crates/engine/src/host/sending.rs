//! The packets of a queue pair at its sender.

use super::messages::Framed;
use super::nic::Host;
use super::noting::PacketStart;
use super::ports::End;
use super::queue_pair::{OutboundMessage, Outgoing, Recorded, SendQueue};
use super::ready::Turn;
use super::timers::Timer;
use crate::outcome::MessageRecord;
use crate::record::counts::Sends;
use crate::setup::{NO_TRACK, Setup};
use model::annex::{Request, Selective};
use model::congestion::{Congestion, Feedback};
use model::steering::{AsideKind, Sent};
use model::transport::{Departure, Position, Reply, Sender};
use model::{
    Advice, Dialogue, HostId, Kind, Pace, Packet, Parcel, Parts, Psn, QpId, QpSite, Stamped, Steering, Time,
};

/// A rate is slow if it is below this fraction of line rate. Our choice: far below any fair share of a few flows.
const SLOW: u64 = 100;

impl<P: Parts> Host<P> {
    /// Adds the sending side of a queue pair; called in the order of queue pairs.
    pub(crate) fn add_outgoing(&mut self, setup: &Setup<'_>, parts: &P, id: QpId) {
        let plan = setup.plan;
        let qp = &plan.qps[id.index()];
        let (first, slot) = (self.outbound.len() as u32, self.outgoing.len() as u32);
        if setup.sends[setup.home(qp.from).index()] == 1 {
            self.outbound.reserve_exact(qp.messages.len());
        }
        let mut end = 0;
        for m in qp.messages.clone() {
            let message = &plan.messages[m as usize];
            end += plan.wire.packets(message.bytes);
            self.outbound.push(OutboundMessage {
                record: MessageRecord::default(),
                end,
                needs: message.needs,
            });
            if !plan.jobs[message.job as usize].background {
                self.unfinished += 1;
            }
            if message.needs == 0 {
                self.liveness.pending_starts += 1;
                self.timers.push(message.start.ps(), Timer::Start(slot));
            }
        }
        let track = plan.record.track(id).map_or(NO_TRACK, |track| {
            self.sends.push(Recorded { track, counts: Sends::default() });
            self.sends.len() as u32 - 1
        });
        let first_end = self.outbound.get(first as usize).map(|o| o.end);
        let peer = self.first_peer(setup, id, track != NO_TRACK || setup.follows(id));
        let mut congestion = parts.congestion(plan, id);
        if let Some(previous) = self.outgoing.last() {
            congestion.share(&previous.congestion);
        }
        self.outgoing.push(Outgoing {
            sender: parts.sender(plan, id),
            congestion,
            steering: parts.steering(QpSite { plan, qp: id }),
            next_at: 0,
            current_end: first_end.unwrap_or(0),
            acked_end: first_end.unwrap_or(u64::MAX),
            armed: u64::MAX,
            fresh: 0,
            fresh_sent: 0,
            qp: id,
            peer,
        });
        self.line_pace = self.line_pace.min(Pace::from_bps(plan.line(qp.from).bps() as f64));
        self.holding.add(setup, id);
        if let Some(classes) = &mut self.classes {
            classes.add(setup, id);
        }
        if let Some(gaps) = parts.message_gaps(id) {
            self.message_turns.get_or_insert_default().add(slot as usize, gaps);
        }
        self.expect_port_status(setup, parts.port_notice(id), End::Sender(slot));
        let count = qp.messages.len() as u32;
        self.send_queues.push(SendQueue { first, count, posted: 0, acked: 0, current: first, track });
    }

    /// The data packet that starts on the wire now. Returns `None` if no queue pair may send at `now` after all;
    /// [`Host::eligible_at`] has then moved.
    #[inline(always)]
    pub(crate) fn pull(&mut self, setup: &Setup<'_>, now: u64) -> Option<Parcel<P::Annex>> {
        match self.classes {
            None => self.pull_first(setup, now),
            Some(_) => self.pull_by_class(setup, now),
        }
    }

    /// [`Host::pull`] among the queue pairs in [`Host::ready`].
    #[inline(always)]
    pub(super) fn pull_first(&mut self, setup: &Setup<'_>, now: u64) -> Option<Parcel<P::Annex>> {
        loop {
            let Turn { at, slot } = self.ready.first();
            if at > now {
                return None;
            }
            let mut out = &mut self.outgoing[slot as usize];
            let allowed = out.congestion.allowance(Time(now));
            if allowed.not_before.ps() > now {
                self.ready.replace_first(allowed.not_before.ps(), now);
                continue;
            }
            if out.steering.holds() {
                out.peer.set_queued(false);
                self.ready.remove_first();
                continue;
            }
            if self.ports.is_some() {
                if !self.choose_port(now, slot, allowed.window) {
                    continue;
                }
                out = &mut self.outgoing[slot as usize];
            }
            if out.steering.has_aside() && allowed.window > 0 {
                match self.send_aside(setup, now, at, slot) {
                    Some(packet) => return Some(packet),
                    None => out = &mut self.outgoing[slot as usize],
                }
            }
            if self.message_turns.is_some() {
                if !self.may_begin(now, slot, allowed.window) {
                    continue;
                }
                out = &mut self.outgoing[slot as usize];
            }
            let departure = out.sender.send(Time(now), allowed.window);
            let Some(Departure { seq, again, asks, envelope, backlog, deadline, goes_on }) = departure else {
                out.note_held(now, slot, self.clock, allowed.window, &mut self.timers);
                out.peer.set_queued(false);
                self.ready.remove_first();
                continue;
            };
            let mut packet =
                Packet::new(Kind::Data, out.qp, out.peer.to(), Psn::from_seq(seq), self.full_frame);
            if !again && seq + 1 < out.current_end {
                out.note_fresh(now + self.full_time);
            } else {
                let Framed { frame, last } = self.send_special(setup, now, slot, seq, again);
                out = &mut self.outgoing[slot as usize];
                packet = Packet::new(Kind::Data, out.qp, out.peer.to(), Psn::from_seq(seq), frame)
                    .with_last(last)
                    .with_retransmission(again);
            }
            let on_wire = u64::from(packet.frame() + self.gap);
            self.data.sent += 1;
            if out.peer.watched() {
                let start = PacketStart { now, ready: at, bytes: on_wire, pace: allowed.pace };
                self.note_sent(setup, slot, start, &packet);
                out = &mut self.outgoing[slot as usize];
            }
            let gap = out.gap(now, allowed.pace, self.line_pace, on_wire);
            let next_at = now + if self.whole_ns { whole_ns(gap) } else { gap }.ps();
            let left = out.current_end.saturating_sub(seq + 1);
            let sent = Sent { seq, again, left, frame: packet.frame() };
            let mut annex = out.steering.on_send(Time(now + self.clock), sent);
            annex.ask(|| {
                let others = self.ports.as_ref().map_or(0, |ports| ports.waiting());
                let others = others + self.classes.as_ref().map_or(0, |classes| classes.waiting());
                let active = self.ready.len() + others;
                let demand = out.congestion.on_send(Time(now), packet.frame(), backlog, active as u64);
                Request { asks: asks || demand.exhausted, envelope, total: demand.total }
            });
            out.next_at = next_at;
            if allowed.pace > self.line_pace {
                let held = if left > 0 { gap } else { Time::ZERO };
                self.note_paced(now, slot, packet.frame(), allowed.pace, held);
                out = &mut self.outgoing[slot as usize];
            }
            out.arm_for(deadline, now, slot, self.clock, &mut self.timers);
            if out.may_go_on(goes_on, allowed.window) {
                self.ready.replace_first(next_at, now);
            } else {
                out.peer.set_queued(false);
                self.ready.remove_first();
            }
            if self.ports.is_none()
                && let Some(slot) = self.ready.upcoming()
            {
                self.prefetch_outgoing(slot);
            }
            return Some(Parcel { label: packet, annex });
        }
    }

    /// A row of data packets for the only queue pair that has anything to send, from `start` on, if its pace is constant for
    /// a while and all are full frames that are sent for the first time. [`Host::end_row`] must follow.
    #[inline(always)]
    pub(crate) fn row(&mut self, start: u64) -> Option<Row> {
        if P::Annex::FEEDBACK || !self.ready.is_alone() {
            return None;
        }
        let slot = self.ready.first().slot;
        let out = self.outgoing.get_mut(slot as usize)?;
        let (seq, steady_until) = (out.sender.position().high, out.congestion.steady_until().ps());
        let mut left = out.sender.row().min(out.current_end.saturating_sub(seq + 1));
        if left == 0 || out.peer.watched() || !out.steering.is_passive() || start >= steady_until {
            return None;
        }
        if seq == 0 && self.message_turns.is_some() {
            return None; // it begins the first message
        }
        let pace = out.congestion.allowance(Time(start)).pace;
        if pace > self.line_pace {
            // The packet that completes the control's count may change the pace.
            let uncounted = out.congestion.bytes_left().saturating_sub(1) / u64::from(self.full_frame);
            left = left.min(uncounted);
            if left == 0 || pace.exceeds(self.line_pace, SLOW) {
                return None;
            }
        }
        let gap = pace.gap(u64::from(self.full_frame + self.gap));
        Some(Row {
            slot,
            qp: out.qp,
            to: out.peer.to(),
            frame: self.full_frame,
            time: self.full_time,
            gap: if self.whole_ns { whole_ns(gap) } else { gap }.ps(),
            pace,
            until: steady_until - 1,
            seq,
            left,
            start,
        })
    }

    /// The next packet of a row, which starts at `start`.
    #[inline(always)]
    pub(crate) fn pull_from(&mut self, row: &mut Row, start: u64) -> Parcel<P::Annex> {
        let label = Packet::new(Kind::Data, row.qp, row.to, Psn::from_seq(row.seq), row.frame);
        let out = &mut self.outgoing[row.slot as usize];
        let left = out.current_end.saturating_sub(row.seq + 1);
        let sent = Sent { seq: row.seq, again: false, left, frame: row.frame };
        let annex = out.steering.on_send(Time(start + self.clock), sent);
        row.seq += 1;
        row.left -= 1;
        row.start = start;
        Parcel { label, annex }
    }

    /// Counts the packets of a row that have started.
    #[inline(always)]
    pub(crate) fn end_row(&mut self, row: &Row) {
        let out = &mut self.outgoing[row.slot as usize];
        let sent = row.seq - out.sender.position().high;
        out.sender.send_row(sent);
        let paced = row.pace > self.line_pace;
        if paced {
            out.congestion.on_sent(Time(row.start), sent * u64::from(row.frame));
        }
        out.fresh += sent;
        out.fresh_sent = row.start + row.time;
        out.next_at = row.start + row.gap;
        if paced && out.next_at > row.until {
            let gap = out.gap(row.start, row.pace, self.line_pace, u64::from(row.frame + self.gap));
            out.next_at = row.start + if self.whole_ns { whole_ns(gap) } else { gap }.ps();
        }
        self.data.sent += sent;
        self.ready.replace_first(out.next_at, row.start);
    }

    /// Notes a packet that starts below line rate and holds its message for `held`: the next packet of the message waits so long.
    #[inline]
    fn note_paced(&mut self, now: u64, slot: u32, frame: u32, pace: Pace, held: Time) {
        self.outgoing[slot as usize].congestion.on_sent(Time(now), frame.into());
        if pace.exceeds(self.line_pace, SLOW) {
            let message = self.send_queues[slot as usize].current as usize;
            if let Some(message) = self.outbound.get_mut(message) {
                message.record.slow = Time(message.record.slow.ps().saturating_add(held.ps()));
            }
        }
    }

    /// The packet that the steering of a queue pair sends before all others; `None` if the steering no longer needs
    /// it. The queue pair stays first in line until its pace lets it send again.
    #[cold]
    #[inline(never)]
    fn send_aside(&mut self, setup: &Setup<'_>, now: u64, ready: u64, slot: u32) -> Option<Parcel<P::Annex>> {
        let out = &mut self.outgoing[slot as usize];
        let aside = out.steering.aside(Time(now + self.clock))?;
        let mut kind = Kind::Data;
        let (psn, last, frame) = match aside.kind {
            // Our choice: a probe and its answer have the size of an ACK.
            AsideKind::Probe => {
                kind = Kind::Control;
                self.control.probes += 1;
                self.control.created += 1;
                (Packet::PROBE, false, setup.plan.wire.ack)
            }
            AsideKind::Copy(seq) => {
                let Framed { frame, last } = self.copy_of(setup, now, slot, seq);
                self.data.duplicated += 1;
                (Psn::from_seq(seq), last, frame)
            }
            // A notice has the size of an ACK: a BTH, a source port and a range.
            AsideKind::Notice(notice) => (notice.first, false, setup.plan.wire.ack),
        };
        let out = &mut self.outgoing[slot as usize];
        let on_wire = u64::from(frame + self.gap);
        self.data.sent += u64::from(kind == Kind::Data);
        let pace = out.congestion.allowance(Time(now)).pace;
        let gap = out.gap(now, pace, self.line_pace, on_wire);
        out.next_at = now + if self.whole_ns { whole_ns(gap) } else { gap }.ps();
        self.ready.replace_first(out.next_at, now);
        if kind == Kind::Data && pace > self.line_pace {
            // A copy holds no packet of its message.
            self.note_paced(now, slot, frame, pace, Time::ZERO);
        }
        let out = &mut self.outgoing[slot as usize];
        let mut label = Packet::new(kind, out.qp, out.peer.to(), psn, frame);
        if kind == Kind::Data {
            label = label.with_last(last);
        }
        if out.peer.watched() && kind == Kind::Data {
            self.note_sent(setup, slot, PacketStart { now, ready, bytes: on_wire, pace }, &label);
        }
        Some(Parcel { label, annex: aside.annex })
    }

    /// Takes an ACK that affects no departure of this window; returns whether [`Host::on_message_acked`] must follow. For
    /// any other packet it changes nothing and returns `None`, as for all packets in runs with telemetry and for steerings
    /// that read replies. Requires [`Host::may_run_ahead`].
    #[inline(always)]
    pub(crate) fn on_free_ack(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
    ) -> Option<bool> {
        if P::Annex::FEEDBACK || pkt.kind() != Kind::Ack || pkt.echo() {
            return None; // the headers of cut data reach their receiver, which has no sender of theirs
        }
        let slot = setup.sender_slot[pkt.qp().index()];
        let out = &mut self.outgoing[slot as usize];
        // A queue pair without a turn has nothing to send; otherwise the ACK may give it a turn.
        let idle = out.peer.queued() || !out.sender.ready(u64::MAX);
        let reports = pkt.annex.selective() != Selective::Nothing;
        if !idle || reports || !out.steering.is_passive() || out.congestion.steady_until() == Time::ZERO {
            return None;
        }
        if !out.sender.on_free_ack(Time(now), pkt.psn(), self.burst) {
            return None;
        }
        self.last_event = now;
        self.control.arrived += 1;
        Some(out.sender.position().una >= out.acked_end)
    }

    /// Whether a reply may acknowledge the whole of the oldest message of its queue pair.
    pub(super) fn may_end_sent(&self, setup: &Setup<'_>, pkt: &Parcel<P::Annex>) -> bool {
        let out = &self.outgoing[setup.sender_slot[pkt.qp().index()] as usize];
        let una = out.sender.position().una;
        // A reply about packets before `una` changes nothing; one with more than its PSN may acknowledge anything.
        let ahead = pkt.psn().distance_from(Psn::from_seq(una)).max(0) as u64;
        pkt.annex.selective() != Selective::Nothing || una + ahead + 1 >= out.acked_end
    }

    /// Handles the end of a message after [`Host::on_free_ack`].
    #[cold]
    pub(crate) fn on_message_acked(&mut self, setup: &Setup<'_>, now: u64, qp: QpId) {
        let slot = setup.sender_slot[qp.index()];
        self.acknowledged(setup, now, slot);
        self.enqueue(slot, now);
        self.fire(setup, now);
    }

    /// Takes an ACK or a NACK that has arrived.
    #[inline]
    pub(crate) fn on_reply(&mut self, setup: &Setup<'_>, now: u64, pkt: &Parcel<P::Annex>) {
        self.last_event = now;
        self.control.arrived += 1;
        self.on_control(setup, now, pkt);
    }

    /// Takes a reply, a CNP, a signal, or headers that have come back.
    pub(super) fn on_control(&mut self, setup: &Setup<'_>, now: u64, pkt: &Parcel<P::Annex>) {
        let slot = setup.sender_slot[pkt.qp().index()];
        let mut out = &mut self.outgoing[slot as usize];
        let reply = match pkt.kind() {
            Kind::Ack => Reply::Ack(pkt.psn()),
            Kind::Nack => {
                self.heard.nacks += 1;
                Reply::Nack(pkt.psn())
            }
            Kind::Cnp => {
                self.heard.cnps += 1;
                match Advice::of(&pkt.label) {
                    None => out.congestion.on_cnp(Time(now)),
                    Some(advice) => out.congestion.on_advice(Time(now), advice),
                }
                if out.peer.watched() {
                    self.note_feedback(setup, now, slot, pkt);
                }
                return;
            }
            Kind::Signal => {
                out.steering.on_signal(Time(now + self.clock), pkt.annex.tag());
                out.arm(now, slot, self.clock, &mut self.timers);
                return self.enqueue(slot, now);
            }
            // Headers that have come back ask for their packet, as a NACK does.
            Kind::Control => Reply::Nack(pkt.psn()),
            Kind::Data | Kind::Trimmed | Kind::Probe => return,
        };
        let at = Time(now + self.clock);
        let heard = pkt.annex.heard(Time(now), at, reply, &mut out.congestion);
        let (progress, delivery) = out.sender.hear(Time(now), &heard);
        let Position { una, high, deadline } = out.sender.position();
        let news = Feedback {
            acked: progress.acked,
            echo: pkt.echo(),
            nack: matches!(reply, Reply::Nack(_)),
            una,
            high,
            delivery,
            ..Feedback::default()
        };
        pkt.annex.tell(Time(now), at, news, &mut out.congestion);
        if progress.nack {
            out.congestion.on_nack(Time(now));
        }
        if out.peer.watched() && pkt.kind() == Kind::Nack {
            self.note_feedback(setup, now, slot, pkt);
            out = &mut self.outgoing[slot as usize];
        }
        // The steering did not choose the path of a sender's probe.
        if !heard.answers_probe() {
            let mut room = || out.sender.room(out.congestion.allowance(Time(now)).window);
            let cnps = out.steering.on_reply(at, una, &pkt.annex, &mut room);
            (0..cnps).for_each(|_| out.congestion.on_cnp(Time(now)));
        }
        if delivery.lost > 0 {
            out.tell_losses(at.ps());
        }
        let whole = progress.acked > 0 && una >= out.acked_end;
        // Progress after a long (backed-off) timeout brings the next timeout forward.
        out.arm_for(deadline, now, slot, self.clock, &mut self.timers);
        let queued = out.peer.queued();
        if whole {
            self.acknowledged(setup, now, slot);
        }
        if !queued {
            self.enqueue(slot, now);
        }
        if whole {
            self.fire(setup, now);
        }
    }

    /// Gives a queue pair a turn if it has something to send and has no turn yet.
    #[inline]
    pub(super) fn enqueue(&mut self, slot: u32, now: u64) {
        let out = &mut self.outgoing[slot as usize];
        // Most queue pairs without a turn have sent all their packets, and would stay idle under any window.
        if out.peer.queued() || !out.can_send(u64::MAX) {
            return;
        }
        let allowed = out.congestion.allowance(Time(now));
        if out.can_send(allowed.window) {
            out.peer.set_queued(true);
            let at = out.next_at.max(now);
            self.give_turn(at, slot, now);
        } else {
            out.note_held(now, slot, self.clock, allowed.window, &mut self.timers);
        }
    }
}

/// Data packets that one queue pair sends one after the other, see [`Host::row`].
pub(crate) struct Row {
    slot: u32,
    qp: QpId,
    to: HostId,
    /// Bytes of each frame.
    pub(crate) frame: u32,
    /// Time of each frame on the wire, ps.
    pub(crate) time: u64,
    /// Time between two starts by pacing, ps.
    gap: u64,
    pace: Pace,
    /// Last time at which a packet may start, ps.
    pub(crate) until: u64,
    /// Number of the next packet.
    seq: u64,
    /// Packets left.
    left: u64,
    /// Start of the last packet, ps.
    start: u64,
}

impl Row {
    /// True if there are more packets.
    #[inline(always)]
    pub(crate) fn goes_on(&self) -> bool {
        self.left > 0
    }

    /// Time from which the next packet may start by pacing.
    #[inline(always)]
    pub(crate) fn eligible_at(&self) -> u64 {
        self.start + self.gap
    }
}

/// Pacing as in the ns-3 family: in whole nanoseconds, like the times of its links.
const fn whole_ns(gap: Time) -> Time {
    Time(gap.ps() / 1000 * 1000)
}
