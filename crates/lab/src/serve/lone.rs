//! Messages that meet nobody on their paths are not sent: their closed form says when they arrive.
//!
//! While nothing is under way in the engine, messages that share no link are *kept*. When a message comes that shares a link with one of them, all
//! kept messages are posted at their own times, and the engine plays them up to now; what it says then, the program knows already. From
//! then on every message is sent, until the engine is idle. Nothing is approximated: a queue pair keeps a message to itself only after one
//! that was alone, and as long or longer than several round trips, has arrived at the picosecond of its closed form, and only while NICs would
//! forget it.

use crate::event::{Event, Kind, Line, Next};
use crate::failure::Failure;
use fast::Footprints;
use model::plan::Qp;
use model::{NodeId, Plan, QpId, Rate, Time};
use scenario::ideal::Ideals;
use serving::Message;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a queue pair.
#[derive(Clone, Copy, Debug)]
enum Alone {
    /// Messages alone of up to so many bytes take their closed form, and the ACK of the last packet took so long.
    Exact { ack: Time, bytes: u64 },
    /// It did not.
    Other,
}

/// A message that is not sent.
#[derive(Clone, Copy, Debug)]
struct Kept {
    message: Message,
    qp: QpId,
    start: Time,
    /// Time from which nothing of it is under way.
    over: Time,
}

/// A message that was sent alone, to compare.
#[derive(Clone, Copy, Debug)]
struct Audit {
    qp: QpId,
    bytes: u64,
    expected: Time,
    received: Option<Time>,
    acked: Option<Time>,
}

/// The messages that a program keeps to itself.
pub(super) struct Lone<'p> {
    plan: &'p Plan,
    ideals: Ideals<'p>,
    paths: Footprints<'p>,
    pace: Option<Rate>,
    /// Most data packets per ACK.
    per_ack: u32,
    links: BTreeMap<QpId, Vec<u32>>,
    known: BTreeMap<QpId, Alone>,
    kept: Vec<Kept>,
    /// Arrivals to come, as the engine orders them.
    due: BTreeSet<(Time, NodeId, u64)>,
    /// Kept messages whose arrival the program knows, with its time.
    told: BTreeMap<u64, Time>,
    /// Arrivals that the engine has told too early.
    early: Vec<Event>,
    /// True while the engine has something under way.
    sending: bool,
    audits: BTreeMap<u64, Audit>,
    /// Time of the latest ACK of a message that is not sent.
    pub(super) end: Time,
    /// True if the engine has denied an arrival that the program knows.
    pub(super) is_wrong: bool,
    /// Messages and their packets that were sent, and all.
    pub(super) sent: (u64, u64),
    pub(super) all: (u64, u64),
}

impl<'p> Lone<'p> {
    pub(super) fn new(plan: &'p Plan, pace: Option<Rate>, per_ack: u32) -> Self {
        Lone {
            plan,
            ideals: Ideals::new(plan),
            paths: Footprints::new(plan, true),
            pace,
            per_ack,
            links: BTreeMap::new(),
            known: BTreeMap::new(),
            kept: Vec::new(),
            due: BTreeSet::new(),
            told: BTreeMap::new(),
            early: Vec::new(),
            sending: false,
            audits: BTreeMap::new(),
            end: Time::ZERO,
            is_wrong: false,
            sent: (0, 0),
            all: (0, 0),
        }
    }

    /// The next event up to `until`, as of [`Line::next`].
    pub(super) fn next(&mut self, session: &mut impl Line, until: Option<Time>) -> Result<Next, Failure> {
        if !self.early.is_empty() {
            return Ok(Next::Event(self.early.remove(0)));
        }
        while self.sending {
            match session.next(until)? {
                Next::Event(event) if self.is_new(&event) => return Ok(Next::Event(event)),
                Next::Event(_) => {}
                Next::Idle => self.rest(),
                other => return Ok(other),
            }
        }
        match self.due.first().copied() {
            Some((at, _, id)) if until.is_none_or(|until| at <= until) => {
                self.due.pop_first();
                self.told.insert(id, at);
                let rank =
                    self.kept.iter().find(|kept| kept.message.id == id).map_or(0, |kept| kept.message.to);
                Ok(Next::Event(Event { at, rank, kind: Kind::Received, id }))
            }
            _ => Ok(if until.is_some() { Next::Until } else { Next::Idle }),
        }
    }

