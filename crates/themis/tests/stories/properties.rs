//! Properties that hold for every order of events that FIFO paths can produce.

use crate::common::{Conditions, Rescue, simulate};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use themis::{Flow, Mode, PSN_SPACE, Psn, Reason, Rule, Settings, Verdict, Width};

/// Any conditions, with at most the given numbers of losses in the fabric and on the last hop.
fn conditions(fabric: usize, last_hop: usize) -> impl Strategy<Value = Conditions> {
    let packets = 1_u64..250;
    let first =
        prop_oneof![Just(1_u64), Just(u64::from(PSN_SPACE) - 100), Just(77 * u64::from(PSN_SPACE) - 3)];
    let lists = (vec(0_u32..40, 1..60), vec(any::<bool>(), 0..7), vec(proptest::bool::weighted(0.3), 0..7));
    let ack_every = prop_oneof![2 => Just(1), 1 => 2_u64..8];
    (packets, first, lists, 0_u32..12, ack_every).prop_flat_map(
        move |(packets, first, lists, hop, ack_every)| {
            let losses = (btree_set(0..packets, 0..=fabric), btree_set(0..packets, 0..=last_hop));
            losses.prop_map(move |(fabric_loss, last_hop_loss)| {
                let (delays, link_busy, mut port_busy) = lists.clone();
                port_busy.push(false); // a port that is always busy sends nothing
                Conditions {
                    first,
                    packets,
                    delays,
                    fabric_loss,
                    last_hop_loss,
                    last_hop: hop,
                    ack_every,
                    link_busy,
                    port_busy,
                }
            })
        },
    )
}

fn slots() -> impl Strategy<Value = u16> {
    prop_oneof![Just(1), Just(2), Just(4), Just(5), Just(8), Just(16), Just(64)]
}

/// Sound settings with the shortest ring that covers the last hop, plus `more` entries.
fn sound(conditions: &Conditions, slots: u16, more: u16, watch: bool) -> Settings {
    Settings {
        watch,
        age_limit: conditions.age_limit(),
        ..Settings::sound(slots, conditions.sound_ring() + more)
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_nack_names_a_packet_that_is_merely_late(w in conditions(0, 0), n in slots(), more in 0_u16..50, watch: bool) {
        let outcome = simulate(sound(&w, n, more, watch), &w);
        prop_assert_eq!(outcome.forwarded() + outcome.made, 0, "{:?}", outcome);
        prop_assert!(outcome.timeouts.is_empty());
    }

    #[test]
    fn every_nack_names_a_lost_packet(w in conditions(6, 4), n in slots(), more in 0_u16..50, watch: bool) {
        // A coalesced ACK also waits for packets that the last hop loses, so losses there need an ACK per packet.
        let w = Conditions { ack_every: if w.last_hop_loss.is_empty() { w.ack_every } else { 1 }, ..w };
        let outcome = simulate(sound(&w, n, more, watch), &w);
        prop_assert_eq!(outcome.spurious(), 0, "{:?}", outcome);
        prop_assert_eq!(outcome.forwarded.get(&Reason::NoTrigger), None, "the ring covers the last hop");
    }

    #[test]
    fn a_loss_in_the_fabric_is_nacked_as_soon_as_its_proof_passes(w in conditions(6, 4), n in slots(), more in 0_u16..50, watch: bool) {
        let outcome = simulate(sound(&w, n, more, watch), &w);
        prop_assert_eq!(&outcome.unsent, &[], "{:?}", outcome);
    }

    #[test]
    fn with_the_watch_only_tails_and_lost_retransmissions_need_the_timeout(w in conditions(6, 4), n in slots(), more in 0_u16..50) {
        let outcome = simulate(sound(&w, n, more, true), &w);
        prop_assert_eq!(outcome.timeouts.get(&Rescue::Missed), None, "{:?}", outcome);
    }

    #[test]
    fn the_literal_mode_finds_every_loss_in_the_fabric(w in conditions(6, 0), n in slots()) {
        let outcome = simulate(Settings { width: Width::W24, ..Settings::literal(n, 400) }, &w);
        prop_assert_eq!(&outcome.unsent, &[], "{:?}", outcome);
    }

    #[test]
    fn entries_wider_than_needed_change_no_verdict(w in conditions(6, 4), log in 0_u32..7, watch: bool) {
        let whole = sound(&w, 1 << log, 10, watch);
        let narrow = Settings { width: Width::W16, ..whole };
        prop_assert_eq!(format!("{:?}", simulate(whole, &w)), format!("{:?}", simulate(narrow, &w)));
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Data(Psn),
    Nack(Psn),
    Ack(Psn),
}

/// Any event with a PSN from a small neighbourhood of the wrap, or from anywhere.
fn event() -> impl Strategy<Value = Event> {
    let psn = prop_oneof![4 => PSN_SPACE - 20..PSN_SPACE + 20, 1 => any::<u32>()].prop_map(Psn::new);
    (0..6, psn).prop_map(|(kind, psn)| match kind {
        0 => Event::Ack(psn),
        1 | 2 => Event::Nack(psn),
        _ => Event::Data(psn),
    })
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let mode = prop_oneof![Just(Mode::Literal), Just(Mode::Sound)];
    let width = prop_oneof![Just(Width::W8), Just(Width::W16), Just(Width::W24)];
    let ring = prop_oneof![8 => 1_u16..6, 1 => Just(300), 1 => Just(u16::MAX)];
    let age_limit = prop_oneof![4 => 0_u16..8, 1 => any::<u16>()];
    (mode, width, ring, age_limit, any::<bool>(), 0_u32..9).prop_map(
        |(mode, width, ring, age_limit, watch, log)| Settings {
            mode,
            slots: 1 << log,
            ring,
            width,
            age_limit,
            watch,
        },
    )
}

proptest! {
    #![proptest_config(config())]

    /// No sequence of events panics, and the ToR sends a NACK at most once for each one that it blocked.
    #[test]
    fn any_sequence_of_events_is_safe(settings in any_settings(), events in vec(event(), 0..200)) {
        let rule = Rule::new(settings).unwrap();
        let (mut flow, mut ring) = (Flow::new(), vec![0; rule.ring_len()]);
        let mut blocked = None;
        for event in events {
            match event {
                Event::Data(psn) => {
                    if let Some(owed) = rule.on_depart(&mut flow, &mut ring, psn) {
                        prop_assert_eq!(blocked.take(), Some(owed));
                        prop_assert_eq!(flow.pending(), None);
                    }
                }
                Event::Nack(psn) => {
                    if let Verdict::Block(_) = rule.on_nack(&mut flow, &ring, psn) {
                        blocked = Some(psn);
                    }
                }
                Event::Ack(psn) => rule.on_ack(&mut flow, psn),
            }
            prop_assert!(flow.pending().is_none_or(|psn| blocked == Some(psn)));
        }
        prop_assert!(ring.iter().all(|&entry| entry < 1 << settings.width.bits()));
    }
}
