//! The simulation, tick by tick, from the sender to the RNIC and back.

use super::{Conditions, Outcome, Rescue};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use themis::{Flow, Psn, Rule, Settings, Slots, Verdict, path};

enum Reply {
    Ack(u64),
    Nack(u64),
}

/// Simulates one message until all its packets are acknowledged.
pub(crate) fn simulate(settings: Settings, conditions: &Conditions) -> Outcome {
    let mut world = World::new(settings, conditions);
    while world.una < world.end {
        world.tick();
        if world.is_quiet() {
            world.time_out();
        }
        assert!(world.now < 1_000_000, "the message does not end: {:?}", world.outcome);
    }
    world.outcome
}

struct World<'a> {
    conditions: &'a Conditions,
    now: u64,
    end: u64,
    // Sender.
    next: u64,
    una: u64,
    again: VecDeque<u64>,
    transmissions: u64,
    // Fabric: by path, (arrival at the ToR, packet).
    paths: Vec<VecDeque<(u64, u64)>>,
    slots: Slots,
    copies_lost: BTreeMap<u64, u64>,
    // ToR.
    rule: Rule,
    flow: Flow,
    ring: Vec<u32>,
    egress: VecDeque<u64>,
    departures: u64,
    departed: BTreeSet<u64>,
    /// Packets that the fabric has lost and whose NACK was blocked.
    owed: BTreeSet<u64>,
    nacked: BTreeSet<u64>,
    // Last hop, down and up.
    down: VecDeque<(u64, u64)>,
    up: VecDeque<(u64, Reply)>,
    to_sender: VecDeque<(u64, Reply)>,
    // RNIC.
    expected: u64,
    early: BTreeSet<u64>,
    last_nack: Option<u64>,
    replies: u64,
    unacked: u64,
    outcome: Outcome,
}

/// Delay from the ToR back to the sender, ticks.
const BACK: u64 = 5;

impl<'a> World<'a> {
    fn new(settings: Settings, conditions: &'a Conditions) -> Self {
        let rule = Rule::new(settings).unwrap();
        let slots = Slots::new(settings.slots).unwrap();
        let first = conditions.first;
        Self {
            conditions,
            now: 0,
            end: first + conditions.packets,
            next: first,
            una: first,
            again: VecDeque::new(),
            transmissions: 0,
            paths: (0..settings.slots).map(|_| VecDeque::new()).collect(),
            slots,
            copies_lost: BTreeMap::new(),
            rule,
            flow: Flow::new(),
            ring: vec![0; rule.ring_len()],
            egress: VecDeque::new(),
            departures: 0,
            departed: BTreeSet::new(),
            owed: BTreeSet::new(),
            nacked: BTreeSet::new(),
            down: VecDeque::new(),
            up: VecDeque::new(),
            to_sender: VecDeque::new(),
            expected: first,
            early: BTreeSet::new(),
            last_nack: None,
            replies: 0,
            unacked: 0,
            outcome: Outcome::default(),
        }
    }

    fn tick(&mut self) {
        self.now += 1;
        self.send();
        self.cross_fabric();
        // The harder order for the filter: a departure comes before a reply that arrives in the same tick.
        self.depart();
        self.reach_rnic();
        self.reply_at_tor();
        self.reply_at_sender();
    }

    fn send(&mut self) {
        let seq = match self.again.pop_front() {
            Some(seq) => seq,
            None if self.next < self.end => {
                self.next += 1;
                self.next - 1
            }
            None => return,
        };
        let index = self.transmissions;
        self.transmissions += 1;
        if self.conditions.fabric_loss.contains(&index) {
            self.lose(seq);
            return;
        }
        let queue = &mut self.paths[usize::from(path(Psn::from_seq(seq), self.slots, 3))];
        let arrival = self.now + 1 + u64::from(cyclic(&self.conditions.delays, index).unwrap_or(0));
        let fifo = queue.back().map_or(0, |&(at, _)| at);
        queue.push_back((arrival.max(fifo), seq));
    }

    fn lose(&mut self, seq: u64) {
        *self.copies_lost.entry(seq).or_default() += 1;
        self.outcome.lost += 1;
    }

    fn cross_fabric(&mut self) {
        let paths = self.paths.len();
        for i in 0..paths {
            // Start at another path each tick, so that no path wins all ties.
            let queue = &mut self.paths[(i + self.now as usize) % paths];
            while let Some(seq) = due(queue, self.now) {
                self.egress.push_back(seq);
            }
        }
    }

