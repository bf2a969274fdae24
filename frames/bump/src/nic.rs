//! One NIC: which frame belongs to which flow, and whose turn it is to send.

use crate::counters::Counters;
use crate::frame::{Kind, Roce, is_nack};
use crate::out::{Note, Out, Side, What};
use crate::pairing::{Flow, MOST_FLOWS, Pairing};
use crate::personality::Personality;
use crate::receiving::{Receiving, Told};
use crate::sending::{Posted, Sending, Start, on_wire};
use model::transport::Fate;
use model::{Rate, Time};
use rnic::Nic as Parts;
use std::collections::{BTreeMap, VecDeque};
use wire::Psn;
use wire::aeth::Syndrome;

/// Time after which an unused flow makes room for another. Our choice: longer than any retry of a NIC.
const IDLE: Time = Time::from_ms(60_000);

/// What the sending sides of all NICs tell the receiving sides.
pub(crate) type Starts = BTreeMap<Flow, Told>;

/// A NIC.
pub(crate) struct Nic {
    place: usize,
    parts: Parts,
    hears_marks: bool,
    /// True if packets have a pace.
    paced: bool,
    /// Rate of the line; `None` sends at once.
    line: Option<Rate>,
    /// End of the last transmission.
    free_at: Time,
    /// Time from which its port may send a CNP, if the port counts CNPs over all flows.
    cnp_from: Time,
    sending: BTreeMap<Flow, Sending>,
    /// Replies from the network.
    answered: Pairing,
    receiving: BTreeMap<Flow, Receiving>,
    /// Replies of the host.
    answering: Pairing,
    /// Flows that may have something to send, in turn.
    turns: VecDeque<Flow>,
    connections: u64,
    pub(crate) counters: Counters,
}

/// The answers to an event.
pub(crate) type Outs = VecDeque<Out>;

impl Nic {
    pub(crate) fn new(place: usize, line: Option<Rate>, personality: &Personality) -> Self {
        Nic {
            place,
            parts: personality.build(),
            hears_marks: personality.hears_marks(),
            paced: line.is_some() || personality.has_rate(),
            line,
            free_at: Time::ZERO,
            cnp_from: Time::ZERO,
            sending: BTreeMap::new(),
            answered: Pairing::default(),
            receiving: BTreeMap::new(),
            answering: Pairing::default(),
            turns: VecDeque::new(),
            connections: 0,
            counters: Counters::default(),
        }
    }

    pub(crate) fn set_personality(&mut self, personality: &Personality) {
        self.parts = personality.build();
        self.hears_marks = personality.hears_marks();
        self.paced = self.line.is_some() || personality.has_rate();
    }

    /// Takes a frame of the host.
    pub(crate) fn take_from_host(&mut self, now: Time, frame: Vec<u8>, starts: &mut Starts, outs: &mut Outs) {
        self.counters.from_host += 1;
        let roce = Roce::of(&frame);
        match roce.map(|roce| (roce.kind, roce)) {
            Some((Kind::Request | Kind::Read(_), roce)) => {
                return self.post(now, &roce, frame, starts, outs);
            }
            Some((Kind::Reply(_) | Kind::Response, roce)) => self.host_replies(now, &roce, &frame, outs),
            _ => self.counters.passed += 1,
        }
        self.send(Side::Network, frame, outs);
    }

    /// Takes a frame of the network.
    pub(crate) fn take_from_network(
        &mut self,
        now: Time,
        mut frame: Vec<u8>,
        starts: &Starts,
        outs: &mut Outs,
    ) {
        self.counters.from_network += 1;
        let Some(roce) = Roce::of(&frame).filter(|roce| roce.kind != Kind::Other) else {
            self.counters.passed += 1;
            return self.send(Side::Host, frame, outs);
        };
        if !roce.is_intact(&frame) {
            self.counters.icrc_wrong += 1;
            return;
        }
        match roce.kind {
            Kind::Request | Kind::Read(_) => return self.arrive(now, &roce, frame, starts, outs),
            Kind::Reply(_) | Kind::Response => self.hear(now, &roce, &mut frame, outs),
            Kind::Cnp => {
                self.counters.cnps_heard += 1;
                let flow = self.answered.known(&roce).and_then(|flow| self.sending.get_mut(&flow));
                flow.into_iter().for_each(|flow| flow.on_cnp(now));
                return self.tick(now, outs);
            }
            Kind::Other => {}
        }
        self.send(Side::Host, frame, outs);
        self.tick(now, outs);
    }

