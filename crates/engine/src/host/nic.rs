//! A host's NIC: its state, and what arrives at it.

use super::classes::SendClasses;
use super::cnp_ports::CnpPorts;
use super::holding::Holding;
use super::ingress::Ingress;
use super::message_turns::MessageTurns;
use super::ports::Ports;
use super::queue_pair::{Incoming, OutboundMessage, Outgoing, Recorded, SendQueue};
use super::ready::{Ready, Turn};
use super::receive_queue::ReceiveQueue;
use super::self_cnps::SelfCnps;
use super::timers::{ReplyTimer, Timer, Timers};
use crate::outcome::{Control, Data, Heard, MessageRecord, NicRecord, Waiting};
use crate::record::Recorder;
use crate::record::counts::{Arrivals, Sends};
use crate::record::sampler::Sampler;
use crate::setup::{NO_TRACK, Setup};
use crate::stall::Liveness;
use model::congestion::Congestion;
use model::plan::Trigger;
use model::transport::{Due, Sender};
use model::wire::Clock;
use model::{Granter, HostId, Kind, Pace, Parcel, Parts, QpId, Steering, Time};

/// One port of a host, an endpoint. The ports of one host share nothing but triggers, unless they are those of a shared NIC
/// ([`super::sharing`]).
pub(crate) struct Host<P: Parts> {
    pub(super) id: HostId,
    pub(super) outgoing: Vec<Outgoing<P>>,
    pub(super) send_queues: Vec<SendQueue>,
    pub(super) incoming: Vec<Incoming<P>>,
    pub(super) first_incoming: u32,
    pub(super) outbound: Vec<OutboundMessage>,
    /// Arrival times of the messages to this host, from message `first_received` on.
    pub(super) received: Vec<Time>,
    pub(super) first_received: u32,
    pub(super) ready: Ready,
    /// The classes of its queue pairs, which then are in line there; `None` if all are in line in `ready`.
    pub(super) classes: Option<Box<SendClasses>>,
    pub(super) holding: Holding,
    /// Turns to begin a message; `None` without a limit on messages.
    pub(super) message_turns: Option<Box<MessageTurns>>,
    /// The queue for data that its NIC has received, if the host takes data slowly.
    pub(super) receive_queue: Option<Box<ReceiveQueue>>,
    /// Packets that its NIC loses while a port is nearly full, if it does.
    pub(super) ingress: Option<Box<Ingress>>,
    /// The ports of its NIC, if they serve all queue pairs of the NIC.
    pub(super) ports: Option<Box<Ports>>,
    pub(super) timers: Timers,
    pub(super) freed: Vec<Trigger>,
    /// Triggers and reports for the engine, see [`Host::take_abroad`].
    pub(super) abroad: Vec<Abroad>,
    /// CNPs that its ports may send; `None` if each queue pair counts for itself.
    pub(super) cnp_ports: Option<Box<CnpPorts>>,
    /// CNPs that its receivers send without marks, if any do.
    pub(super) self_cnps: Option<Box<SelfCnps>>,
    /// Timers of its receivers; empty until one of them has a deadline.
    pub(super) reply_timers: Vec<ReplyTimer<P::Annex>>,
    pub(super) granter: P::Granter,
    /// Time of the granter's entry in the heap; [`u64::MAX`] if there is none.
    pub(super) grant_at: u64,
    /// Packets that timers have made and the engine has not yet taken.
    pub(super) made: Vec<Parcel<P::Annex>>,
    pub(super) full_frame: u32,
    /// Preamble and gap around a frame, bytes.
    pub(super) gap: u32,
    /// Time of a full frame on the wire, ps.
    pub(super) full_time: u64,
    /// Pace of its fastest queue pair at line rate.
    pub(super) line_pace: Pace,
    /// Start of its port's row of transmission times.
    pub(super) row: u32,
    /// Most packets that its port can start in a window.
    pub(super) burst: u32,
    /// True if pacing counts in whole nanoseconds.
    pub(super) whole_ns: bool,
    /// Time by which its clock is ahead, ps.
    pub(super) clock: u64,
    /// Deliberate copies of packets that have arrived before the original.
    pub(super) copies: u64,
    /// Packets out of order by traffic class, if the plan has several classes. Classes at the end may be missing.
    pub(crate) out_of_order: Vec<u64>,
    pub(crate) data: Data,
    pub(crate) control: Control,
    pub(super) heard: Heard,
    /// Foreground messages that are not yet acknowledged.
    pub(crate) unfinished: u64,
    pub(crate) finished: u64,
    pub(crate) recorder: Recorder,
    /// Counts of recorded or followed queue pairs that this host sends.
    pub(super) sends: Vec<Recorded<Sends>>,
    /// Counts of recorded or followed queue pairs that this host receives.
    pub(super) arrivals: Vec<Recorded<Arrivals>>,
    pub(super) arrivals_of: Vec<u32>,
    /// Time of the last arrival or timer at this host, ps.
    pub(crate) last_event: u64,
    pub(crate) liveness: Liveness,
}

