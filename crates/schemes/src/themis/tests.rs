//! Scenes at one switch under Themis. The crate `themis` tests which packets count as lost or late.

use super::config::{Entries, Judging};
use super::hashes::{Algorithm, Hash};
use super::*;
use crate::bench::{Bench, leaf_spine, leaf_spine_at, leaf_spine_parallel, pods, qp, reply};
use crate::{AnyScheme, SchemeConfig};
use model::plan::Message;
use model::{Rate, Time};
use std::collections::BTreeSet;

fn config() -> Config {
    Config::default()
}

fn bench(plan: &Plan, switch: &str, config: Config) -> Bench {
    Bench::new(plan, switch, &SchemeConfig::Themis(config))
}

fn psn(n: u32) -> Psn {
    Psn::new(n)
}

/// PSNs of the NACKs that the destination ToR emits while these packets depart.
fn depart(bench: &mut Bench, qp: QpId, psns: &[u32]) -> Vec<u32> {
    let one = |&n: &u32| bench.depart(qp, psn(n));
    psns.iter().flat_map(one).map(|nack| nack.psn().value()).collect()
}

fn passes(bench: &mut Bench, plan: &Plan, qp: QpId, n: u32) -> bool {
    matches!(bench.see(reply(plan, Kind::Nack, qp, psn(n))).verdict, Verdict::Forward(_))
}

fn themis(bench: &Bench) -> &Themis {
    match bench.scheme() {
        AnyScheme::Themis(themis) => themis,
        _ => panic!("the scheme is not Themis"),
    }
}

#[test]
fn the_source_tor_sprays_in_psn_order() {
    let plan = leaf_spine(2, 4, 1);
    let qp = qp(&plan, 0, 1);
    let round = |config: Config, n: u32| -> Vec<u16> {
        let mut bench = bench(&plan, "leaf0", config);
        let ports = (0..n).map(|n| bench.see(bench.data(qp, psn(n))).verdict);
        ports.map(|v| if let Verdict::Forward(port) = v { port.0 - 1 } else { panic!("{v:?}") }).collect()
    };
    let dealt = round(config(), 8);
    let expected: Vec<_> = (0..8).map(|i| (dealt[0] + i) % 4).collect();
    assert_eq!(dealt, expected);
    // Eight slots on four uplinks give the same order; two slots use two neighbours. The flow's base stays in both cases.
    assert_eq!(round(Config { slots: Some(8), ..config() }, 8), expected);
    let two = [dealt[0], dealt[1], dealt[0], dealt[1]];
    assert_eq!(round(Config { slots: Some(2), ..config() }, 4), two);
}

#[test]
fn only_the_source_tor_sprays() {
    let plan = leaf_spine(2, 2, 2);
    for (switch, from, to) in [("leaf1", 0, 2), ("leaf0", 0, 1), ("spine0", 0, 2)] {
        let mut bench = bench(&plan, switch, config());
        for n in 0..4 {
            let seen = bench.see(bench.data(qp(&plan, from, to), psn(n)));
            assert_eq!(seen.verdict, Verdict::Forward(seen.ports[0]));
        }
    }
    let spine = bench(&plan, "spine0", config());
    assert_eq!(spine.scheme().interest(), Interest { local: true, ..Interest::default() });
}

/// Ports that the first `n` packets of a queue pair take at a switch.
fn ports(plan: &Plan, switch: &str, config: Config, qp: QpId, n: u32) -> Vec<PortIndex> {
    let mut bench = bench(plan, switch, config);
    let seen = (0..n).map(|n| bench.see(bench.data(qp, psn(n))).verdict);
    seen.map(|v| if let Verdict::Forward(port) = v { port } else { panic!("{v:?}") }).collect()
}

