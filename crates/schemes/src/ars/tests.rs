use super::quality::{BEST, Load, Rules};
use super::{Alternates, Config, Mode, Profile};
use crate::bench::{Bench, dragonfly, leaf_spine, pods, qp};
use crate::{Recipe, SchemeConfig, flowlet};
use model::draw::{Key, Purpose, below};
use model::failure::{Effect, Fault};
use model::{Bytes, Detour, Failures, Plan, PortIndex, Psn, QpId, Rate, Time, Verdict};
use std::collections::{BTreeMap, BTreeSet};

fn config(text: &str) -> Config {
    toml::from_str(text).unwrap()
}

fn bench(plan: &Plan, switch: &str, text: &str) -> Bench {
    Bench::new(plan, switch, &SchemeConfig::Ars(config(text)))
}

fn port(bench: &mut Bench, qp: QpId) -> usize {
    match bench.see(bench.data(qp, Psn::new(0))).verdict {
        Verdict::Forward(port) => port.index(),
        other => panic!("{other:?}"),
    }
}

/// Lets the switch sample these queues of its uplinks, which come after one host port.
fn sample(bench: &mut Bench, plan: &Plan, queues: &[u32]) {
    bench.queued[1..].copy_from_slice(queues);
    port(bench, qp(plan, 0, 1)); // starts the clock
    bench.pass(bench.alarm.unwrap());
}

/// Grades by waiting bytes alone, 1000 B a band, and a sample each 16 us.
const BY_QUEUE: &str = "past-weight = 0\nexponent = 0\nfuture-limits = [\"0B\", \"8kB\"]\n";

#[test]
fn bands_are_linear_between_the_limits_or_have_given_widths() {
    let band = |text: &str, queued: u32| {
        let settings = config(text).settings();
        let mut load = Load::new(&settings, Rate::from_gbps(100), 1500);
        load.sample(&Rules::new(&settings, 64_000), queued);
        load.band()
    };
    let eight = [0, 999, 1000, 3999, 6999, 7000, 8000, 90_000].map(|queued| band(BY_QUEUE, queued));
    assert_eq!(eight, [7, 7, 6, 4, 1, 0, 0, 0]);
    // Spectrum's four grades begin at 0, 1/8, 1/4 and 1/2 of alpha's share, here 64 kB.
    let spectrum = [0, 7_999, 8_000, 15_999, 16_000, 32_000, 200_000];
    let spectrum = spectrum.map(|queued| band("profile = \"spectrum\"", queued));
    assert_eq!(spectrum, [7, 7, 6, 6, 5, 4, 4]);
}

#[test]
fn a_port_at_line_rate_is_bad_without_a_queue_and_recovers_by_the_exponent() {
    for (exponent, bands) in [(0, vec![0, 7, 7]), (1, vec![4, 6, 7])] {
        let settings = config(&format!("exponent = {exponent}\nfuture-weight = 0")).settings();
        let rules = Rules::new(&settings, 0);
        let mut load = Load::new(&settings, Rate::from_gbps(100), 1500);
        // 200,000 B in 16 us are 100 Gb/s; more than that cannot have been sent.
        load.join(300_000);
        let seen: Vec<u8> = (0..3).map(|_| (load.sample(&rules, 0), load.band()).1).collect();
        assert_eq!(seen, bands, "exponent {exponent}");
    }
    // Both averages weigh alike, and the mean is rounded down.
    let settings = config("exponent = 0").settings();
    let mut load = Load::new(&settings, Rate::from_gbps(100), 1500);
    load.join(200_000);
    load.sample(&Rules::new(&settings, 0), 0);
    assert_eq!(load.band(), 3, "0 for the bytes sent, 7 for the queue");
    // A sample below the average replaces it, if asked for.
    let settings = config("current = true\nfuture-weight = 0").settings();
    let (mut load, rules) = (Load::new(&settings, Rate::from_gbps(100), 1500), Rules::new(&settings, 0));
    load.join(200_000);
    load.sample(&rules, 0);
    load.sample(&rules, 0);
    assert_eq!(load.band(), BEST);
}

/// Check (b) of the test: with an endless idle time, a table without collisions and equal bands it is ECMP with random placement,
/// as LetFlow is with an endless gap.
#[test]
fn without_pauses_and_with_equal_bands_every_flow_is_placed_at_random_once() {
    let plan = leaf_spine(4, 8, 8);
    let endless = flowlet::Config { gap: Time::NEVER };
    let mut letflow = Bench::new(&plan, "leaf0", &SchemeConfig::Flowlet(endless));
    let mut ars =
        bench(&plan, "leaf0", &format!("{BY_QUEUE}idle = \"10s\"\ntable = 1048576\nentries = 1048576"));
    let key = Key::new(3, Purpose::Workload, 0);
    let across: Vec<_> =
        (0..).map(QpId).zip(&plan.qps).filter(|(_, qp)| qp.from.0 < 8 && qp.to.0 >= 8).collect();
    for i in 0..4_000 {
        let (qp, _) = across[below(key.draw(i), across.len())];
        letflow.now = ars.now;
        assert_eq!(port(&mut ars, qp), port(&mut letflow, qp), "packet {i}");
    }
    assert_eq!(ars.counter("ars_choices"), letflow.counter("flowlets"));
}