    /// A request of the host.
    fn post(&mut self, now: Time, roce: &Roce, mut frame: Vec<u8>, starts: &mut Starts, outs: &mut Outs) {
        if self.hears_marks {
            roce.set_capable(&mut frame);
        }
        let flow = Flow::of(roce);
        if self.sending.len() >= MOST_FLOWS && !self.sending.contains_key(&flow) {
            if let Some(idle) = idle(now, self.sending.iter().map(|(flow, s)| (*flow, s.used))) {
                self.close(idle, starts);
            } else {
                self.counters.flows_refused += 1;
                return self.send(Side::Network, frame, outs);
            }
        }
        if let Some(sending) = self.sending.get_mut(&flow) {
            match sending.post(now, roce, frame.clone()) {
                Posted::New => self.counters.requests += 1,
                Posted::Again(timeout) => {
                    self.counters.host_resent += 1;
                    self.counters.host_timeouts += u64::from(timeout);
                    if timeout {
                        self.note(now, flow, What::HostTimeout(roce.psn), outs);
                    }
                }
                Posted::Full => self.counters.queue_full += 1,
                Posted::Foreign => {
                    self.close(flow, starts);
                    return self.open(now, flow, roce, frame, starts, outs);
                }
            }
            if let (Some(told), mtu @ Some(_)) = (starts.get_mut(&flow), sending_mtu(&self.sending, &flow)) {
                told.mtu = mtu;
            }
            if !self.turns.contains(&flow) {
                self.turns.push_back(flow);
            }
            return self.tick(now, outs);
        }
        self.open(now, flow, roce, frame, starts, outs);
    }

    /// The first request of a flow.
    fn open(
        &mut self,
        now: Time,
        flow: Flow,
        roce: &Roce,
        frame: Vec<u8>,
        starts: &mut Starts,
        outs: &mut Outs,
    ) {
        let control = self.parts.congestion(self.line.unwrap_or(Rate::from_gbps(100)));
        let mut sending = Sending::new(roce, self.parts.sender(), control, self.paced);
        if sending.post(now, roce, frame) == Posted::New {
            self.counters.requests += 1;
        }
        self.connections += 1;
        // Each NIC numbers its own connections; a flow has only one sending NIC.
        let told = Told { first: sending.first(), mtu: sending.mtu(), connection: self.connections };
        starts.insert(flow, told);
        self.sending.insert(flow, sending);
        self.turns.push_back(flow);
        self.note(now, flow, What::Opened(roce.psn), outs);
        self.tick(now, outs);
    }

    /// Forgets a flow that the host sends on.
    fn close(&mut self, flow: Flow, starts: &mut Starts) {
        let mut sending = self.sending.remove(&flow);
        self.answered.forget(flow, sending.as_mut(), &mut self.counters);
        self.turns.retain(|turn| *turn != flow);
        starts.remove(&flow);
    }

    /// A reply or response of the host, which answers a flow that arrives.
    fn host_replies(&mut self, now: Time, roce: &Roce, frame: &[u8], outs: &mut Outs) {
        let Some(flow) = self.answering.find(roce, &mut self.receiving, &mut self.counters) else { return };
        let Some(receiving) = self.receiving.get_mut(&flow) else { return };
        match roce.kind {
            Kind::Reply(syndrome) if is_nack(syndrome) => {
                self.counters.host_nacks += 1;
                receiving.resume(roce.psn, &self.parts);
                self.note(now, flow, What::Resumed(roce.psn), outs);
            }
            Kind::Reply(Syndrome::ReceiverNotReady(_)) => {
                self.counters.host_not_ready += 1;
                receiving.resume(roce.psn, &self.parts);
                self.note(now, flow, What::Resumed(roce.psn), outs);
            }
            _ => {
                if let Some(psn) = receiving.note_reply(roce, frame) {
                    self.nack(now, flow, psn, outs);
                }
            }
        }
    }

    /// A request that arrives.
    fn arrive(&mut self, now: Time, roce: &Roce, frame: Vec<u8>, starts: &Starts, outs: &mut Outs) {
        self.counters.arrived += 1;
        let flow = Flow::of(roce);
        let told = starts.get(&flow).copied();
        if self.receiving.get(&flow).is_some_and(|receiving| receiving.is_foreign(roce, told)) {
            self.forget(flow);
        }
        if self.receiving.len() >= MOST_FLOWS && !self.receiving.contains_key(&flow) {
            match idle(now, self.receiving.iter().map(|(flow, r)| (*flow, r.used))) {
                Some(idle) => self.forget(idle),
                None => {
                    self.counters.flows_refused += 1;
                    return self.send(Side::Host, frame, outs);
                }
            }
        }
        let receiving = self.receiving.entry(flow).or_insert_with(|| Receiving::new(roce, told, &self.parts));
        let arrival = receiving.arrive(now, roce, frame, told.and_then(|told| told.mtu));
        self.counters.most_held = self.counters.most_held.max(receiving.held() as u64);
        self.counters.out_of_order += u64::from(arrival.out_of_order);
        self.counters.buffer_full += u64::from(arrival.full);
        match arrival.fate {
            Some(Fate::Duplicate) => self.counters.duplicates += 1,
            Some(Fate::Discarded) => self.counters.discarded += 1,
            Some(Fate::Accepted) | None => {}
        }
        for frame in arrival.deliver {
            self.send(Side::Host, frame, outs);
        }
        if let Some(psn) = arrival.nack {
            self.nack(now, flow, psn, outs);
        }
        if arrival.cnp
            && now >= self.cnp_from
            && let Some(Ok(cnp)) =
                self.receiving.get(&flow).and_then(|r| r.template.as_ref()).map(|template| template.cnp())
        {
            self.counters.cnps_sent += 1;
            self.cnp_from = self.parts.cnp_interval_of_port().map_or(Time::ZERO, |interval| now + interval);
            self.send(Side::Network, cnp, outs);
        }
    }