/// What a host hands to the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Abroad {
    /// A trigger of a task, or of a message that leaves by another port of the host.
    Trigger(Trigger),
    /// The oldest unacknowledged posted message of a queue pair is acknowledged.
    Acked(QpId),
    /// The next posted message of a queue pair has arrived.
    Received(QpId),
}

/// Packets that a host sends in answer to one arrival: at most a reply and a CNP.
pub(crate) type Replies<A> = [Option<Parcel<A>>; 2];

impl<P: Parts> Host<P> {
    /// Changes the rate of its link.
    pub(crate) fn set_rate(&mut self, setup: &Setup<'_>, row: u32) {
        self.row = row;
        self.full_time = setup.time_on_wire(row, self.full_frame);
        self.burst = burst(setup, row);
    }

    pub(crate) fn new(setup: &Setup<'_>, parts: &P, id: HostId) -> Self {
        let plan = setup.plan;
        let row = setup.ports[id.index()].row;
        let full_frame = plan.wire.max_frame();
        let full_time = setup.time_on_wire(row, full_frame);
        let first_incoming = plan.qps.partition_point(|qp| setup.home(qp.to) < id) as u32;
        let end = plan.qps.partition_point(|qp| setup.home(qp.to) <= id) as u32;
        let sends = setup.sends[id.index()] as usize;
        let mut host = Host {
            id,
            outgoing: Vec::with_capacity(sends),
            send_queues: Vec::with_capacity(sends),
            incoming: Vec::with_capacity((end - first_incoming) as usize),
            first_incoming,
            outbound: Vec::new(),
            received: Vec::new(),
            first_received: 0,
            ready: Ready::new(full_time),
            classes: SendClasses::new(setup, full_time),
            holding: Holding::default(),
            message_turns: None,
            receive_queue: ReceiveQueue::new(setup, id),
            ingress: None,
            ports: Ports::new(setup, id, full_time),
            timers: Timers::new(),
            freed: Vec::new(),
            abroad: Vec::new(),
            cnp_ports: None,
            self_cnps: None,
            reply_timers: Vec::new(),
            granter: parts.granter(plan, id),
            grant_at: u64::MAX,
            made: Vec::new(),
            full_frame,
            gap: plan.wire.gap,
            full_time,
            line_pace: Pace::from_bps(1.0),
            row,
            burst: burst(setup, row),
            whole_ns: plan.wire.clock != Clock::Picosecond,
            clock: plan.clock_ahead(id).ps(),
            copies: 0,
            out_of_order: Vec::new(),
            data: Data::default(),
            control: Control::default(),
            heard: Heard::default(),
            unfinished: 0,
            finished: 0,
            recorder: Recorder::default(),
            sends: Vec::new(),
            arrivals: Vec::new(),
            arrivals_of: Vec::new(),
            last_event: 0,
            liveness: Liveness::default(),
        };
        for q in first_incoming..end {
            host.add_incoming(setup, parts, QpId(q));
        }
        host.expect_route_changes(setup);
        host
    }

    /// True if arrivals may be computed ahead of departures: no grants, no CNPs without marks, no losses in the NIC, no queue for received
    /// data, and no record of single events.
    #[inline]
    pub(crate) fn may_run_ahead(&self, setup: &Setup<'_>) -> bool {
        self.granter.is_idle()
            && self.arrivals_of.is_empty()
            && self.self_cnps.is_none()
            && self.receive_queue.is_none()
            && self.ingress.is_none()
            && !setup.several_classes
            && !setup.follows_any()
    }