/// Check (c): if every packet samples the queues, packets join the shortest, as under `ar`.
#[test]
fn without_an_interval_and_an_exponent_packets_join_the_shortest_queue() {
    let plan = leaf_spine(2, 8, 1);
    let text = "mode = \"packet-quality\"\ninterval = \"0us\"\n";
    let mut ars = bench(&plan, "leaf0", &format!("{BY_QUEUE}{text}"));
    let mut ar = Bench::new(&plan, "leaf0", &SchemeConfig::named("ar").unwrap());
    let key = Key::new(5, Purpose::Workload, 0);
    for i in 0..4_000 {
        for p in 1..9 {
            ars.queued[p] = below(key.draw2(i, p as u64), 8) as u32 * 1_000;
        }
        ar.queued.clone_from(&ars.queued);
        let across = qp(&plan, 0, 1);
        assert_eq!(port(&mut ars, across), port(&mut ar, across), "packet {i}");
    }
}

/// SONiC's test plan for ARS: per packet, 1,000 packets use all next hops, and none is lost.
#[test]
fn a_thousand_packets_use_all_next_hops() {
    let plan = leaf_spine(2, 8, 1);
    for mode in ["packet-quality", "packet-random"] {
        let mut ars = bench(&plan, "leaf0", &format!("mode = \"{mode}\""));
        let mut packets = [0; 9];
        (0..1_000).for_each(|_| packets[port(&mut ars, qp(&plan, 0, 1))] += 1);
        assert!(packets[0] == 0 && packets[1..].iter().all(|&n| n > 60), "{mode}: {packets:?}");
        assert_eq!(packets.iter().sum::<u32>(), 1_000);
    }
}

#[test]
fn flows_that_choose_between_two_samples_herd_to_the_same_port() {
    let plan = leaf_spine(64, 8, 1);
    let mut ars = bench(&plan, "leaf0", BY_QUEUE);
    sample(&mut ars, &plan, &[6_500, 6_500, 500, 6_500, 6_500, 6_500, 6_500, 6_500]);
    // The queue of the best port grows meanwhile, but the switch does not look before its next sample.
    ars.queued[3] = 400_000;
    let herd: Vec<usize> = (2..64).map(|to| port(&mut ars, qp(&plan, 0, to))).collect();
    assert!(herd.iter().all(|&port| port == 3), "{herd:?}");
    ars.pass(ars.alarm.unwrap());
    ars.now += Time::from_us(300);
    let after: BTreeSet<usize> = (2..64).map(|to| port(&mut ars, qp(&plan, 0, to))).collect();
    assert!(!after.contains(&3) && after.len() > 3, "{after:?}");
}

#[test]
fn an_entry_moves_after_a_pause_only_and_only_if_its_port_is_no_longer_among_the_best() {
    let plan = leaf_spine(2, 4, 1);
    let mut ars = bench(&plan, "leaf0", BY_QUEUE);
    let across = qp(&plan, 0, 1);
    sample(&mut ars, &plan, &[3_500, 500, 3_500, 500]);
    ars.now += Time::from_us(300);
    let first = port(&mut ars, across);
    assert!([2, 4].contains(&first));
    // Among the best, it stays after any number of pauses.
    for _ in 0..20 {
        ars.now += Time::from_us(300);
        assert_eq!(port(&mut ars, across), first);
    }
    // A worse port keeps it while packets come.
    ars.queued[first] = 2_500;
    ars.pass(ars.now + Time::from_us(20));
    assert_eq!(port(&mut ars, across), first);
    ars.now += Time::from_us(257);
    assert_eq!(port(&mut ars, across), 6 - first);
}

#[test]
fn with_a_quality_delta_an_entry_moves_without_a_pause() {
    let plan = leaf_spine(2, 2, 1);
    for (delta, moves) in [(0, false), (3, true), (4, false)] {
        let mut ars = bench(&plan, "leaf0", &format!("{BY_QUEUE}quality-delta = {delta}"));
        let across = qp(&plan, 0, 1);
        let first = port(&mut ars, across);
        ars.queued[first] = 3_500;
        ars.pass(ars.alarm.unwrap());
        assert_eq!(port(&mut ars, across) != first, moves, "delta {delta}");
        assert_eq!(ars.counter("ars_rebalanced"), u64::from(moves));
    }
}

