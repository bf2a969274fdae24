//! The reaction point of the prototype: instead of T_block, packets take another turn in the queue of their port.
//!
//! When a packet of a flow that has had a CNP reaches the head of its port, it goes to the tail instead. The port then
//! stands still until another packet joins it. A flow stays in turns until its first such packet has come round. The
//! packets that passed it meanwhile go round once more, which keeps the flow in order. The flow begins new turns as long as
//! its last CNP is not older than `memory`. With little other traffic at the port no packet wakes it, and the flow never
//! finishes. The prototype behaves like this, and this mode exists to show it.
//!
//! The scheme keeps the queues of the ports that lead into the datacentre and hands over one packet at a time. A pause of
//! such a port stops the packets that have been handed over, but not this queue (in the prototype the end of a pause wakes
//! the port).

use super::config::Config;
use model::scheme::Handle;
use model::{Cx, Kind, Packet, PortIndex, Psn, QpId, Rate, Site, Time, Verdict, Wire};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A packet in the queue of a port.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    handle: Handle,
    qp: QpId,
    /// PSN of a data packet; `None` for a reply, which never goes round.
    psn: Option<Psn>,
    frame: u32,
}

#[derive(Clone, Debug, Default)]
struct Port {
    rate: Rate,
    queue: VecDeque<Waiting>,
    /// Time until which a packet occupies the wire.
    busy: Time,
}

/// A flow that has had a CNP.
#[derive(Clone, Copy, Debug)]
struct Flow {
    heard: Time,
    turn: Turn,
}

/// Progress of a flow in its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Every packet goes round; the first one has yet to come.
    Begins,
    /// Packets go round until `first`, the first one to do so, comes back. `last` is the highest PSN that went round.
    Round { first: Psn, last: Psn },
    /// Packets up to `last` leave; later ones go round once more.
    Drains { last: Psn },
    /// The flow is not in turns.
    Over,
}

#[derive(Clone, Debug)]
pub(super) struct Prototype {
    /// Queues, by port.
    ports: Vec<Port>,
    wire: Wire,
    memory: Time,
    flows: BTreeMap<QpId, Flow>,
    /// Ports with a packet on the wire, by the end of its transmission.
    due: BTreeSet<(Time, PortIndex)>,
    episodes: u64,
    turns: u64,
    holds: u64,
}

impl Prototype {
    pub(super) fn new(config: &Config, site: Site<'_>) -> Self {
        let port = |link: &model::fabric::Link| Port { rate: link.rate, ..Port::default() };
        Prototype {
            ports: site.fabric().ports(site.node).iter().map(port).collect(),
            wire: site.plan.wire,
            memory: config.memory,
            flows: BTreeMap::new(),
            due: BTreeSet::new(),
            episodes: 0,
            turns: 0,
            holds: 0,
        }
    }

    /// Notes a CNP from either direction.
    pub(super) fn report(&mut self, now: Time, qp: QpId) {
        let flow = self.flows.entry(qp).or_insert(Flow { heard: now, turn: Turn::Begins });
        flow.heard = now;
    }

    /// A packet joins the queue of a port.
    pub(super) fn arrive(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex) -> Verdict {
        if pkt.kind() == Kind::Cnp {
            return Verdict::Forward(port); // CNPs have a queue of their own, which is served first
        }
        let waiting = Waiting {
            handle: cx.handle(),
            qp: pkt.qp(),
            psn: pkt.is_data().then(|| pkt.psn()),
            frame: pkt.frame(),
        };
        self.holds += 1;
        let at = &mut self.ports[usize::from(port.0)];
        at.queue.push_back(waiting);
        if at.busy <= cx.now {
            self.attempt(cx, port);
        }
        Verdict::Hold
    }

    pub(super) fn wake(&mut self, cx: &mut Cx<'_>) {
        while let Some(&(at, port)) = self.due.first() {
            if at > cx.now {
                break;
            }
            self.due.pop_first();
            self.attempt(cx, port);
        }
        self.alarm(cx);
    }

    fn alarm(&self, cx: &mut Cx<'_>) {
        if let Some(&(at, _)) = self.due.first() {
            cx.wake_at(at.max(Time(cx.now.ps() + 1)));
        }
    }

    /// Serves a free port once: the packet at the head leaves, or it goes to the tail and the port stands still.
    fn attempt(&mut self, cx: &mut Cx<'_>, port: PortIndex) {
        let at = usize::from(port.0);
        let Some(first) = self.ports[at].queue.pop_front() else { return };
        if let Some(psn) = first.psn
            && self.goes_round(cx.now, first.qp, psn)
        {
            self.turns += 1;
            self.ports[at].queue.push_back(first);
            return;
        }
        cx.release(first.handle, port);
        let port_state = &mut self.ports[at];
        port_state.busy = cx.now + self.wire.transmission(port_state.rate, first.frame);
        self.due.insert((port_state.busy, port));
        self.alarm(cx);
    }

    fn goes_round(&mut self, now: Time, qp: QpId, psn: Psn) -> bool {
        let Some(flow) = self.flows.get_mut(&qp) else { return false };
        let later = |a: Psn, b: Psn| a.is_after(b);
        if flow.turn == Turn::Over && now.ps() - flow.heard.ps() <= self.memory.ps() {
            flow.turn = Turn::Begins;
        }
        match flow.turn {
            Turn::Over => false,
            Turn::Begins => {
                self.episodes += 1;
                flow.turn = Turn::Round { first: psn, last: psn };
                true
            }
            Turn::Round { first, last } if psn != first => {
                flow.turn = Turn::Round { first, last: if later(psn, last) { psn } else { last } };
                true
            }
            Turn::Round { last, .. } => {
                flow.turn = if psn == last { Turn::Over } else { Turn::Drains { last } };
                false
            }
            Turn::Drains { last } if later(psn, last) => {
                flow.turn = Turn::Drains { last: last.add(1) };
                true
            }
            Turn::Drains { last } => {
                if psn == last {
                    flow.turn = Turn::Over;
                }
                false
            }
        }
    }

    pub(super) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let left: u64 = self.ports.iter().flat_map(|port| &port.queue).map(|w| u64::from(w.frame)).sum();
        for (name, count) in [
            ("episodes", self.episodes),
            ("holds", self.holds),
            ("resubmissions", self.turns),
            ("stash_left", left),
        ] {
            sink(name, count);
        }
    }
}
