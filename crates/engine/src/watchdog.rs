//! The watchdog of a switch: which egress queues neighbours have paused for too long, and since when.
//!
//! A switch polls its queues. A queue is *stormed* after enough polls in a row that each found it paused since the poll before, and
//! *restored* after enough polls that each found no pause since the poll before. Both follow SONiC's scripts `pfc_detect_broadcom.lua`
//! and `pfc_restore.lua` (sonic-net/sonic-swss, orchagent). A neighbour renews its pauses as long as it needs them, so a queue that
//! stays paused has got pauses.
//!
//! A rule may also ask what a queue holds, as `pfc_detect_mellanox.lua` does: it is stormed if it holds packets, has sent none since the
//! poll before, and stood paused for 99 % of that time. Then polls are events, as long as a queue is paused.
//!
//! Without such a rule, between two changes of a pause nothing happens at a poll, so the time of the poll that will decide is known when the pause
//! begins or ends: polls take no events. Both engines use this code.

use crate::setup::Setup;
use model::draw::{Key, Purpose};
use model::plan::Watchdog as Rule;
use model::{NodeId, PortIndex};
use std::collections::BTreeSet;

/// Most priorities of a port: the bits in a mask of pauses.
const PRIORITIES: usize = u8::BITS as usize;

/// What a poll decides on a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) port: PortIndex,
    pub(crate) priority: u8,
    /// True if the queue is stormed from now on, false if it is restored.
    pub(crate) stormed: bool,
    /// True if the queue's packets are dropped while it is stormed.
    pub(crate) drops: bool,
}

/// The queues of a port, a bit for each priority.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    /// Priorities that the neighbour pauses now.
    asked: u8,
    stormed: u8,
    /// Times of the polls that will decide, ps; 0 for none.
    due: [u64; PRIORITIES],
    /// What polls read that look into queues.
    seen: [Seen; PRIORITIES],
}

/// What a poll that looks into a queue knows of it.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Start of the pause that has not ended, ps, and the time of ended ones since the last poll.
    since: u64,
    paused: u64,
    /// Last start of a packet, ps, and 1; 0 for none.
    sent: u64,
    /// Number of polls in a row that found a storm.
    polls: u64,
}

/// Share of the time between two polls for which a queue must have stood paused, percent. Vendor: sonic-net/sonic-swss,
/// orchagent/pfc_detect_mellanox.lua (80 until pull request 3036).
const SHARE: u64 = 99;

/// The watchdog of one switch.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog {
    /// By priority: the rule, and the time of the first poll, ps.
    rules: [Option<(Rule, u64)>; PRIORITIES],
    ports: Vec<Port>,
    /// Times of the polls that will decide, with port and priority.
    due: BTreeSet<(u64, u16, u8)>,
    /// A bit for each priority whose packets are dropped while it is stormed.
    drops: u8,
    /// Number of queues whose packets are dropped now.
    dropping: u32,
    /// By priority, the next poll that looks into queues, ps; [`u64::MAX`] if there is nothing to see.
    polls: [u64; PRIORITIES],
}

impl Watchdog {
    /// The watchdog of a switch; `None` if it has none.
    pub(crate) fn new(setup: &Setup<'_>, node: NodeId) -> Option<Box<Self>> {
        let (plan, fabric) = (setup.plan, setup.fabric());
        let mut rules = [None; PRIORITIES];
        let mut drops = 0;
        for (group, switches) in plan.settings_of_groups().enumerate() {
            let Some(rule) = switches[fabric.switch_number(node)].flow_control.watchdog() else { continue };
            // Our choice: switches poll at times of their own.
            let first = Key::new(plan.seed, Purpose::Poll, node.0.into()).draw(0) % rule.poll.ps();
            let channels = usize::from(fabric.channels());
            let own = group * channels..(group + 1) * channels;
            rules[own.clone()].fill(Some((rule, first)));
            drops |= own.filter(|_| rule.drops).fold(0, |mask, priority| mask | 1 << priority);
        }
        let ports = vec![Port::default(); fabric.ports(node).len()];
        let any = rules.iter().any(Option::is_some);
        any.then(|| {
            Box::new(Watchdog {
                rules,
                ports,
                due: BTreeSet::new(),
                drops,
                dropping: 0,
                polls: [u64::MAX; PRIORITIES],
            })
        })
    }

    /// Learns which priorities of a port the neighbour pauses from `now` on.
    pub(crate) fn hear(&mut self, now: u64, port: usize, asked: u8) {
        let changed = self.ports[port].asked ^ asked;
        self.ports[port].asked = asked;
        for priority in (0..PRIORITIES as u8).filter(|priority| changed >> priority & 1 != 0) {
            self.plan(now, port, priority);
            if self.rules[usize::from(priority)].is_some_and(|(rule, _)| rule.held) {
                self.watch(now, port, priority);
            }
        }
    }