    /// Takes the messages that the program sends at `now`.
    pub(super) fn send(
        &mut self,
        session: &mut impl Line,
        now: Time,
        messages: &[Message],
    ) -> Result<(), Failure> {
        if messages.is_empty() {
            return Ok(());
        }
        self.kept.retain(|kept| {
            let under_way = now < kept.over;
            if !under_way {
                self.told.remove(&kept.message.id);
            }
            under_way
        });
        let alone = if self.sending { None } else { self.alone(session, messages) };
        match alone {
            Some(qps) if self.are_exact(session, now, (messages, &qps)) => self.keep(now, messages, &qps),
            Some(qps) if self.kept.is_empty() => {
                self.audits = std::iter::zip(messages, &qps)
                    .map(|(message, &qp)| {
                        let expected = now + self.arrival(qp, message.bytes);
                        let bytes = message.bytes;
                        (message.id, Audit { qp, bytes, expected, received: None, acked: None })
                    })
                    .collect();
                self.play(session, now)?;
                self.post(session, messages)?;
            }
            _ => {
                self.audits.clear();
                self.unfold(session, now)?;
                self.post(session, messages)?;
            }
        }
        let packets = |message: &Message| self.plan.wire.packets(message.bytes);
        let sum: u64 = messages.iter().map(packets).sum();
        self.all = (self.all.0 + messages.len() as u64, self.all.1 + sum);
        Ok(())
    }

    /// The queue pairs of messages that share no link with each other or with those kept.
    fn alone(&mut self, session: &impl Line, messages: &[Message]) -> Option<Vec<QpId>> {
        let mut qps = Vec::with_capacity(messages.len());
        for Message { from, to, tag, .. } in messages {
            let qp = session.queue_pair((*from, *to), *tag)?;
            let paths = &mut self.paths;
            self.links.entry(qp).or_insert_with(|| paths.both_ways(qp));
            qps.push(qp);
        }
        let all = self.kept.iter().map(|kept| kept.qp).chain(qps.iter().copied());
        let mut used = BTreeSet::new();
        all.flat_map(|qp| &self.links[&qp]).all(|link| used.insert(*link)).then_some(qps)
    }

    /// A message sends what a longer one begins with, but for its last packet. So its ACKs come as those of the longer one, if none of them
    /// waits for the one before: if no packet is shorter than an ACK.
    fn are_exact(&self, session: &mut impl Line, now: Time, (messages, qps): (&[Message], &[QpId])) -> bool {
        let wire = &self.plan.wire;
        std::iter::zip(messages, qps).all(|(message, qp)| {
            let last = wire.payload_of(message.bytes, wire.packets(message.bytes) - 1);
            let known = match self.known.get(qp) {
                Some(Alone::Exact { bytes, .. }) => {
                    message.bytes <= *bytes && wire.data_frame(last) >= wire.ack
                }
                _ => false,
            };
            known && session.forgets(*qp, now)
        })
    }

    fn arrival(&mut self, qp: QpId, bytes: u64) -> Time {
        let Qp { from, to, .. } = self.plan.qps[qp.index()];
        self.ideals.arrival(from, to, bytes, self.pace)
    }

