//! The sender's ToR: epochs of flows, and which path they are on.

use super::Thetas;
use super::tags::{EPOCHS, Header, TorSignal, stamp};
use crate::flows::Flows;
use model::{Cx, Packet, PortIndex, QpId, Time};
use std::collections::BTreeMap;

/// Paths to one rack, and how long a reply from there may take.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    /// Longest time for a reply.
    pub(super) reply: Time,
    pub(super) paths: usize,
    /// Ports by which the paths begin while no link has failed.
    pub(super) uplinks: Vec<PortIndex>,
}

impl Limit {
    /// First port of a path.
    fn uplink(&self, path: u16) -> PortIndex {
        self.uplinks[usize::from(path) % self.uplinks.len()]
    }
}

/// Both sampled paths are busy.
#[derive(Clone, Copy, Debug)]
struct Busy;

/// What a flow waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The reply, until this deadline.
    Reply(Time),
    /// The reply, which was late at this time, and no path was free.
    LateReply(Time),
    /// Nothing: the next packet begins a new epoch.
    #[default]
    Nothing,
    /// CLEAR, since this time, at which the TAIL was sent.
    Clear(Time),
}

#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    rack: u16,
    epoch: u8,
    path: u16,
    phase: Phase,
    /// Arrival of its last packet.
    last: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    epochs: u64,
    reroutes: u64,
    aborted: u64,
    idle: u64,
    failed: u64,
}

/// Sending part of a ToR.
#[derive(Clone, Debug)]
pub(super) struct Near {
    /// By rack.
    limits: Vec<Limit>,
    thetas: Thetas,
    flows: Flows<Outgoing>,
    /// Time until which a path counts as busy, by rack and path.
    busy: BTreeMap<(u16, u16), Time>,
    counts: Counts,
}

impl Near {
    pub(super) fn new(limits: Vec<Limit>, thetas: Thetas) -> Self {
        let (flows, busy) = (Flows::new(), BTreeMap::new());
        Near { limits, thetas, flows, busy, counts: Counts::default() }
    }

    /// Chooses the port for data from a host to another rack, and writes the tag.
    pub(super) fn send(
        &mut self,
        cx: &mut Cx<'_>,
        pkt: &Packet,
        rack: u16,
        ports: &[PortIndex],
    ) -> PortIndex {
        cx.tag = Header::default().tag();
        let by_hash = cx.base_path(pkt, ports);
        let limit = self.limits.get(usize::from(rack)).filter(|limit| limit.paths > 1);
        let Some(reply) = limit.map(|limit| limit.reply) else { return by_hash };
        let (now, qp) = (cx.now, pkt.qp());
        let flow = self.flows.get(qp).copied();
        let header = match flow {
            Some(flow)
                if now.since(flow.last) <= self.thetas.inactive && self.leads(rack, flow.path, ports) =>
            {
                self.go_on(cx, qp, flow, reply, ports)
            }
            _ => {
                let drawn = self.draw(cx, rack, None, ports);
                // A path whose port no longer leads to the rack has failed.
                let stays = flow.map(|flow| flow.path).filter(|path| self.leads(rack, *path, ports));
                let Some(path) = drawn.ok().or(stays).or_else(|| self.any(cx, rack, ports)) else {
                    return by_hash;
                };
                if let Some(flow) = flow.filter(|flow| flow.path != path) {
                    let failed = !self.leads(rack, flow.path, ports);
                    self.counts.failed += u64::from(failed);
                    self.counts.idle += u64::from(!failed);
                }
                let epoch = flow.map_or(EPOCHS - 1, |flow| flow.epoch);
                self.begin(qp, Outgoing { rack, epoch, path, phase: Phase::Nothing, last: now }, now, reply)
            }
        };
        // This switch chooses by the remainder and leaves the quotient to the switches above it.
        let limit = &self.limits[usize::from(rack)];
        let rest = usize::from(header.path) / limit.uplinks.len();
        cx.tag = Header { rest: rest as u16, ..header }.tag();
        limit.uplink(header.path)
    }