    /// The counts of its NIC.
    pub(crate) fn nic_record(&self) -> NicRecord {
        let (data, control, heard) = (&self.data, &self.control, &self.heard);
        NicRecord {
            sent: data.sent,
            retransmitted: data.retransmitted,
            accepted: data.accepted,
            duplicate: data.duplicate,
            discarded: data.discarded,
            no_room: heard.no_room,
            out_of_order: data.out_of_order,
            marked: heard.marked,
            acks_sent: control.ack,
            nacks_sent: control.nack,
            nacks_received: heard.nacks,
            cnps_sent: control.cnp,
            cnps_received: heard.cnps,
            timeouts: control.timeout,
        }
    }

    /// Time from which the first queue pair in line may send; [`u64::MAX`] if no queue pair has anything to send.
    #[inline]
    pub(crate) fn eligible_at(&self) -> u64 {
        match &self.classes {
            None => self.ready.first().at,
            Some(classes) => classes.eligible_at(),
        }
    }

    /// Time of the next timer; [`u64::MAX`] if none runs.
    #[inline]
    pub(crate) fn timer_at(&self) -> u64 {
        self.timers.first()
    }

    /// The receiving end of a queue pair, if it is at this host.
    #[inline]
    pub(super) fn received_by(&self, qp: QpId) -> Option<&Incoming<P>> {
        self.incoming.get(qp.0.wrapping_sub(self.first_incoming) as usize)
    }

    /// Takes a packet that has arrived, and returns the answers.
    #[inline]
    pub(crate) fn on_arrival(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
    ) -> Replies<P::Annex> {
        self.last_event = now;
        if matches!(pkt.kind(), Kind::Data | Kind::Trimmed) {
            if (self.receive_queue.is_some() || self.ingress.is_some())
                && pkt.is_data()
                && !self.take_in(setup, now, pkt)
            {
                return [None, None];
            }
            let got = match pkt.is_data() {
                true => self.receive::<false>(setup, now, pkt),
                false if self.returns(pkt) => return self.return_header(now, pkt),
                false => self.receive::<true>(setup, now, pkt),
            };
            let replies = self.replies(setup, now, pkt, got);
            if got.whole {
                self.complete(setup, now, pkt.qp());
            }
            replies
        } else {
            self.control.arrived += 1;
            match pkt.kind() {
                Kind::Control => [self.on_message(setup, now, pkt), None],
                Kind::Probe => [self.answer_probe(setup, now, pkt), None],
                _ => {
                    self.on_control(setup, now, pkt);
                    [None, None]
                }
            }
        }
    }

    /// Fires all timers that are due at `now`.
    pub(crate) fn on_timer(&mut self, setup: &Setup<'_>, now: u64) {
        while let Some((at, timer)) = self.timers.pop(now) {
            match timer {
                Timer::Routes => self.on_route_change(setup, now),
                Timer::Ports => self.on_ports_timer(setup, now),
                Timer::Start(slot) => {
                    self.liveness.pending_starts -= 1;
                    self.post(setup, now, slot);
                }
                Timer::Reply(index) => self.on_reply_timer(setup, at, now, index),
                Timer::Grant => self.on_grant_timer(setup, at, now),
                Timer::Receive => self.on_receive_timer(now),
                Timer::Recover(slot) => self.on_recovery(setup, now, slot),
                Timer::Retransmit(slot) => {
                    let out = &mut self.outgoing[slot as usize];
                    if at != out.armed {
                        continue; // a stale entry: a later one has replaced it
                    }
                    out.armed = u64::MAX;
                    if out.steering_deadline(self.clock) <= now {
                        out.steering.on_deadline(Time(now + self.clock));
                    }
                    let Due { probe, timeout, fired } = out.sender.on_deadline(Time(now));
                    if let Some(kind) = probe {
                        self.send_probe(setup, now, slot, kind);
                    }
                    let out = &mut self.outgoing[slot as usize];
                    if timeout {
                        out.congestion.on_timeout(Time(now));
                        out.steering.on_timeout(Time(now + self.clock));
                        self.control.timeout += 1;
                        if out.peer.watched() {
                            self.note_timeout(setup, now, slot);
                        }
                    }
                    let out = &mut self.outgoing[slot as usize];
                    let exceeded =
                        fired > 0 && setup.plan.retries_of(out.qp).is_some_and(|most| fired > most);
                    if exceeded && !self.fail_over(setup, now, slot) {
                        self.liveness.exceeded.get_or_insert((now, self.outgoing[slot as usize].qp));
                        continue; // the run ends with this window
                    }
                    let out = &mut self.outgoing[slot as usize];
                    out.tell_losses(now + self.clock);
                    let deadline = out.deadline(self.clock);
                    if deadline != u64::MAX {
                        out.armed = deadline.max(now + 1);
                        self.timers.push(out.armed, Timer::Retransmit(slot));
                    }
                    self.enqueue(slot, now);
                }
            }
        }
    }