#[test]
fn flows_of_one_entry_move_together() {
    let plan = leaf_spine(64, 8, 1);
    let mut ars = bench(&plan, "leaf0", "table = 1\nmode = \"flowlet-random\"");
    let ports: BTreeSet<usize> = (1..64).map(|to| port(&mut ars, qp(&plan, 0, to))).collect();
    assert_eq!((ports.len(), ars.counter("ars_choices")), (1, 1));
}

#[test]
fn a_fixed_entry_keeps_its_first_port_and_flows_in_turn_fill_all_uplinks_evenly() {
    let plan = leaf_spine(33, 8, 1);
    let mut fixed = bench(&plan, "leaf0", &format!("{BY_QUEUE}mode = \"fixed\""));
    let first = port(&mut fixed, qp(&plan, 0, 1));
    sample(&mut fixed, &plan, &[9_000; 8]);
    fixed.now += Time::from_ms(10);
    assert_eq!(port(&mut fixed, qp(&plan, 0, 1)), first);

    let mut turns = bench(&plan, "leaf0", "profile = \"arista-clb\"");
    let mut flows = [0; 9];
    (1..33).for_each(|to| flows[port(&mut turns, qp(&plan, 0, to))] += 1);
    // Flows with equal hashes share a turn; 32 flows in 32,768 entries rarely do.
    assert_eq!(flows, [0, 4, 4, 4, 4, 4, 4, 4, 4]);
}

#[test]
fn a_dead_port_leaves_its_group_before_routing_learns_of_it() {
    let mut plan = leaf_spine(2, 4, 1);
    let leaf = plan.fabric.find("leaf0").unwrap();
    let link = plan.fabric.link(leaf, PortIndex(2));
    let fault = Fault { link, at: Time::from_us(50), until: Time::from_us(100), effect: Effect::Down };
    plan.failures = Failures::new(&plan.fabric, &[fault], Time::from_ms(100)).unwrap();
    for mode in ["packet-random", "flowlet-quality", "fixed"] {
        let mut ars = bench(&plan, "leaf0", &format!("idle = \"0us\"\nmode = \"{mode}\""));
        let mut used = |from: Time, until: Time| {
            ars.now = from;
            let mut used = BTreeSet::new();
            while ars.now < until {
                used.insert(port(&mut ars, qp(&plan, 0, 1)));
            }
            used
        };
        let up = used(Time::ZERO, Time::from_us(49));
        let down = used(Time::from_us(50), Time::from_us(99));
        assert!(!down.contains(&2), "{mode}: {down:?}");
        if mode == "packet-random" {
            assert_eq!((up.len(), down.len()), (4, 3));
            assert_eq!(used(Time::from_us(101), Time::from_us(150)).len(), 4);
        }
    }
}

#[test]
fn groups_beyond_the_tables_follow_the_backup_and_check_counts_them() {
    let plan = dragonfly(5, 4, 8);
    let two = config("entries = 1024");
    let warnings = two.validate(&plan).unwrap();
    assert!(
        warnings[0].path() == "table" && warnings[0].text.contains("hold 2 groups of 512"),
        "{warnings:?}"
    );
    assert_eq!(Config::default().validate(&plan), Ok(vec![]));
    let mut ars = bench(&plan, "g0r0", "entries = 1024\nmode = \"flowlet-random\"\nidle = \"0us\"");
    let mut ecmp = Bench::new(&plan, "g0r0", &SchemeConfig::default());
    let mut moved = BTreeMap::<u32, bool>::new();
    for to in (4..20).chain(4..20).chain(4..20).chain(4..20) {
        let across = qp(&plan, 0, to);
        *moved.entry(to).or_default() |= port(&mut ars, across) != port(&mut ecmp, across);
    }
    assert!(ars.counter("ars_backup") > 0);
    assert!(moved.values().any(|moved| *moved) && moved.values().any(|moved| !*moved), "{moved:?}");
}