#[test]
fn bits_of_the_slot_steer_switches_above_the_tor() {
    // 2 aggregation switches with 4 core switches each: 8 slots, bit 0 for the ToR and bits 1 and 2 above.
    let plan = pods(2, 2, &[4, 4]);
    let far = qp(&plan, 0, 3);
    for (switch, shift, mask) in [("edge0.0", 0, 1), ("up0.0", 1, 3), ("up0.1", 1, 3)] {
        let taken = ports(&plan, switch, config(), far, 16);
        // Downlinks come first: one host at an edge switch, two edge switches at an aggregation switch.
        let down = if switch.starts_with("edge") { 1 } else { 2 };
        let numbers: Vec<_> = taken.iter().map(|p| p.0 - down).collect();
        let expected: Vec<_> = (0..16).map(|slot| numbers[0] ^ (slot >> shift & mask)).collect();
        assert_eq!(numbers, expected, "{switch}");
        let still = ports(&plan, switch, Config { path_map: false, ..config() }, far, 16);
        assert_eq!(still.iter().all(|p| *p == still[0]), switch.starts_with("up"), "{switch}");
    }
    // Inside the pod only the ToR chooses: Eq. 1 holds as on two tiers, with two slots.
    let near = ports(&plan, "edge0.0", config(), qp(&plan, 0, 1), 4);
    assert!(near[0] != near[1] && near[..2] == near[2..]);
    let rules = |config| {
        let bench = bench(&plan, "edge1.1", config);
        themis(&bench).table.rules.iter().map(|rule| rule.settings().slots).collect::<Vec<_>>()
    };
    assert_eq!(rules(config()), [8, 2], "rules for the other pod and for the same pod");
    assert_eq!(rules(Config { path_map: false, ..config() }), [2]);
}

#[test]
fn replies_are_not_steered() {
    let plan = pods(2, 1, &[4, 4]);
    let (forth, back) = (qp(&plan, 0, 1), qp(&plan, 1, 0));
    for (switch, qp) in [("edge1.0", forth), ("up1.0", forth), ("edge0.0", back), ("up0.1", back)] {
        let mut bench = bench(&plan, switch, config());
        let ports: Vec<_> = (0..16).map(|n| bench.see(reply(&plan, Kind::Ack, qp, psn(n))).verdict).collect();
        assert!(ports.iter().all(|port| *port == ports[0]), "{switch}");
    }
}

