//! Compares the filter with a plain ToR, which keeps every departure and reads the tables of [`super`] line by line.

extern crate std;

use super::*;
use crate::{PSN_SPACE, Settings, Width};
use proptest::collection::vec;
use proptest::prelude::*;
use std::vec::Vec;

/// A ToR that forgets nothing and computes everything anew.
struct Plain {
    settings: Settings,
    /// All departures, oldest first.
    departed: Vec<Psn>,
    /// Number of departures that the search for a trigger skips.
    dequeued: usize,
    /// PSN of the blocked NACK. While watching: the number of departures at which its packet counts as lost.
    waits: Option<(Psn, Option<usize>)>,
}

impl Plain {
    fn new(settings: Settings) -> Self {
        Self { settings, departed: Vec::new(), dequeued: 0, waits: None }
    }

    fn slot(&self, psn: Psn) -> u32 {
        psn.value() % u32::from(self.settings.slots)
    }

    /// Distance from an expected PSN to a departed one, in the bits that the ring keeps.
    fn distance(&self, departed: Psn, expected: Psn) -> u32 {
        departed.value().wrapping_sub(expected.value()) % (1 << self.settings.width.bits())
    }

    fn is_later(&self, departed: Psn, expected: Psn) -> bool {
        let half = 1 << (self.settings.width.bits() - 1);
        (1..half).contains(&self.distance(departed, expected))
    }

    /// Numbers of the newest `most` departures, oldest first.
    fn newest(&self, most: usize) -> std::ops::Range<usize> {
        self.departed.len().saturating_sub(most)..self.departed.len()
    }

    fn watches(&self) -> bool {
        self.settings.watch && self.settings.mode == Mode::Sound
    }

    fn watch(&mut self, psn: Psn, departures: usize) {
        self.waits = Some((psn, Some(self.departed.len() + departures.max(1))));
    }

    fn on_depart(&mut self, psn: Psn) -> Option<Psn> {
        self.departed.push(psn);
        let (blocked, due) = self.waits?;
        if psn == blocked {
            self.waits = None;
            if self.watches() {
                self.watch(psn, usize::from(self.settings.age_limit));
            }
            return None;
        }
        let lost = match due {
            Some(due) => self.departed.len() >= due,
            None => psn.is_after(blocked) && self.slot(psn) == self.slot(blocked),
        };
        if lost {
            self.waits = None;
        }
        lost.then_some(blocked)
    }

    fn on_ack(&mut self, acked: Psn) {
        if self.watches() && self.waits.is_some_and(|(blocked, _)| !blocked.is_after(acked)) {
            self.waits = None;
        }
    }

    fn on_nack(&mut self, expected: Psn) -> Verdict {
        match self.settings.mode {
            Mode::Literal => self.on_nack_literally(expected),
            Mode::Sound => self.on_nack_soundly(expected),
        }
    }

    fn on_nack_literally(&mut self, expected: Psn) -> Verdict {
        let mut left = self.newest(self.settings.ring.into()).skip_while(|i| *i < self.dequeued);
        let trigger = left.find(|i| self.is_later(self.departed[*i], expected));
        self.dequeued = trigger.map_or(self.departed.len(), |i| i + 1);
        let reason = match trigger.map(|i| self.departed[i]) {
            Some(psn) if self.slot(psn) == self.slot(expected) => return Verdict::Forward(Reason::SamePath),
            Some(_) => Reason::OtherPath,
            None => Reason::NoTrigger,
        };
        self.waits = Some((expected, None));
        Verdict::Block(reason)
    }