    /// The next packet of a flow that is neither silent for `theta-inactive` nor on a failed path.
    fn go_on(
        &mut self,
        cx: &mut Cx<'_>,
        qp: QpId,
        flow: Outgoing,
        reply: Time,
        ports: &[PortIndex],
    ) -> Header {
        let now = cx.now;
        // The TAIL still carries the old path: `flow` is as it was before the move.
        let plain = Header { epoch: flow.epoch, stamp: stamp(now), path: flow.path, ..Header::default() };
        let (header, next) = match flow.phase {
            Phase::Nothing => return self.begin(qp, flow, now, reply),
            // The reply or CLEAR must be lost.
            Phase::Clear(since) | Phase::LateReply(since) if now.since(since) > self.thetas.inactive => {
                return self.begin(qp, flow, now, reply);
            }
            Phase::Clear(tail) => (Header { rerouted: true, stamp: stamp(tail), ..plain }, flow),
            Phase::Reply(deadline) if now > deadline => {
                match self.draw(cx, flow.rack, Some(flow.path), ports) {
                    Ok(path) => {
                        self.counts.reroutes += 1;
                        (Header { tail: true, ..plain }, Outgoing { path, phase: Phase::Clear(now), ..flow })
                    }
                    Err(Busy) => {
                        self.counts.aborted += 1;
                        (plain, Outgoing { phase: Phase::LateReply(now), ..flow })
                    }
                }
            }
            Phase::Reply(_) | Phase::LateReply(_) => (plain, flow),
        };
        self.flows.insert(qp, Outgoing { last: now, ..next });
        header
    }

    /// The first packet of an epoch.
    fn begin(&mut self, qp: QpId, flow: Outgoing, now: Time, reply: Time) -> Header {
        self.counts.epochs += 1;
        let epoch = (flow.epoch + 1) % EPOCHS;
        let phase = Phase::Reply(now + reply);
        self.flows.insert(qp, Outgoing { epoch, phase, last: now, ..flow });
        Header { epoch, request: true, stamp: stamp(now), path: flow.path, ..Header::default() }
    }

    /// True if a path begins with one of these ports.
    fn leads(&self, rack: u16, path: u16, ports: &[PortIndex]) -> bool {
        let limit = &self.limits[usize::from(rack)];
        limit.uplinks == ports || ports.contains(&limit.uplink(path))
    }

    /// The first of two sampled paths that is not busy; `current` is excluded.
    fn draw(
        &self,
        cx: &mut Cx<'_>,
        rack: u16,
        current: Option<u16>,
        ports: &[PortIndex],
    ) -> Result<u16, Busy> {
        let paths = self.limits[usize::from(rack)].paths;
        let mut one = || match current {
            Some(current) => {
                let other = cx.pick(paths - 1) as u16;
                other + u16::from(other >= current)
            }
            None => cx.pick(paths) as u16,
        };
        let drawn = [one(), one()];
        let now = cx.now;
        let free = |path: &u16| {
            let busy = self.busy.get(&(rack, *path)).is_some_and(|until| *until > now);
            !busy && self.leads(rack, *path, ports)
        };
        drawn.into_iter().find(free).ok_or(Busy)
    }

    /// A path that begins with a random one of these ports.
    fn any(&self, cx: &mut Cx<'_>, rack: u16, ports: &[PortIndex]) -> Option<u16> {
        let port = ports[cx.pick(ports.len())];
        let place = self.limits[usize::from(rack)].uplinks.iter().position(|uplink| *uplink == port)?;
        Some(place as u16)
    }

    /// A signal of the receiver's ToR about a flow.
    pub(super) fn hear(&mut self, now: Time, qp: QpId, signal: TorSignal) {
        let Some(flow) = self.flows.get_mut(qp) else { return };
        match (signal, flow.phase) {
            (TorSignal::Reply(epoch), Phase::Reply(deadline)) if epoch == flow.epoch && now <= deadline => {
                flow.phase = Phase::Nothing;
            }
            (TorSignal::Reply(epoch), Phase::LateReply(_)) | (TorSignal::Clear(epoch), Phase::Clear(_))
                if epoch == flow.epoch =>
            {
                flow.phase = Phase::Nothing;
            }
            (TorSignal::Notify(path), _) => {
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
        sink("failed_paths", self.counts.failed);
    }
}