    /// Forgets a flow that arrives.
    fn forget(&mut self, flow: Flow) {
        let mut receiving = self.receiving.remove(&flow);
        self.answering.forget(flow, receiving.as_mut(), &mut self.counters);
    }

    /// Sends a NACK, or notes that it is due.
    fn nack(&mut self, now: Time, flow: Flow, psn: Psn, outs: &mut Outs) {
        let Some(receiving) = self.receiving.get_mut(&flow) else { return };
        match receiving.template.as_ref().map(|template| template.nack(psn)) {
            Some(Ok(frame)) => {
                self.counters.nacks_sent += 1;
                self.note(now, flow, What::Nack(psn), outs);
                self.send(Side::Network, frame, outs);
            }
            _ => {
                self.counters.nacks_late += 1;
                receiving.owe(psn);
            }
        }
    }

    /// A reply or response that arrives. A NACK becomes an ACK for the host.
    fn hear(&mut self, now: Time, roce: &Roce, frame: &mut [u8], outs: &mut Outs) {
        let nack = matches!(roce.kind, Kind::Reply(syndrome) if is_nack(syndrome));
        self.counters.nacks_heard += u64::from(nack);
        let found = match roce.kind {
            // The PSNs of responses may lie beyond those of all requests, so they do not disprove a pair.
            Kind::Response => self.answered.known(roce),
            _ => None,
        };
        let found = found.or_else(|| self.answered.find(roce, &mut self.sending, &mut self.counters));
        let Some((flow, sending)) = found.and_then(|flow| Some((flow, self.sending.get_mut(&flow)?))) else {
            self.counters.nacks_unknown += u64::from(nack);
            return;
        };
        match roce.kind {
            Kind::Reply(Syndrome::Ack(credits)) => {
                sending.note_credits(credits);
                sending.reply(now, roce.psn, false);
            }
            Kind::Reply(Syndrome::ReceiverNotReady(_)) => sending.note_not_ready(),
            Kind::Response => {
                sending.reply(now, roce.psn, false);
            }
            _ if nack => {
                let credits = sending.credits();
                let heeded = sending.reply(now, roce.psn, true);
                roce.rewrite(frame, before(roce.psn), Syndrome::Ack(credits));
                self.note(now, flow, What::Heard(roce.psn, heeded), outs);
            }
            _ => {}
        }
        if !self.turns.contains(&flow) {
            self.turns.push_back(flow);
        }
    }

    /// Sends what may start by now.
    pub(crate) fn tick(&mut self, now: Time, outs: &mut Outs) {
        let mut waiting = 0;
        while waiting < self.turns.len() && self.free_at <= now {
            let Some(flow) = self.turns.pop_front() else { return };
            let Some(sending) = self.sending.get_mut(&flow) else { continue };
            let Some(at) = sending.ready_at(now) else { continue };
            if at > now {
                waiting += 1;
                self.turns.push_back(flow);
                continue;
            }
            let Some(Start { frame, psn, retransmitted }) = sending.start(now, &mut self.counters.no_copy)
            else {
                continue;
            };
            waiting = 0;
            self.turns.push_back(flow);
            if let Some(line) = self.line {
                self.free_at = now + line.time_for(on_wire(&frame));
            }
            if retransmitted {
                self.counters.retransmitted += 1;
                self.note(now, flow, What::Retransmit(psn), outs);
            }
            self.send(Side::Network, frame, outs);
        }
    }

    /// Time at which something may start next.
    pub(crate) fn poll_at(&mut self, now: Time) -> Option<Time> {
        let sending = &mut self.sending;
        let ready = self.turns.iter().filter_map(|flow| sending.get_mut(flow)?.ready_at(now));
        ready.min().map(|at| at.max(self.free_at))
    }

    fn send(&self, side: Side, frame: Vec<u8>, outs: &mut Outs) {
        outs.push_back(Out::Send { face: crate::Face { nic: self.place, side }, frame });
    }

    fn note(&self, at: Time, flow: Flow, what: What, outs: &mut Outs) {
        outs.push_back(Out::Note(Note { at, nic: self.place, flow, what }));
    }
}

fn sending_mtu(sending: &BTreeMap<Flow, Sending>, flow: &Flow) -> Option<u32> {
    sending.get(flow).and_then(Sending::mtu)
}

/// The flow that has been unused for longest, if that is long enough to forget it.
fn idle(now: Time, flows: impl Iterator<Item = (Flow, Time)>) -> Option<Flow> {
    flows.min_by_key(|(_, used)| *used).filter(|(_, used)| now.since(*used) > IDLE).map(|(flow, _)| flow)
}

/// The PSN before another.
fn before(psn: Psn) -> Psn {
    Psn::new(psn.value().wrapping_sub(1))
}
