//! The clockwork: one tick after the other, sender to RNIC and back.

use super::{Rescue, Story, Weather};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use themis::{Flow, Psn, Rule, Settings, Slots, Verdict, path};

enum Reply {
    Ack(u64),
    Nack(u64),
}

/// Runs one message to its end.
pub(crate) fn tell(settings: Settings, weather: &Weather) -> Story {
    let mut world = World::new(settings, weather);
    while world.una < world.end {
        world.tick();
        if world.is_quiet() {
            world.time_out();
        }
        assert!(world.now < 1_000_000, "the message does not end: {:?}", world.story);
    }
    world.story
}

struct World<'a> {
    weather: &'a Weather,
    now: u64,
    end: u64,
    // Sender.
    next: u64,
    una: u64,
    again: VecDeque<u64>,
    transmissions: u64,
    // Fabric: per path, packets with their arrival at the ToR.
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
    /// Blocked NACKs for packets that the fabric has lost.
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
    story: Story,
}

/// Ticks from the ToR back to the sender.
const BACK: u64 = 5;

impl<'a> World<'a> {
    fn new(settings: Settings, weather: &'a Weather) -> Self {
        let rule = Rule::new(settings).unwrap();
        let slots = Slots::new(settings.slots).unwrap();
        let first = weather.first;
        Self {
            weather,
            now: 0,
            end: first + weather.packets,
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
            story: Story::default(),
        }
    }

    fn tick(&mut self) {
        self.now += 1;
        self.send();
        self.cross_fabric();
        // The hard order: what leaves in the instant in which a reply comes in has left before it.
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
        if self.weather.fabric_loss.contains(&index) {
            self.lose(seq);
            return;
        }
        let lane = &mut self.paths[usize::from(path(Psn::from_seq(seq), self.slots, 3))];
        let arrival = self.now + 1 + u64::from(turn(&self.weather.delays, index).unwrap_or(0));
        let fifo = lane.back().map_or(0, |&(at, _)| at);
        lane.push_back((arrival.max(fifo), seq));
    }

    fn lose(&mut self, seq: u64) {
        *self.copies_lost.entry(seq).or_default() += 1;
        self.story.lost += 1;
    }

    fn cross_fabric(&mut self) {
        let lanes = self.paths.len();
        for i in 0..lanes {
            // Start elsewhere each tick, so that no path always wins a tie.
            let lane = &mut self.paths[(i + self.now as usize) % lanes];
            while let Some(seq) = due(lane, self.now) {
                self.egress.push_back(seq);
            }
        }
    }

    fn depart(&mut self) {
        if turn(&self.weather.port_busy, self.now) == Some(true) {
            return;
        }
        let Some(seq) = self.egress.pop_front() else { return };
        let owed = self.rule.on_depart(&mut self.flow, &mut self.ring, Psn::from_seq(seq));
        if let Some(psn) = owed {
            let named = psn.unwrap_near(seq);
            self.story.made += 1;
            self.name(named, true);
            self.to_sender.push_back((self.now + BACK, Reply::Nack(named)));
        }
        let slot = |seq| self.slots.of(Psn::from_seq(seq));
        let slept = |&lost: &u64| lost < seq && slot(lost) == slot(seq);
        self.story.slept.extend(self.owed.iter().copied().filter(slept).map(|lost| (lost, seq)));
        self.departed.insert(seq);
        self.owed.remove(&seq);
        let index = self.departures;
        self.departures += 1;
        if self.weather.last_hop_loss.contains(&index) {
            self.lose(seq);
        } else {
            self.down.push_back((self.now + 1 + u64::from(self.weather.last_hop), seq));
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
            if self.unacked < self.weather.ack_every {
                return;
            }
            self.unacked = 0;
            Reply::Ack(self.expected)
        };
        let busy = turn(&self.weather.link_busy, self.replies) == Some(true);
        self.replies += 1;
        let arrival = self.now + u64::from(busy) + u64::from(self.weather.last_hop);
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
                            *self.story.forwarded.entry(reason).or_default() += 1;
                            self.name(expected, false);
                        }
                        Verdict::Block(_) => {
                            self.story.blocked += 1;
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

    /// The sender is going to be told that `seq` is lost.
    fn name(&mut self, seq: u64, made: bool) {
        self.owed.remove(&seq);
        self.nacked.insert(seq);
        if !self.copies_lost.contains_key(&seq) {
            let list = if made { &mut self.story.spurious_made } else { &mut self.story.spurious_forwarded };
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

    /// Nothing moves any more: only the timeout is left.
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
        // The blocked NACKs and the ACKs say the same in the end; the last NACK's content may be blocked.
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
        *self.story.timeouts.entry(rescue).or_default() += 1;
        self.again.push_back(self.una);
    }
}

fn turn<T: Copy>(list: &[T], index: u64) -> Option<T> {
    list.get((index % list.len().max(1) as u64) as usize).copied()
}

fn due<T>(queue: &mut VecDeque<(u64, T)>, now: u64) -> Option<T> {
    let ready = queue.front().is_some_and(|&(at, _)| at <= now);
    if ready { queue.pop_front().map(|(_, item)| item) } else { None }
}