    /// Bytes from which on a message that took its closed form speaks for all longer ones, if the ACK of its last packet took so long. What is
    /// unacknowledged grows until the first ACK returns, and then repeats with every ACK, so a window that has not held the message by then
    /// never does. This is four times as much: our choice, as more is always right.
    fn steady(&mut self, qp: QpId, ack: Time) -> u64 {
        let (wire, from) = (&self.plan.wire, self.plan.qps[qp.index()].from);
        let (line, frame, full) =
            (self.plan.line(from), u64::from(wire.max_frame()), wire.payload_of(u64::MAX, 0));
        let turn = self.arrival(qp, full.into()) + ack;
        let crossing = (u128::from(line.bps()) * u128::from(turn.ps()) / 8_000_000_000_000) as u64;
        (crossing + u64::from(self.per_ack) * frame).saturating_mul(4)
    }

    fn keep(&mut self, now: Time, messages: &[Message], qps: &[QpId]) {
        for (&message, &qp) in std::iter::zip(messages, qps) {
            let at = now + self.arrival(qp, message.bytes);
            let Some(Alone::Exact { ack, .. }) = self.known.get(&qp) else { continue };
            // Twice the time of an ACK, and a frame at the pace of the class: our choice, as a longer span is always right.
            let line = self.plan.line(self.plan.qps[qp.index()].from);
            let frame = self.plan.wire.transmission(self.pace.unwrap_or(line), self.plan.wire.max_frame());
            self.end = self.end.max(at + *ack);
            let over = Time(at.ps() + 2 * ack.ps() + 2 * frame.ps());
            self.due.insert((at, self.plan.fabric.node_of(self.plan.qps[qp.index()].to), message.id));
            self.kept.push(Kept { message, qp, start: now, over });
        }
    }

    fn post(&mut self, session: &mut impl Line, messages: &[Message]) -> Result<(), Failure> {
        self.sending = true;
        for Message { id, from, to, bytes, tag } in messages {
            self.sent = (self.sent.0 + 1, self.sent.1 + self.plan.wire.packets(*bytes));
            session.send(*id, (*from, *to), *bytes, *tag)?;
        }
        Ok(())
    }

    /// Posts all kept messages at their times, and plays the engine up to now.
    fn unfold(&mut self, session: &mut impl Line, now: Time) -> Result<(), Failure> {
        self.due.clear();
        let kept = std::mem::take(&mut self.kept);
        for Kept { message, start, .. } in kept {
            self.play(session, start)?;
            self.post(session, &[message])?;
        }
        self.play(session, now)
    }

    fn play(&mut self, session: &mut impl Line, until: Time) -> Result<(), Failure> {
        while let Next::Event(event) = session.next(Some(until))? {
            if self.is_new(&event) {
                self.early.push(event);
            }
        }
        Ok(())
    }

    /// Takes an event of the engine; returns false if the program knows it.
    fn is_new(&mut self, event: &Event) -> bool {
        if let Some(audit) = self.audits.get_mut(&event.id) {
            match event.kind {
                Kind::Received => audit.received = Some(event.at),
                _ => audit.acked = Some(event.at),
            }
        }
        if event.kind != Kind::Received {
            return true;
        }
        let told = self.told.remove(&event.id);
        self.is_wrong |= told.is_some_and(|told| told != event.at);
        told.is_none()
    }

    /// The engine is idle: what was sent alone can be compared.
    fn rest(&mut self) {
        self.sending = false;
        for Audit { qp, bytes, expected, received, acked } in std::mem::take(&mut self.audits).into_values() {
            let before = match self.known.get(&qp) {
                Some(Alone::Exact { bytes, .. }) => *bytes,
                _ => 0,
            };
            let alone = match (received, acked) {
                (Some(received), Some(acked)) if received == expected => {
                    let ack = acked.since(received);
                    let speaks = if bytes >= self.steady(qp, ack) { u64::MAX } else { bytes };
                    Alone::Exact { ack, bytes: speaks.max(before) }
                }
                _ => Alone::Other,
            };
            self.known.insert(qp, alone);
        }
    }
}
