//! One node, one window: everything that happens at it, in order of time. At one instant: pause and resume
//! frames, departures, arrivals, wake-ups.

use super::Engine;
use crate::setup::DATA;
use crate::switch::Stand;
use model::fabric::Router;
use model::{Interest, NodeId, Packet, Parts, PortIndex, Verdict};

/// What a visit knows of its switch.
struct SwitchSite<'a> {
    node: u32,
    /// Its number among switches, and the global numbers of its ports.
    index: usize,
    base: usize,
    end: usize,
    router: Router<'a>,
    interest: Interest,
}

impl<P: Parts> Engine<'_, P> {
    /// Moves the node's pause frames of this window to `self.frames`, by time and port.
    fn collect_pauses(&mut self, node: u32) {
        self.frames.clear();
        self.frame = 0;
        let pending = &mut self.pauses[node as usize];
        if pending.is_empty() {
            return;
        }
        let close = self.close;
        self.frames.extend(pending.extract_if(.., |(at, ..)| *at < close));
        self.frames.sort_by_key(|(at, port, _)| (*at, *port));
    }

    #[inline]
    fn next_frame(&self) -> u64 {
        self.frames.get(self.frame).map_or(u64::MAX, |f| f.0)
    }

    /// The earliest departure among the watched ports (all ports in a heavy visit) of a switch, and its port.
    /// A port that stands between watched ones is taken in order too, which does no harm.
    #[inline]
    fn first_watched(&self) -> (u64, usize) {
        let mut first = u64::MAX;
        let mut port = 0;
        for (i, due) in self.due[self.watched.clone()].iter().enumerate() {
            if *due < first {
                first = *due;
                port = i;
            }
        }
        (first, self.watched.start + port)
    }

    pub(crate) fn visit_switch(&mut self, node: u32) {
        let index = node as usize - self.hosts.len();
        let base = self.setup.fabric().base(NodeId(node)) as usize;
        let end = self.setup.fabric().base(NodeId(node + 1)) as usize;
        self.collect_pauses(node);
        let setup = self.setup;
        let opened = self.opened;
        let order = |p: &Packet| setup.tie(node, opened + p.offset() as u64, p.ingress());
        let mut sorter = std::mem::take(&mut self.sorter).unwrap_or_else(super::mail::Sorter::new);
        let count = self.mail.take(node as usize, &mut sorter, order);
        let incoming = count as u64 * self.largest_frame;
        // What is held may be let go into any queue.
        let held = self.switches[index].held_bytes;
        let longest = || held + self.ports[base..end].iter().map(|p| p.waiting as u64).max().unwrap_or(0);
        self.heavy = !self.switches[index].buffer.carefree(incoming, longest);
        if self.heavy {
            self.effort.heavy += 1;
            self.recount(index, base, end);
        }
        self.watched = if self.heavy { base..end } else { self.watch[index].clone() };
        self.next_own =
            self.first_watched().0.min(self.next_frame()).min(self.switches[index].wake.saturating_add(1));
        let site = SwitchSite {
            node,
            index,
            base,
            end,
            router: setup.fabric().router(NodeId(node)),
            interest: self.switches[index].interest,
        };
        for pkt in &sorter.out[..count] {
            let now = opened + pkt.offset() as u64;
            if now >= self.close {
                self.tally.under_way(pkt); // the run stops inside this window
                continue;
            }
            if self.next_own <= now {
                self.catch_up(node, now + 1, now);
            }
            self.forward(&site, now, *pkt);
        }
        self.sorter = Some(sorter);
        self.catch_up(node, self.close, self.close);
        let mut next = self.switches[index].wake;
        for gp in base..end {
            self.serve(node, gp, self.close);
            next = next.min(self.ports[gp].due());
        }
        let pending = self.pauses[node as usize].iter().map(|f| f.0).min().unwrap_or(u64::MAX);
        self.next[node as usize] = next.min(pending);
    }

    /// Before a heavy visit: light ones did not keep the buffer's charges by ingress.
    fn recount(&mut self, index: usize, base: usize, end: usize) {
        let switch = &mut self.switches[index];
        if switch.buffer.detailed() {
            return;
        }
        let one_class = self.one_class;
        let queued = self.ports[base..end].iter().flat_map(|p| p.queued_data());
        let held = switch.stashed().filter(|p| one_class || p.is_data());
        let charged = queued.chain(held).filter(|p| p.ingress() != PortIndex::VIRTUAL);
        let charges: Vec<_> = charged.map(|p| (p.ingress(), p.frame() as u64)).collect();
        switch.buffer.detail(charges.into_iter());
    }

    /// Does everything of a switch's own that comes before `limit`; wake-ups before `wake_limit`.
    fn catch_up(&mut self, node: u32, limit: u64, wake_limit: u64) {
        let index = node as usize - self.hosts.len();
        let base = self.setup.fabric().base(NodeId(node)) as usize;
        loop {
            let (due, gp) = self.first_watched();
            let (frame, wake) = (self.next_frame(), self.switches[index].wake);
            // A wake-up comes after the arrivals of its instant.
            self.next_own = due.min(frame).min(wake.saturating_add(1));
            if frame < limit && frame <= due && frame <= wake {
                let (at, port, on) = self.frames[self.frame];
                self.frame += 1;
                let gp = base + port as usize;
                self.serve(node, gp, at); // what started before the frame came
                if self.on_pause(gp, at, on) && self.ports[gp].busy <= at {
                    self.depart(node, gp, at);
                }
            } else if due < limit && due <= wake {
                self.depart(node, gp, due);
            } else if wake < wake_limit {
                let end = self.setup.fabric().base(NodeId(node + 1)) as usize;
                self.settle(node, base, end, wake);
                self.switches[index].woken(wake, &self.queued[base..end], &mut self.effects);
                self.carry_out(node, wake);
            } else {
                return;
            }
        }
    }

    /// Brings the queue lengths of the ports `from..to` up to `now`.
    #[inline]
    fn settle(&mut self, node: u32, from: usize, to: usize, now: u64) {
        for gp in from..to {
            self.serve(node, gp, now + 1);
        }
    }

    /// A packet has arrived at a switch.
    #[inline]
    fn forward(&mut self, site: &SwitchSite<'_>, now: u64, mut pkt: Packet) {
        let (node, base) = (site.node, site.base);
        let (ports, to_host) = site.router.ports(pkt.to());
        if ports.len() == 1 && !site.interest.every_packet {
            self.enqueue(node, base + ports[0].0 as usize, now, pkt, false);
            return;
        }
        if site.interest.queues {
            for port in ports {
                self.serve(node, base + port.0 as usize, now + 1);
            }
        }
        let from_host = self.faces_host(base + pkt.ingress().0 as usize);
        let stand = Stand { now, ingress: pkt.ingress(), from_host, to_host };
        let queued = &self.queued[base..site.end];
        match self.switches[site.index].judge(stand, queued, &mut pkt, ports, &mut self.effects) {
            Verdict::Forward(port) if self.effects.is_empty() => {
                return self.enqueue(node, base + port.0 as usize, now, pkt, false);
            }
            Verdict::Forward(port) => {
                // What the packet set off waits until it has joined its port, and what that sets off is done.
                let effects = std::mem::take(&mut self.effects);
                self.enqueue(node, base + port.0 as usize, now, pkt, false);
                self.effects = effects;
            }
            Verdict::Drop => self.tally.dropped_by_scheme(&pkt),
            Verdict::Hold => self.hold(node, site.index, now, pkt),
        }
        self.carry_out(node, now);
    }

    #[cold]
    fn hold(&mut self, node: u32, index: usize, now: u64, pkt: Packet) {
        let counts = self.setup.class(&pkt) == DATA;
        if counts && self.heavy && !self.admit(node, &pkt, now, 0) {
            self.tally.lost(&pkt, true);
            self.switches[index].hold(None);
            return;
        }
        if counts && !self.heavy {
            self.switches[index].buffer.charge_light(pkt.frame() as u64);
        }
        self.switches[index].hold(Some(pkt));
    }

    pub(crate) fn visit_host(&mut self, node: u32) {
        let gp = self.setup.fabric().base(NodeId(node)) as usize;
        self.collect_pauses(node);
        let setup = self.setup;
        let opened = self.opened;
        let order = |p: &Packet| setup.tie(node, opened + p.offset() as u64, p.ingress());
        let mut sorter = std::mem::take(&mut self.sorter).unwrap_or_else(super::mail::Sorter::new);
        let count = self.mail.take(node as usize, &mut sorter, order);
        self.heavy = false;
        for pkt in &sorter.out[..count] {
            let now = opened + pkt.offset() as u64;
            if now >= self.close {
                self.tally.under_way(pkt);
                continue;
            }
            if self.host_due[node as usize] <= now
                || self.next_frame() <= now
                || self.hosts[node as usize].timer_at() < now
            {
                self.host_catch_up(node, gp, now + 1, now);
            }
            let [reply, cnp] = self.hosts[node as usize].on_arrival(setup, now, pkt);
            if let Some(reply) = reply {
                self.host_enqueue(gp, reply);
            }
            if let Some(cnp) = cnp {
                self.host_enqueue(gp, cnp);
            }
            self.host_serve(node, gp, now);
        }
        self.sorter = Some(sorter);
        self.host_catch_up(node, gp, self.close, self.close);
        let pending = self.pauses[node as usize].iter().map(|f| f.0).min().unwrap_or(u64::MAX);
        self.next[node as usize] =
            self.host_due[node as usize].min(self.hosts[node as usize].timer_at()).min(pending);
    }

    /// Does everything of a host's own that comes before `limit`; timers before `timer_limit`.
    fn host_catch_up(&mut self, node: u32, gp: usize, limit: u64, timer_limit: u64) {
        loop {
            let (due, frame, timer) =
                (self.host_due[node as usize], self.next_frame(), self.hosts[node as usize].timer_at());
            if frame < limit && frame <= due && frame <= timer {
                let (at, _, on) = self.frames[self.frame];
                self.frame += 1;
                self.on_pause(gp, at, on);
                self.host_serve(node, gp, at);
            } else if due < limit && due <= timer {
                self.host_serve(node, gp, due);
            } else if timer < timer_limit {
                self.hosts[node as usize].on_timer(self.setup, timer);
                self.host_serve(node, gp, timer);
            } else {
                return;
            }
        }
    }

    fn host_enqueue(&mut self, gp: usize, pkt: Packet) {
        let class = self.setup.class(&pkt);
        self.ports[gp].push(class, pkt);
    }

    /// Starts at `now` what a host may start, and plans its next departure.
    fn host_serve(&mut self, node: u32, gp: usize, now: u64) {
        while self.ports[gp].busy <= now {
            let port = &mut self.ports[gp];
            let pkt = if port.open() != 0 {
                port.pop()
            } else if port.paused() {
                None
            } else {
                self.hosts[node as usize].pull(self.setup, now)
            };
            let Some(pkt) = pkt else { break };
            self.start(node, gp, now, pkt);
        }
        let port = &self.ports[gp];
        self.host_due[node as usize] = if port.open() != 0 {
            port.busy
        } else if port.paused() {
            u64::MAX
        } else {
            self.hosts[node as usize].eligible_at().max(port.busy)
        };
    }
}