    fn depart(&mut self) {
        if cyclic(&self.conditions.port_busy, self.now) == Some(true) {
            return;
        }
        let Some(seq) = self.egress.pop_front() else { return };
        let owed = self.rule.on_depart(&mut self.flow, &mut self.ring, Psn::from_seq(seq));
        if let Some(psn) = owed {
            let named = psn.unwrap_near(seq);
            self.outcome.made += 1;
            self.name(named, true);
            self.to_sender.push_back((self.now + BACK, Reply::Nack(named)));
        }
        let slot = |seq| self.slots.of(Psn::from_seq(seq));
        let unsent = |&lost: &u64| lost < seq && slot(lost) == slot(seq);
        self.outcome.unsent.extend(self.owed.iter().copied().filter(unsent).map(|lost| (lost, seq)));
        self.departed.insert(seq);
        self.owed.remove(&seq);
        let index = self.departures;
        self.departures += 1;
        if self.conditions.last_hop_loss.contains(&index) {
            self.lose(seq);
        } else {
            self.down.push_back((self.now + 1 + u64::from(self.conditions.last_hop), seq));
        }
    }

    fn reach_rnic(&mut self) {
        let Some(seq) = due(&mut self.down, self.now) else { return };
        if seq > self.expected {
            self.early.insert(seq);
        } else if seq == self.expected {
            self.expected += 1;
            while self.early.remove(&self.expected) {
                self.expected += 1;
            }
        }
        let reply = if seq > self.expected && self.last_nack != Some(self.expected) {
            self.last_nack = Some(self.expected);
            Reply::Nack(self.expected)
        } else {
            self.unacked += 1;
            if self.unacked < self.conditions.ack_every {
                return;
            }
            self.unacked = 0;
            Reply::Ack(self.expected)
        };
        let busy = cyclic(&self.conditions.link_busy, self.replies) == Some(true);
        self.replies += 1;
        let arrival = self.now + u64::from(busy) + u64::from(self.conditions.last_hop);
        let fifo = self.up.back().map_or(0, |&(at, _)| at);
        self.up.push_back((arrival.max(fifo), reply));
    }

    fn reply_at_tor(&mut self) {
        while let Some(reply) = due(&mut self.up, self.now) {
            match reply {
                Reply::Ack(expected) => {
                    self.rule.on_ack(&mut self.flow, Psn::from_seq(expected.wrapping_sub(1)));
                }
                Reply::Nack(expected) => {
                    match self.rule.on_nack(&mut self.flow, &self.ring, Psn::from_seq(expected)) {
                        Verdict::Forward(reason) => {
                            *self.outcome.forwarded.entry(reason).or_default() += 1;
                            self.name(expected, false);
                        }
                        Verdict::Block(_) => {
                            self.outcome.blocked += 1;
                            if self.copies_lost.contains_key(&expected) && !self.departed.contains(&expected)
                            {
                                self.owed.insert(expected);
                            }
                            continue;
                        }
                    }
                }
            }
            self.to_sender.push_back((self.now + BACK, reply));
        }
    }

    /// Counts a NACK for `seq` that goes to the sender.
    fn name(&mut self, seq: u64, made: bool) {
        self.owed.remove(&seq);
        self.nacked.insert(seq);
        if !self.copies_lost.contains_key(&seq) {
            let list =
                if made { &mut self.outcome.spurious_made } else { &mut self.outcome.spurious_forwarded };
            list.push(seq);
        }
    }

    fn reply_at_sender(&mut self) {
        while let Some(reply) = due(&mut self.to_sender, self.now) {
            match reply {
                Reply::Ack(expected) => self.una = self.una.max(expected),
                Reply::Nack(expected) if expected >= self.una => {
                    self.una = expected;
                    self.again.push_back(expected);
                }
                Reply::Nack(_) => {}
            }
        }
    }

    /// True if no packet and no reply is in flight, so that only the timeout can go on.
    fn is_quiet(&self) -> bool {
        self.next == self.end
            && self.again.is_empty()
            && self.egress.is_empty()
            && self.paths.iter().all(VecDeque::is_empty)
            && self.down.is_empty()
            && self.up.is_empty()
            && self.to_sender.is_empty()
    }

    fn time_out(&mut self) {
        // A blocked NACK also acknowledges packets, and no later reply may have repeated that.
        self.una = self.una.max(self.expected);
        if self.una == self.end {
            return;
        }
        let rescue = if self.copies_lost.get(&self.una).is_some_and(|&copies| copies > 1) {
            Rescue::Repeat
        } else if self.last_nack != Some(self.una) || self.flow.pending() == Some(Psn::from_seq(self.una)) {
            Rescue::Tail
        } else {
            Rescue::Missed
        };
        *self.outcome.timeouts.entry(rescue).or_default() += 1;
        self.again.push_back(self.una);
    }
}

fn cyclic<T: Copy>(list: &[T], index: u64) -> Option<T> {
    list.get((index % list.len().max(1) as u64) as usize).copied()
}

fn due<T>(queue: &mut VecDeque<(u64, T)>, now: u64) -> Option<T> {
    let ready = queue.front().is_some_and(|&(at, _)| at <= now);
    if ready { queue.pop_front().map(|(_, item)| item) } else { None }
}