    /// Measures a pause that begins or ends now, for polls that look into queues.
    fn watch(&mut self, now: u64, port: usize, priority: u8) {
        let i = usize::from(priority);
        let Some((rule, first)) = self.rules[i] else { return };
        let own = &mut self.ports[port];
        let seen = &mut own.seen[i];
        if own.asked >> priority & 1 == 0 {
            seen.paused += now - seen.since;
            return;
        }
        seen.since = now;
        if self.polls[i] == u64::MAX {
            self.polls[i] = first + now.saturating_sub(first).div_ceil(rule.poll.ps()) * rule.poll.ps();
            // Nothing was paused before, so what polls have seen is long ago.
            self.ports.iter_mut().for_each(|port| {
                port.seen[i] = Seen { paused: 0, polls: 0, ..port.seen[i] };
            });
        }
    }

    /// True if the watchdog must hear of packets that start.
    pub(crate) fn looks(&self) -> bool {
        self.rules.iter().flatten().any(|(rule, _)| rule.held)
    }

    /// Hears that a packet of a priority starts at a port.
    pub(crate) fn starts(&mut self, now: u64, port: usize, priority: u8) {
        self.ports[port].seen[usize::from(priority)].sent = now + 1;
    }

    /// Looks into the queues of all priorities whose poll is now; `holds` tells whether packets of a priority wait at a port.
    pub(crate) fn look(&mut self, now: u64, holds: impl Fn(usize, u8) -> bool) {
        for priority in 0..PRIORITIES as u8 {
            let i = usize::from(priority);
            if self.polls[i] != now {
                continue;
            }
            let Some((rule, _)) = self.rules[i] else { continue };
            let (poll, mut more) = (rule.poll.ps(), false);
            for (number, port) in self.ports.iter_mut().enumerate() {
                let (asked, stormed) = (port.asked >> priority & 1 != 0, port.stormed >> priority & 1 != 0);
                let seen = &mut port.seen[i];
                let paused = seen.paused + if asked { now - seen.since } else { 0 };
                (seen.paused, seen.since) = (0, now);
                let sent = seen.sent > now.saturating_sub(poll);
                let storm = !stormed && !sent && paused * 100 >= poll * SHARE && holds(number, priority);
                seen.polls = if storm { seen.polls + 1 } else { 0 };
                if seen.polls >= rule.detection {
                    seen.polls = 0;
                    port.due[i] = now;
                    self.due.insert((now, number as u16, priority));
                }
                more |= asked && !stormed || seen.polls > 0;
            }
            self.polls[i] = if more { now + poll } else { u64::MAX };
        }
    }

    /// Plans the poll that will decide on a queue, if its pause stays as it is from `now` on.
    fn plan(&mut self, now: u64, port: usize, priority: u8) {
        let Some((rule, first)) = self.rules[usize::from(priority)] else { return };
        let own = &mut self.ports[port];
        let before = std::mem::take(&mut own.due[usize::from(priority)]);
        self.due.remove(&(before, port as u16, priority));
        let (asked, stormed) = (own.asked >> priority & 1 != 0, own.stormed >> priority & 1 != 0);
        if asked != stormed && (stormed || !rule.held) {
            let polls = if stormed { rule.restoration } else { rule.detection };
            let poll = rule.poll.ps();
            // The first poll that sees the change; at one instant pauses come before polls.
            let sees = first + now.saturating_sub(first).div_ceil(poll) * poll;
            let at = sees.saturating_add(polls.saturating_mul(poll));
            own.due[usize::from(priority)] = at;
            self.due.insert((at, port as u16, priority));
        }
    }

    /// Time of the next poll that decides or looks into queues, ps; [`u64::MAX`] if there is none.
    pub(crate) fn next(&self) -> u64 {
        let look = self.polls.iter().copied().fold(u64::MAX, u64::min);
        self.due.first().map_or(look, |(at, ..)| look.min(*at))
    }

    /// The next ruling until `now`.
    pub(crate) fn decide(&mut self, now: u64) -> Option<Ruling> {
        let &(at, port, priority) = self.due.first().filter(|(at, ..)| *at <= now)?;
        self.due.remove(&(at, port, priority));
        let (own, bit) = (&mut self.ports[usize::from(port)], 1 << priority);
        own.due[usize::from(priority)] = 0;
        own.stormed ^= bit;
        let (stormed, drops) = (own.stormed & bit != 0, self.drops & bit != 0);
        self.dropping =
            if stormed { self.dropping + u32::from(drops) } else { self.dropping - u32::from(drops) };
        Some(Ruling { port: PortIndex(port), priority, stormed, drops })
    }

    /// True if the packets of any queue are dropped now.
    pub(crate) fn is_dropping(&self) -> bool {
        self.dropping > 0
    }

