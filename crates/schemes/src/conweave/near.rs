//! The sender's ToR: epochs of flows, and which path they are on.

use super::Thetas;
use super::tags::{EPOCHS, Mark, Word, stamp};
use model::{Cx, Packet, PortIndex, QpId, Time};
use std::collections::BTreeMap;

/// What a flow to some rack may expect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// A reply must come within this.
    pub(super) reply: Time,
    pub(super) paths: usize,
}

/// What a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The reply, until then.
    Reply(Time),
    /// The reply, which is late; there was no path to go to.
    LateReply,
    /// Nothing: its next packet begins a new epoch.
    Nothing,
    /// CLEAR; the TAIL was sent then.
    Clear(Time),
}

#[derive(Clone, Copy, Debug)]
struct Outgoing {
    rack: u16,
    epoch: u8,
    path: u16,
    phase: Phase,
    /// When its last packet came.
    last: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    epochs: u64,
    reroutes: u64,
    aborted: u64,
    idle: u64,
}

/// The part of a ToR that sends.
#[derive(Clone, Debug)]
pub(super) struct Near {
    /// By rack.
    limits: Vec<Limit>,
    thetas: Thetas,
    flows: BTreeMap<QpId, Outgoing>,
    /// Until when a path to a rack is busy.
    busy: BTreeMap<(u16, u16), Time>,
    counts: Counts,
}

impl Near {
    pub(super) fn new(limits: Vec<Limit>, thetas: Thetas) -> Self {
        let (flows, busy) = (BTreeMap::new(), BTreeMap::new());
        Near { limits, thetas, flows, busy, counts: Counts::default() }
    }

    /// Data from a host to another rack: where it goes.
    pub(super) fn send(
        &mut self,
        cx: &mut Cx<'_>,
        pkt: &Packet,
        rack: u16,
        ports: &[PortIndex],
    ) -> PortIndex {
        let limit = self.limits.get(usize::from(rack)).copied().filter(|limit| limit.paths > 1);
        let Some(limit) = limit else {
            cx.tag = Mark::default().tag();
            return cx.base_path(pkt, ports);
        };
        let now = cx.now;
        let mark = match self.flows.get(&pkt.qp()).copied() {
            None => {
                let path = self.draw(cx, rack, limit.paths, None).unwrap_or_else(|first| first);
                let (epoch, phase) = (EPOCHS - 1, Phase::Nothing);
                self.begin(pkt.qp(), Outgoing { rack, epoch, path, phase, last: now }, now, limit)
            }
            Some(flow) if now.since(flow.last) > self.thetas.inactive => {
                let path = self.draw(cx, rack, limit.paths, None).unwrap_or(flow.path);
                self.counts.idle += u64::from(path != flow.path);
                self.begin(pkt.qp(), Outgoing { path, ..flow }, now, limit)
            }
            Some(flow) => self.go_on(cx, pkt.qp(), flow, limit),
        };
        // The remainder is this switch's choice, and what is left is for those above it.
        let (choice, n) = (usize::from(mark.path), ports.len());
        cx.tag = Mark { rest: (choice / n) as u16, ..mark }.tag();
        ports[choice % n]
    }

    /// The next packet of a flow that has not been silent for long.
    fn go_on(&mut self, cx: &mut Cx<'_>, qp: QpId, flow: Outgoing, limit: Limit) -> Mark {
        let now = cx.now;
        // The TAIL still takes the old path.
        let plain = Mark { epoch: flow.epoch, stamp: stamp(now), path: flow.path, ..Mark::default() };
        let (mark, next) = match flow.phase {
            Phase::Nothing => return self.begin(qp, flow, now, limit),
            Phase::Clear(tail) if now.since(tail) > self.thetas.inactive => {
                return self.begin(qp, flow, now, limit);
            }
            Phase::Clear(tail) => (Mark { rerouted: true, stamp: stamp(tail), ..plain }, flow),
            Phase::Reply(deadline) if now > deadline => {
                match self.draw(cx, flow.rack, limit.paths, Some(flow.path)) {
                    Ok(path) => {
                        self.counts.reroutes += 1;
                        (Mark { tail: true, ..plain }, Outgoing { path, phase: Phase::Clear(now), ..flow })
                    }
                    Err(_) => {
                        self.counts.aborted += 1;
                        (plain, Outgoing { phase: Phase::LateReply, ..flow })
                    }
                }
            }
            Phase::Reply(_) | Phase::LateReply => (plain, flow),
        };
        self.flows.insert(qp, Outgoing { last: now, ..next });
        mark
    }

    /// The first packet of an epoch.
    fn begin(&mut self, qp: QpId, flow: Outgoing, now: Time, limit: Limit) -> Mark {
        self.counts.epochs += 1;
        let epoch = (flow.epoch + 1) % EPOCHS;
        let phase = Phase::Reply(now + limit.reply);
        self.flows.insert(qp, Outgoing { epoch, phase, last: now, ..flow });
        Mark { epoch, request: true, stamp: stamp(now), path: flow.path, ..Mark::default() }
    }

    /// The first of two drawn paths that is not busy, or else the first one; `current` is not drawn.
    fn draw(&self, cx: &mut Cx<'_>, rack: u16, paths: usize, current: Option<u16>) -> Result<u16, u16> {
        let mut one = || match current {
            Some(current) => {
                let other = cx.pick(paths - 1) as u16;
                other + u16::from(other >= current)
            }
            None => cx.pick(paths) as u16,
        };
        let drawn = [one(), one()];
        let now = cx.now;
        let free = |path: &u16| self.busy.get(&(rack, *path)).is_none_or(|until| *until <= now);
        drawn.into_iter().find(free).ok_or(drawn[0])
    }

    /// The receiver's ToR has said something of a flow.
    pub(super) fn hear(&mut self, now: Time, qp: QpId, word: Word) {
        let Some(flow) = self.flows.get_mut(&qp) else { return };
        match (word, flow.phase) {
            (Word::Reply(epoch), Phase::Reply(deadline)) if epoch == flow.epoch && now <= deadline => {
                flow.phase = Phase::Nothing;
            }
            (Word::Reply(epoch), Phase::LateReply) | (Word::Clear(epoch), Phase::Clear(_))
                if epoch == flow.epoch =>
            {
                flow.phase = Phase::Nothing;
            }
            (Word::Notify(path), _) => {
                self.busy.insert((flow.rack, path), now + self.thetas.busy);
            }
            _ => {}
        }
    }

    pub(super) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("epochs", self.counts.epochs);
        sink("reroutes", self.counts.reroutes);
        sink("reroutes_aborted", self.counts.aborted);
        sink("idle_moves", self.counts.idle);
    }
}