#[test]
fn a_leaf_avoids_the_spine_that_reports_a_bad_downlink_to_that_rack_alone() {
    let plan = leaf_spine(20, 4, 1);
    let text = format!("{BY_QUEUE}global = true\nmode = \"packet-quality\"");
    let mut spine = bench(&plan, "spine1", &text);
    port(&mut spine, qp(&plan, 0, 9));
    spine.queued[9] = 50_000; // the link to leaf 9
    let at = spine.alarm.unwrap();
    spine.now = at;
    let reports = spine.wake();
    assert_eq!(reports.len(), 20, "each leaf gets the report of eight racks, and no other has changed");
    let to_us = reports
        .iter()
        .find(|report| plan.fabric.attachment(report.packet.to()) == plan.fabric.find("leaf0").unwrap());

    let mut leaf = bench(&plan, "leaf0", &text);
    let uses = |leaf: &mut Bench, to| (0..200).map(|_| port(leaf, qp(&plan, 0, to))).collect::<BTreeSet<_>>();
    assert_eq!(uses(&mut leaf, 9), BTreeSet::from([1, 2, 3, 4]));
    (leaf.tag, leaf.ingress) = (to_us.unwrap().tag, Some(PortIndex(2)));
    assert_eq!(leaf.see(to_us.unwrap().packet).verdict, Verdict::Drop);
    leaf.ingress = None;
    assert_eq!(uses(&mut leaf, 9), BTreeSet::from([1, 3, 4]));
    assert_eq!(uses(&mut leaf, 10), BTreeSet::from([1, 2, 3, 4]));
}

#[test]
fn an_alternate_path_is_taken_if_its_band_makes_up_for_the_cost() {
    let plan = dragonfly(5, 3, 1);
    let across = qp(&plan, 0, 3);
    for (alternates, queue, detour) in [
        ("{}", 7_500, true),
        ("{}", 500, false),
        ("{ threshold = 3 }", 3_500, false),
        ("{ cost = 7, bias = 0 }", 7_500, true),
        ("{ cost = 7, bias = 0 }", 6_500, false),
    ] {
        let text = format!("{BY_QUEUE}mode = \"packet-quality\"\nalternates = {alternates}");
        let mut ars = bench(&plan, "g0r0", &text);
        let minimal = ars.see(ars.data(across, Psn::new(0))).ports;
        minimal.iter().for_each(|port| ars.queued[port.index()] = queue);
        ars.pass(ars.alarm.unwrap());
        let seen = ars.see(ars.data(across, Psn::new(1)));
        assert_eq!(matches!(seen.via, Some(Detour::Group(_))), detour, "{alternates} at {queue} B");
    }
}

#[test]
fn the_clock_rests_while_nothing_waits_and_averages_are_zero() {
    let plan = leaf_spine(2, 4, 1);
    let mut ars = bench(&plan, "leaf0", "profile = \"fboss\"");
    assert_eq!(ars.alarm, None);
    port(&mut ars, qp(&plan, 0, 1));
    ars.pass(Time::from_ms(1));
    assert_eq!((ars.alarm, ars.counter("ars_samples")), (None, 2), "the packet, and then nothing");
    port(&mut ars, qp(&plan, 0, 1));
    assert!(ars.alarm.is_some());
}

#[test]
fn profiles_fill_what_a_table_leaves_out_and_wrong_settings_are_named() {
    let nx_os = config("profile = \"nx-os\"\ninterval = \"8us\"").settings();
    assert_eq!(
        (nx_os.idle, nx_os.interval, nx_os.mode),
        (Time::from_us(600), Time::from_us(8), Mode::FlowletQuality)
    );
    assert_eq!(Config::default().profile, Profile::Sonic);
    assert_eq!(
        config("future-limits = [\"2kB\", \"4kB\"]").settings().future_limits,
        Some([Bytes(2000), Bytes(4000)])
    );
    let (plan, tree) = (leaf_spine(2, 4, 1), pods(2, 2, &[2, 2]));
    for (text, field) in [
        ("table = 0", "table"),
        ("table = 40000", "table"),
        ("entries = 2000000", "entries"),
        ("interval = \"0us\"", "past-weight"),
        ("exponent = 16", "exponent"),
        ("past-weight = 0\nfuture-weight = 0", "past-weight"),
        ("past-limits = [\"5Gbps\", \"5Gbps\"]", "past-limits"),
        ("future-limits = [\"5kB\", \"1kB\"]", "future-limits"),
        ("bands = [1]", "bands"),
        ("bands = [1, 0]", "bands"),
        ("congested-above = 1.5", "congested-above"),
        ("quality-delta = 8", "quality-delta"),
        ("probability = -0.1", "probability"),
        ("alternates = { cost = 8 }", "alternates"),
    ] {
        assert_eq!(config(text).validate(&plan).unwrap_err().path(), field, "{text}");
    }
    assert_eq!(config("alternates = {}").validate(&plan).unwrap()[0].path(), "alternates");
    assert_eq!(config("global = true").validate(&plan), Ok(vec![]));
    assert_eq!(config("global = true").validate(&tree), Ok(vec![]));
    assert_eq!(Alternates::default().threshold, BEST);
    for profile in ["sonic", "junos", "ocnos", "nx-os", "fboss", "spectrum", "arista-clb"] {
        assert_eq!(config(&format!("profile = \"{profile}\"")).validate(&plan), Ok(vec![]), "{profile}");
    }
}