    /// True if the watchdog may act or hear of a change before `close`; `event` is the time of the next change of a link.
    pub(crate) fn stirs(&self, event: u64, close: u64) -> bool {
        self.is_dropping() || event < close || self.next() < close
    }

    /// True if packets of a priority are dropped that come from a port or join its queue.
    pub(crate) fn drops(&self, port: usize, priority: u8) -> bool {
        self.ports[port].stormed & self.drops & 1 << priority != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Time;

    const MS: u64 = 1_000_000_000;

    /// A watchdog that polls at 0 ms, 200 ms and so on, and needs a storm of 400 ms and a quiet time of 200 ms.
    fn watchdog() -> Watchdog {
        let rule = Rule { poll: Time(200 * MS), detection: 2, restoration: 1, drops: true, held: false };
        let mut rules = [None; PRIORITIES];
        rules[0] = Some((rule, 0));
        Watchdog {
            rules,
            ports: vec![Port::default(); 2],
            due: BTreeSet::new(),
            drops: 1,
            dropping: 0,
            polls: [u64::MAX; PRIORITIES],
        }
    }

    #[test]
    fn a_watchdog_that_looks_finds_storms_only_where_packets_wait_and_none_leaves() {
        let mut dog = watchdog();
        dog.rules[0].as_mut().unwrap().0.held = true;
        dog.hear(50 * MS, 0, 1);
        dog.hear(50 * MS, 1, 1);
        let polls = |dog: &mut Watchdog, holds: &dyn Fn(usize) -> bool| {
            let at = dog.next();
            dog.look(at, |port, _| holds(port));
            (at / MS, dog.decide(at).map(|ruling| ruling.port.0))
        };
        assert_eq!(polls(&mut dog, &|_| true), (200, None), "it was paused for three quarters only");
        assert_eq!(polls(&mut dog, &|port| port == 1), (400, None), "one poll finds it");
        dog.hear(401 * MS, 1, 0);
        dog.hear(402 * MS, 1, 1);
        assert_eq!(
            polls(&mut dog, &|port| port == 1),
            (600, Some(1)),
            "a hole of 0.5 % in which nothing was sent"
        );
        assert_eq!(
            polls(&mut dog, &|port| port == 0),
            (800, None),
            "now packets wait at the first port, too"
        );
        dog.starts(900 * MS, 0, 0);
        assert_eq!(polls(&mut dog, &|_| true), (1_000, None), "one has left");
        dog.hear(1_100 * MS, 0, 0);
        assert_eq!(polls(&mut dog, &|_| true), (1_200, None));
        assert_eq!(dog.next(), u64::MAX, "no queue is paused but the stormed one");
        dog.hear(1_250 * MS, 1, 0);
        assert_eq!(dog.decide(dog.next()).map(|ruling| ruling.stormed), Some(false));
    }

    #[test]
    fn a_queue_is_stormed_after_polls_that_found_it_paused_all_the_time() {
        let mut dog = watchdog();
        dog.hear(50 * MS, 1, 1);
        assert_eq!(
            dog.next(),
            600 * MS,
            "the poll at 200 ms sees the pause, the next two find it paused since the one before"
        );
        dog.hear(599 * MS, 1, 0);
        assert_eq!(dog.next(), u64::MAX, "it ended before the poll");
        dog.hear(600 * MS, 1, 1);
        assert_eq!(
            (dog.next(), dog.decide(999 * MS)),
            (1_000 * MS, None),
            "a pause at the instant of a poll is seen"
        );
        let ruling = Ruling { port: PortIndex(1), priority: 0, stormed: true, drops: true };
        assert_eq!(dog.decide(1_000 * MS), Some(ruling));
        assert!(dog.is_dropping() && dog.drops(1, 0) && !dog.drops(0, 0) && !dog.drops(1, 1));
        assert_eq!(dog.next(), u64::MAX, "as long as the pause lasts");
    }

    #[test]
    fn a_queue_is_restored_after_polls_without_a_pause() {
        let mut dog = watchdog();
        dog.hear(0, 0, 1);
        assert!(dog.decide(400 * MS).is_some_and(|ruling| ruling.stormed));
        dog.hear(500 * MS, 0, 0);
        assert_eq!(dog.next(), 800 * MS, "the poll at 600 ms has seen the end");
        dog.hear(700 * MS, 0, 1);
        dog.hear(701 * MS, 0, 0);
        assert_eq!(dog.next(), 1_000 * MS, "one pause starts it anew");
        let restored = dog.decide(1_000 * MS);
        assert_eq!(restored, Some(Ruling { port: PortIndex(0), priority: 0, stormed: false, drops: true }));
        assert!(!dog.is_dropping() && dog.next() == u64::MAX);
        dog.hear(2_000 * MS, 0, 2);
        assert_eq!(dog.next(), u64::MAX, "a priority without a rule is left alone");
    }
}