    fn on_nack_soundly(&mut self, expected: Psn) -> Verdict {
        // 2^(w - 1) - 1 is the largest distance that w bits order.
        let most = usize::from(self.settings.ring).min((1 << (self.settings.width.bits() - 1)) - 1);
        let later: Vec<usize> =
            self.newest(most).filter(|i| self.is_later(self.departed[*i], expected)).collect();
        let trigger = later.iter().copied().find(|i| *i >= self.dequeued);
        let copy = self.newest(most).rev().find(|i| self.distance(self.departed[*i], expected) == 0);
        self.dequeued = trigger.map_or(self.dequeued, |i| i + 1);
        self.waits = None;
        let Some(copy) = copy else {
            return if later.iter().any(|i| self.slot(self.departed[*i]) == self.slot(expected)) {
                Verdict::Forward(Reason::SamePath)
            } else if later.is_empty() {
                Verdict::Forward(Reason::NoTrigger)
            } else {
                self.waits = Some((expected, None));
                Verdict::Block(Reason::OtherPath)
            };
        };
        let (age, limit) = (self.departed.len() - 1 - copy, usize::from(self.settings.age_limit));
        if trigger.is_some_and(|trigger| trigger > copy) {
            return Verdict::Forward(Reason::SeenBefore);
        }
        if age >= limit {
            return Verdict::Forward(Reason::OldEntry);
        }
        if self.settings.watch {
            self.watch(expected, limit - age);
        }
        Verdict::Block(Reason::OnTheWire)
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Data(Psn),
    Nack(Psn),
    Ack(Psn),
}

/// Events of a flow whose packets overtake each other, with a few jumps to the distances at which truncated PSNs lose their
/// order.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let jump = prop_oneof![
        40 => Just(1),
        1 => prop::sample::select(std::vec![60, 126, 127, 128, 256, 32_767, 32_768, 1 << 23]),
    ];
    let event = (0..12, -8_i64..8, 0_i64..40, jump);
    let first = prop::sample::select(std::vec![100, PSN_SPACE - 40]);
    (first, vec(event, 0..250)).prop_map(|(first, events)| {
        let mut next = i64::from(first);
        let psn = |number: i64| Psn::from_seq(number as u64);
        let turn = |(kind, late, back, jump)| match kind {
            0 => Event::Ack(psn(next - back)),
            1 | 2 => Event::Nack(psn(next - back / 2)),
            _ => {
                next += jump;
                Event::Data(psn(next + late))
            }
        };
        events.into_iter().map(turn).collect()
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let mode = prop_oneof![1 => Just(Mode::Literal), 2 => Just(Mode::Sound)];
    // Only whole PSNs have slots for every N.
    let slots = prop_oneof![
        2 => (0_u32..6).prop_map(|log| (1 << log, None)),
        1 => (1_u16..20).prop_map(|n| (n, Some(Width::W24))),
    ];
    let width = prop_oneof![Just(Width::W8), Just(Width::W16), Just(Width::W24)];
    let ring = prop_oneof![1_u16..8, 8_u16..70, Just(127), Just(128), Just(200)];
    (mode, slots, width, ring, 0_u16..60, any::<bool>()).prop_map(
        |(mode, (slots, only), width, ring, age_limit, watch)| {
            let width = only.unwrap_or(width);
            Settings { mode, slots, ring, width, age_limit, watch }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_filter_answers_like_a_tor_that_forgets_nothing(settings in settings(), events in events()) {
        let rule = Rule::new(settings).unwrap();
        let (mut flow, mut ring) = (Flow::new(), std::vec![0; rule.ring_len()]);
        let mut plain = Plain::new(settings);
        for event in events {
            match event {
                Event::Data(psn) => {
                    prop_assert_eq!(flow.next_index(), plain.departed.len() % rule.ring_len());
                    let owed = rule.on_depart(&mut flow, &mut ring, psn);
                    prop_assert_eq!(owed, plain.on_depart(psn), "{:?}", event);
                }
                Event::Nack(psn) => {
                    prop_assert_eq!(rule.on_nack(&mut flow, &ring, psn), plain.on_nack(psn), "{:?}", event);
                }
                Event::Ack(psn) => {
                    rule.on_ack(&mut flow, psn);
                    plain.on_ack(psn);
                }
            }
            prop_assert_eq!(flow.pending(), plain.waits.map(|(psn, _)| psn), "{:?}", event);
        }
    }

    /// The short way takes every packet that sends no NACK and is not the awaited one, and it does the same.
    #[test]
    fn the_short_way_for_plain_departures_leads_to_the_same_state(settings in settings(), events in events()) {
        let rule = Rule::new(settings).unwrap();
        let (mut flow, mut ring) = (Flow::new(), std::vec![0; rule.ring_len()]);
        for event in events {
            match event {
                Event::Data(psn) => {
                    let (mut short, mut short_ring) = (flow, ring.clone());
                    let plain = rule.on_plain_depart(&mut short, &mut short_ring, psn);
                    let awaited = flow.pending() == Some(psn);
                    let before = (flow, ring.clone());
                    let owed = rule.on_depart(&mut flow, &mut ring, psn);
                    prop_assert_eq!(plain, owed.is_none() && !awaited);
                    let wanted = if plain { (flow, ring.clone()) } else { before };
                    prop_assert_eq!((short, short_ring), wanted);
                }
                Event::Nack(psn) => _ = rule.on_nack(&mut flow, &ring, psn),
                Event::Ack(psn) => rule.on_ack(&mut flow, psn),
            }
        }
    }
}

/// The longest ring has 65,535 entries. The counters of its entries must stop there.
#[test]
fn the_longest_ring_finds_its_oldest_entry_after_many_rounds() {
    let rule = Rule::new(Settings::sound(4, u16::MAX)).unwrap();
    let (mut flow, mut ring) = (Flow::new(), std::vec![0; rule.ring_len()]);
    for n in 0..200_000 {
        assert_eq!(rule.on_depart(&mut flow, &mut ring, Psn::new(n)), None);
    }
    // The ring holds 134,465 to 199,999, so the next older packet is not in the ring.
    let seen = rule.on_nack(&mut flow, &ring, Psn::new(200_000 - 65_535));
    assert_eq!(seen, Verdict::Forward(Reason::SeenBefore));
    let unseen = rule.on_nack(&mut flow, &ring, Psn::new(200_000 - 65_536));
    assert_eq!(unseen, Verdict::Forward(Reason::SamePath));
}