    /// Reports the counts of its queue pairs with series.
    pub(crate) fn sample(&mut self, sampler: &mut Sampler) {
        self.sends.iter().for_each(|sends| sampler.sends(sends.track, &sends.counts));
        let recorded = self.arrivals.iter_mut().filter(|got| got.track != NO_TRACK);
        recorded.for_each(|got| sampler.arrivals(got.track, &mut got.counts));
    }

    /// Reports the counters of its queue pairs' steerings, and of its NIC.
    pub(crate) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.outgoing.iter().for_each(|out| out.steering.counters(sink));
        self.receive_queue.iter().for_each(|queue| queue.counters(sink));
        self.ingress.iter().for_each(|ingress| ingress.counters(sink));
        self.ports.iter().for_each(|ports| ports.counters(sink));
    }

    /// Copies this host's records into the outcome's table.
    pub(crate) fn collect(&self, setup: &Setup<'_>, records: &mut [MessageRecord]) {
        for (slot, out) in self.outgoing.iter().enumerate() {
            let first = setup.plan.qps[out.qp.index()].messages.start;
            for i in 0..self.send_queues[slot].count {
                let record = &mut records[(first + i) as usize];
                *record = MessageRecord { received: record.received, ..self.record(slot, i) };
            }
        }
        for (i, at) in self.received.iter().enumerate() {
            records[self.first_received as usize + i].received = *at;
        }
    }

    /// Unfinished foreground messages that this host sends, by queue pair and number in it, each with the reason why it waits.
    pub(crate) fn waiting(&self, setup: &Setup<'_>) -> Vec<(QpId, u32, Waiting)> {
        let mut list = Vec::new();
        for (out, queue) in self.outgoing.iter().zip(&self.send_queues) {
            for i in queue.acked..queue.count {
                let message = setup.message(out.qp, i);
                let job = message.job().or(setup.plan.posted);
                if job.is_some_and(|job| setup.plan.jobs[usize::from(job)].background) {
                    continue;
                }
                let outbound = &self.outbound[(queue.first + i) as usize];
                let waiting = if outbound.needs > 0 {
                    Waiting::Triggers
                } else if i >= queue.posted {
                    Waiting::Predecessor
                } else {
                    let total = setup.plan.wire.packets(message.bytes());
                    let acked = (out.sender.position().una + total).saturating_sub(outbound.end);
                    Waiting::Packets { acked, total }
                };
                list.push((out.qp, i, waiting));
            }
        }
        list
    }

    /// Takes notice of a pause or resume of its port: a bit for each priority that was paused `before` and is paused `after` it.
    #[cold]
    pub(crate) fn on_pause(&mut self, setup: &Setup<'_>, now: u64, before: u8, after: u8) {
        if before == after {
            return;
        }
        if setup.follows_any() {
            self.note_pause(setup, now, before, after);
        }
        if setup.has_own_queues() {
            let classes = self.classes.as_mut().map(|classes| classes.take_all()).unwrap_or_default();
            let turns = [self.ready.take_all(), classes, self.holding.pause(after)].concat();
            for Turn { at, slot } in turns {
                self.give_turn(at, slot, now);
            }
        }
    }
}

/// Most packets that a port can start in a window.
fn burst(setup: &Setup<'_>, row: u32) -> u32 {
    let least = setup.time_on_wire(row, setup.plan.wire.smallest_frame()).max(1);
    u32::try_from(setup.window / least + 1).unwrap_or(u32::MAX)
}