#[test]
fn parallel_links_of_two_tiers_count_as_uplinks() {
    // 3 spines with 2 links to every leaf make 6 uplinks. On the way down a spine keeps a flow on one of 2 links.
    let plan = leaf_spine_parallel(2, 3, 2);
    let far = qp(&plan, 0, 1);
    assert_eq!(config().check(&plan), Ok(vec![]));
    assert_eq!(ports(&plan, "leaf0", config(), far, 6).into_iter().collect::<BTreeSet<_>>().len(), 6);
    assert_eq!(ports(&plan, "spine1", config(), far, 6).into_iter().collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn a_fabric_without_a_path_map_is_refused_with_advice() {
    let hash = |algorithm, offset| Hash { algorithm, offset };
    let refused = |plan: &Plan, hashes: Vec<Hash>| {
        let error = Config { hashes, ..config() }.check(plan).unwrap_err();
        assert!(error.text.contains("path-map = false"), "{error}");
        (error.path(), error.text)
    };
    let plan = pods(2, 1, &[4, 4]);
    assert_eq!(config().check(&plan), Ok(vec![]));
    let (field, text) = refused(&plan, vec![hash(Algorithm::CrcCcitt, 0)]);
    assert!(
        field == "hashes" && text.contains("reach 4 of 8 paths") && text.contains("polarisation"),
        "{text}"
    );
    // The same function, rotated far enough, is accepted.
    let rotated = vec![hash(Algorithm::CrcCcitt, 0), hash(Algorithm::CrcCcitt, 1)];
    assert!(Config { hashes: rotated, ..config() }.check(&plan).is_ok());
    let (field, text) = refused(&pods(2, 1, &[3, 3]), config().hashes);
    assert!(field == "path-map" && text.contains("tier 2 chooses among 3 ports"), "{text}");
    let (field, text) = refused(&pods(2, 1, &[4, 2]), config().hashes);
    assert!(field == "path-map" && text.contains("the choices over up1.0 and over up1.1 differ"), "{text}");
    // Where only the ToR chooses, the hashes do not matter; without a PathMap they do not matter either.
    let one = vec![hash(Algorithm::Xor, 0)];
    assert!(Config { hashes: one.clone(), ..config() }.check(&leaf_spine(2, 3, 1)).is_ok());
    assert!(Config { hashes: one, path_map: false, ..config() }.check(&pods(2, 1, &[4, 2])).is_ok());
}

#[test]
fn a_tor_declares_only_the_interest_it_needs() {
    let several = leaf_spine(2, 2, 1);
    let interest = bench(&several, "leaf0", config()).scheme().interest();
    assert!(interest.host_departures && !interest.every_packet && !interest.queues);
    // With one uplink there is no choice of ports, but the switch must still see the replies.
    let one = leaf_spine(2, 1, 1);
    assert!(bench(&one, "leaf0", config()).scheme().interest().every_packet);
    let mut bench = bench(&one, "leaf1", config());
    depart(&mut bench, qp(&one, 0, 1), &[0, 2]);
    assert!(passes(&mut bench, &one, qp(&one, 0, 1), 1));
    assert_eq!(bench.counter("nacks_forwarded"), 1);
}

#[test]
fn the_papers_figure_4() {
    let plan = leaf_spine(2, 2, 1);
    let qp = qp(&plan, 0, 1);
    for mode in [Judging::Sound, Judging::Literal] {
        let mut bench = bench(&plan, "leaf1", Config { mode, ..config() });
        assert!(depart(&mut bench, qp, &[0, 1, 3]).is_empty());
        assert!(!passes(&mut bench, &plan, qp, 2), "3 proves nothing about 2");
        assert!(depart(&mut bench, qp, &[2, 6]).is_empty());
        assert!(passes(&mut bench, &plan, qp, 4), "6 overtook 4 on its own path");
        let counts = ["nacks_seen", "nacks_forwarded", "nacks_blocked", "nacks_compensated"];
        assert_eq!(counts.map(|name| bench.counter(name)), [2, 1, 1, 0]);
    }
}

#[test]
fn without_its_filter_themis_only_sprays() {
    let plan = leaf_spine(2, 2, 1);
    let qp = qp(&plan, 0, 1);
    let bare = Config { filter: false, ..config() };
    let mut far = bench(&plan, "leaf1", bare.clone());
    assert_eq!(far.scheme().interest(), Interest { local: true, ..Interest::default() });
    assert!(depart(&mut far, qp, &[0, 1, 3]).is_empty());
    assert!(passes(&mut far, &plan, qp, 2), "nobody judges the NACK");
    assert!(depart(&mut far, qp, &[4, 6]).is_empty());
    assert_eq!(ports(&plan, "leaf0", bare, qp, 8), ports(&plan, "leaf0", config(), qp, 8));
}

#[test]
fn a_lost_packet_is_compensated_once_and_not_spuriously() {
    let plan = leaf_spine(2, 2, 1);
    let qp = qp(&plan, 0, 1);
    let mut bench = bench(&plan, "leaf1", config());
    depart(&mut bench, qp, &[0, 1, 3]);
    assert!(!passes(&mut bench, &plan, qp, 2));
    assert_eq!(depart(&mut bench, qp, &[4, 6]), [2]);
    bench.see(reply(&plan, Kind::Ack, qp, psn(1)));
    bench.depart_as(bench.data(qp, psn(2)).with_retransmission(true));
    bench.see(reply(&plan, Kind::Ack, qp, psn(4)));
    assert_eq!((bench.counter("nacks_compensated"), bench.counter("compensations_spurious")), (1, 0));
}

#[test]
fn literal_mode_compensates_for_a_packet_on_the_wire() {
    let plan = leaf_spine(2, 2, 1);
    let qp = qp(&plan, 0, 1);
    for (mode, compensated) in [(Judging::Sound, 0), (Judging::Literal, 1)] {
        let mut bench = bench(&plan, "leaf1", Config { mode, ..config() });
        depart(&mut bench, qp, &[0, 1, 3, 2]); // packet 2 left before the NACK that packet 3 caused arrived
        assert!(!passes(&mut bench, &plan, qp, 2));
        depart(&mut bench, qp, &[4]);
        bench.see(reply(&plan, Kind::Ack, qp, psn(3)));
        assert_eq!(bench.counter("nacks_compensated"), compensated, "{mode:?}");
        assert_eq!(bench.counter("compensations_spurious"), compensated, "{mode:?}");
        assert_eq!(bench.counter("blocked_on_the_wire"), 1 - compensated, "{mode:?}");
    }
}

#[test]
fn a_loss_on_the_last_hop_is_found_by_watching() {
    let plan = leaf_spine(2, 2, 1);
    let qp = qp(&plan, 0, 1);
    let later: Vec<_> = (4..40).collect();
    for (watch, acked, owed) in [(true, None, vec![2]), (false, None, vec![]), (true, Some(3), vec![])] {
        let mut bench = bench(&plan, "leaf1", Config { watch, ..config() });
        depart(&mut bench, qp, &[0, 1, 3, 2]);
        assert!(!passes(&mut bench, &plan, qp, 2));
        if let Some(n) = acked {
            bench.see(reply(&plan, Kind::Ack, qp, psn(n)));
        }
        assert_eq!(depart(&mut bench, qp, &later), owed);
    }
}

#[test]
fn a_blocked_nack_may_become_an_ack() {
    let plan = leaf_spine(2, 2, 1);
    let qp = qp(&plan, 0, 1);
    for (on_block, echo, acked) in [
        (OnBlock::Drop, false, None),
        (OnBlock::Drop, true, Some(2)),
        (OnBlock::Ack, false, Some(2)),
        (OnBlock::Ack, true, Some(2)),
    ] {
        let mut bench = bench(&plan, "leaf1", Config { on_block, ..config() });
        depart(&mut bench, qp, &[0, 1, 2, 4]);
        let nack = reply(&plan, Kind::Nack, qp, psn(3)).with_echo(echo);
        let seen = bench.see(nack);
        match acked {
            None => assert_eq!(seen.verdict, Verdict::Drop),
            Some(n) => {
                assert!(matches!(seen.verdict, Verdict::Forward(_)));
                assert_eq!((seen.pkt.kind(), seen.pkt.psn(), seen.pkt.echo()), (Kind::Ack, psn(n), echo));
            }
        }
        assert_eq!((bench.counter("nacks_seen"), bench.counter("nacks_blocked")), (1, 1));
    }
}

#[test]
fn queue_pairs_inside_a_rack_bypass_it() {
    let plan = leaf_spine(2, 2, 2);
    let inside = qp(&plan, 2, 3);
    let mut bench = bench(&plan, "leaf1", config());
    assert!(depart(&mut bench, inside, &[0, 2]).is_empty());
    assert!(passes(&mut bench, &plan, inside, 1));
    assert_eq!(bench.counter("nacks_seen"), 0);
    let with_state = themis(&bench).table.pairs.iter().flatten().count();
    assert_eq!(with_state, 4, "two hosts here, two senders elsewhere");
}

#[test]
fn replies_to_hosts_of_this_tor_are_not_judged() {
    let plan = leaf_spine(2, 2, 1);
    let mut bench = bench(&plan, "leaf0", config());
    assert!(passes(&mut bench, &plan, qp(&plan, 0, 1), 1));
    assert_eq!(bench.counter("nacks_seen"), 0);
}

#[test]
fn the_formula_gives_the_papers_ring() {
    let plan = leaf_spine_at(2, 2, 1, |_| Rate::from_gbps(400));
    let ring = |config| {
        let bench = bench(&plan, "leaf1", config);
        (themis(&bench).table.ring, themis(&bench).table.rules[0].settings().age_limit)
    };
    // 400 Gb/s x 2 us x 1.5 / 1500 B; a round trip holds 2 us / 30.4 ns plus the time for which replies wait.
    assert_eq!(ring(config()), (100, 69));
    assert_eq!(ring(Config { ring: Entries::Count(7), age_limit: Entries::Count(5), ..config() }), (7, 5));
    // The paper's ring may be shorter than a sound one.
    assert_eq!(ring(Config { ring_factor: 0.5, ..config() }).0, 69);
    assert_eq!(ring(Config { ring_factor: 0.5, mode: Judging::Literal, ..config() }).0, 34);
}

#[test]
fn short_messages_need_a_longer_ring() {
    let mut plan = leaf_spine(2, 2, 1);
    let need = |plan: &Plan| themis(&bench(plan, "leaf1", config())).table.rules[0].settings().age_limit;
    let full = need(&plan);
    let message = |bytes| Message {
        qp: QpId(0),
        bytes,
        start: Time::ZERO,
        needs: 0,
        on_received: 0..0,
        on_acked: 0..0,
        job: 0,
        group: 0,
        operation: u32::MAX,
    };
    let id = qp(&plan, 0, 1).index();
    plan.qps[id].messages = 0..1;
    plan.messages = vec![message(1438 * 1000)];
    assert_eq!(need(&plan), full);
    plan.messages = vec![message(1438 * 1000 + 1)];
    assert_eq!(need(&plan), full + 1);
    plan.messages = vec![message(1)];
    assert!(need(&plan) > 10 * full);
}

#[test]
fn a_short_ring_causes_a_warning_with_the_required_length() {
    let plan = leaf_spine(2, 2, 1);
    assert_eq!(config().check(&plan), Ok(vec![]));
    let warnings = |config: Config| config.check(&plan).unwrap();
    let short = warnings(Config { ring: Entries::Count(18), ..config() });
    assert!(short.len() == 1 && short[0].text.contains("needs 19 at leaf0"), "{short:?}");
    assert!(warnings(Config { ring: Entries::Count(19), ..config() }).is_empty());
    assert!(warnings(Config { ring: Entries::Count(1), mode: Judging::Literal, ..config() }).is_empty());
    assert_eq!(warnings(Config { age_limit: Entries::Count(3), ..config() }).len(), 1);
    assert_eq!(warnings(Config { slots: Some(3), ..config() }).len(), 1);
    assert_eq!(warnings(Config { slots: Some(1), ..config() }).len(), 1);
    let mixed = leaf_spine_at(2, 2, 1, |spine| Rate::from_gbps(100 << spine));
    assert!(config().check(&mixed).unwrap()[0].text.contains("differ in rate"));
}

#[test]
fn impossible_settings_are_refused_by_field() {
    let three = leaf_spine(2, 3, 1);
    let field = |config: Config| config.check(&three).unwrap_err().path();
    assert_eq!(field(Config { ring: Entries::Count(0), ..config() }), "ring");
    assert_eq!(field(Config { age_limit: Entries::Count(0), ..config() }), "age-limit");
    assert_eq!(field(Config { psn_bits: 12, ..config() }), "psn-bits");
    assert_eq!(field(Config { psn_bits: 8, ..config() }), "psn-bits");
    assert_eq!(field(Config { psn_bits: 8, slots: Some(12), ..config() }), "slots");
    assert_eq!(field(Config { slots: Some(0), ..config() }), "slots");
    assert_eq!(field(Config { ring_factor: f64::NAN, ..config() }), "ring-factor");
    assert!(config().check(&three).is_ok(), "24-bit PSNs need no power of two");
    // A refused configuration still builds a scheme that forwards.
    let mut bench = bench(&three, "leaf1", Config { psn_bits: 8, ring: Entries::Count(0), ..config() });
    depart(&mut bench, qp(&three, 0, 1), &[0, 2]);
    assert!(passes(&mut bench, &three, qp(&three, 0, 1), 1));
}

#[test]
fn the_scenario_table_round_trips() {
    let text = r#"
        [themis]
        mode = "literal"
        psn-bits = 8
        ring = 100
        ring-factor = 2.0
        age-limit = "formula"
        watch = false
        filter = false
        on-block = "ack"
        on-failure = "remap"
        slots = 16
        path-map = false
        hashes = [{ algorithm = "crc-32hi" }, { algorithm = "xor", offset = 8 }]
    "#;
    let expected = Config {
        mode: Judging::Literal,
        psn_bits: 8,
        ring: Entries::Count(100),
        ring_factor: 2.0,
        age_limit: Entries::Formula,
        watch: false,
        filter: false,
        on_block: OnBlock::Ack,
        on_failure: config::OnFailure::Remap,
        slots: Some(16),
        path_map: false,
        hashes: vec![
            Hash { algorithm: Algorithm::Crc32Hi, offset: 0 },
            Hash { algorithm: Algorithm::Xor, offset: 8 },
        ],
    };
    let parsed: SchemeConfig = toml::from_str(text).unwrap();
    assert_eq!(parsed, SchemeConfig::Themis(expected));
    assert_eq!(toml::from_str::<SchemeConfig>(&toml::to_string(&parsed).unwrap()).unwrap(), parsed);
    for (line, word) in [("ring = -1", "65535"), ("ring = 70000", "65535"), ("ring = \"long\"", "formula")] {
        let error = toml::from_str::<SchemeConfig>(&format!("[themis]\n{line}")).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("line 2"), "{error}");
    }
}

/// Ports of the first 64 packets of a flow.
fn ports_of(bench: &mut Bench, qp: QpId) -> Vec<u16> {
    let port = |n| match bench.see(bench.data(qp, psn(n))).verdict {
        Verdict::Forward(port) => port.0,
        verdict => panic!("{verdict:?}"),
    };
    (0..64).map(port).collect()
}

#[test]
fn only_the_slot_of_a_dead_path_moves() {
    // The choosing switch is leaf0 of a leaf-spine fabric, or an aggregation switch of a fat tree; each case has one
    // dead link.
    for (plan, switch, dead, slots) in [
        (leaf_spine(2, 4, 4), "leaf0", ("leaf0", "spine2"), 4),
        (pods(2, 1, &[4]), "up0.0", ("up0.0", "core0.1"), 4),
        (leaf_spine(3, 8, 1), "leaf0", ("leaf1", "spine5"), 8),
    ] {
        let last = plan.fabric.hosts() as u32 - 1;
        let to = if plan.fabric.find("leaf2").is_some() { 1 } else { last };
        let qp = qp(&plan, 0, to);
        let mut bench = bench(&plan, switch, Config { on_failure: config::OnFailure::Remap, ..config() });
        let whole = ports_of(&mut bench, qp);
        bench.reroute(&[dead]);
        let left = ports_of(&mut bench, qp);
        let moved = (0..slots).filter(|&slot| left[slot] != whole[slot]).count();
        assert_eq!(moved, 1, "{switch}: {whole:?} became {left:?}");
        assert!((0..64).all(|n| left[n] == left[n % slots]), "a slot has one path: {left:?}");
        assert_eq!(left.iter().collect::<BTreeSet<_>>().len(), slots - 1, "no packet takes the dead path");
        assert_eq!(bench.counter("packets_remapped"), 64 / slots as u64);
        bench.reroute(&[]);
        assert_eq!(ports_of(&mut bench, qp), whole, "the slot returns to its path");
    }
}

#[test]
fn without_spraying_a_flow_keeps_one_path_and_every_nack_passes() {
    let plan = leaf_spine(2, 4, 1);
    let (up, down) = (qp(&plan, 0, 1), qp(&plan, 1, 0));
    let mut bench = bench(&plan, "leaf0", config());
    // PSN 1 is late, so its NACK is blocked, and the ToR waits for it.
    depart(&mut bench, down, &[0, 2]);
    assert!(!passes(&mut bench, &plan, down, 1));
    bench.reroute(&[("leaf1", "spine0")]);
    assert_eq!(ports_of(&mut bench, up).iter().collect::<BTreeSet<_>>().len(), 1);
    // The route change has ended the wait: PSN 5 would have proved that PSN 1 is lost.
    assert_eq!(depart(&mut bench, down, &[5]), [0; 0]);
    assert!(passes(&mut bench, &plan, down, 1));
    assert_eq!((bench.counter("nacks_unjudged"), bench.counter("packets_unsprayed")), (1, 64));
    bench.reroute(&[]);
    assert!(ports_of(&mut bench, up).iter().collect::<BTreeSet<_>>().len() == 4);
    depart(&mut bench, down, &[6, 8]);
    assert!(!passes(&mut bench, &plan, down, 7));
}

#[test]
fn a_dead_host_link_does_not_change_spraying() {
    let plan = leaf_spine(2, 4, 2);
    let qp = qp(&plan, 0, 2);
    let mut bench = bench(&plan, "leaf0", config());
    let whole = ports_of(&mut bench, qp);
    bench.reroute(&[("leaf1", "h3")]);
    assert_eq!(ports_of(&mut bench, qp), whole);
}
