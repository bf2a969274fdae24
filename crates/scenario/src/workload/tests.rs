use crate::{Checked, Source, check, plan_check};
use model::plan::Trigger;
use model::{HostId, MessageId};
use proptest::prelude::*;
use std::collections::BTreeSet;

const FABRIC: &str = "[topology.leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 4\n[[workload]]\n";

fn checked(workload: &str) -> Checked {
    check(&Source::new("t.toml", format!("{FABRIC}{workload}")), &[]).unwrap()
}

fn pairs(c: &Checked) -> Vec<(u32, u32)> {
    let mut pairs: Vec<_> = c.plan.qps.iter().map(|qp| (qp.from.0, qp.to.0)).collect();
    pairs.sort();
    pairs
}

#[test]
fn the_rings_of_fig_1_go_from_node_i_to_node_i_plus_2() {
    let c = crate::load("themis-fig1", &[]).unwrap();
    let want: Vec<_> = (0..8u32).map(|i| (i, (i + 2) % 8)).collect();
    assert_eq!(pairs(&c), want);
    assert_eq!((c.plan.messages.len(), c.plan.jobs[0].groups), (8, 2));
    assert!(c.plan.messages.iter().all(|m| m.bytes == 100_000_000));
}

#[test]
fn an_all_reduce_moves_every_byte_twice_except_for_one_share() {
    let c = checked("all-reduce = { bytes = \"10MB\" }");
    // Four groups of four: 6 steps; each rank sends all chunks of its 10 MB twice, except for two of them.
    assert_eq!((c.plan.messages.len(), c.plan.qps.len()), (4 * 4 * 6, 16));
    let total: u64 = c.plan.messages.iter().map(|m| m.bytes).sum();
    assert_eq!(total, 4 * 2 * 3 * 10_000_000);
    let first = c.plan.messages.iter().filter(|m| m.needs == 0).count();
    assert_eq!(first, 16);
    let (one, two) = (&c.plan.messages[0], &c.plan.messages[1]);
    assert_eq!((one.qp, two.needs), (two.qp, 1));
    let left = c.plan.messages.iter().find(|m| {
        c.plan.triggers[m.on_received.start as usize..m.on_received.end as usize]
            .contains(&Trigger::Message(MessageId(1)))
    });
    assert_eq!(c.plan.qps[left.unwrap().qp.index()].to, c.plan.qps[one.qp.index()].from);
}

#[test]
fn with_jitter_each_host_starts_its_messages_late_by_a_draw_of_its_own() {
    let starts = |jitter: &str| {
        let text =
            format!("start = \"1us\"\n{jitter}all-to-all = {{ per-pair = \"1kB\", groups = \"all\" }}");
        let plan = checked(&text).plan;
        let by_host = plan.messages.iter().map(|m| (plan.qps[m.qp.index()].from.0, m.start.ps()));
        let all: std::collections::BTreeSet<(u32, u64)> = by_host.collect();
        all.into_iter().collect::<Vec<_>>()
    };
    let together = starts("");
    assert!(together.iter().all(|&(_, start)| start == 1_000_000) && together.len() == 16);
    let apart = starts("jitter = \"5us\"\n");
    assert_eq!(apart.len(), 16, "all messages of a host start together");
    assert!(apart.iter().all(|(_, start)| (1_000_000..=6_000_000).contains(start)));
    let (first, last) = (apart.iter().map(|a| a.1).min(), apart.iter().map(|a| a.1).max());
    assert!(last.unwrap() - first.unwrap() > 2_000_000, "{apart:?}");
    assert_eq!(starts("jitter = \"0us\"\n"), together);
}

#[test]
fn an_all_to_all_divides_the_buffer_of_a_rank_among_all_ranks() {
    let c = crate::load("themis-fig5-alltoall", &[]).unwrap();
    assert_eq!((c.plan.messages.len(), c.plan.qps.len(), c.plan.jobs[0].groups), (3840, 3840, 16));
    assert!(c.plan.messages.iter().all(|m| m.bytes == 18_750_000 && m.needs == 0));
    let c = checked("all-to-all = { per-pair = \"1MB\", schedule = \"staggered\", groups = \"all\" }");
    assert_eq!(c.plan.messages.len(), 16 * 15);
    assert_eq!(c.plan.messages.iter().filter(|m| m.needs == 0).count(), 16);
    assert_eq!(c.plan.triggers.len(), 16 * 14);
}

#[test]
fn permutations_are_drawn_by_the_seed() {
    for kind in ["random", "cross-rack", "shift"] {
        let c = checked(&format!("permutation = {{ kind = \"{kind}\" }}"));
        let (mut from, mut to): (Vec<_>, Vec<_>) = pairs(&c).into_iter().unzip();
        from.sort();
        to.sort();
        assert_eq!((&from, from.len()), (&to, 16), "{kind}");
        if kind != "random" {
            assert!(pairs(&c).iter().all(|&(a, b)| !c.plan.fabric.same_rack(HostId(a), HostId(b))), "{kind}");
        }
        assert_eq!(pairs(&c.with_seed(2).unwrap()) == pairs(&c), kind == "shift", "{kind}");
    }
}

#[test]
fn two_permutations_share_out_the_hosts() {
    for kind in ["random", "cross-rack"] {
        let job = |sample: &str| format!("permutation = {{ kind = \"{kind}\", hosts = {{ {sample} }} }}");
        let c = checked(&format!("{}\n[[workload]]\n{}", job("take = 6"), job("skip = 6")));
        let of = |job: u16| {
            let mine = c.plan.messages.iter().zip(pairs(&c)).filter(|(m, _)| m.job == job);
            let (mut from, mut to): (Vec<_>, Vec<_>) = mine.map(|(_, pair)| pair).unzip();
            from.sort();
            to.sort();
            assert_eq!(from, to, "{kind}");
            from
        };
        let mut all = [of(0), of(1)].concat();
        assert_eq!((of(0).len(), of(1).len()), (6, 10), "{kind}");
        all.sort();
        assert_eq!(all, (0..16).collect::<Vec<_>>(), "{kind}");
    }
}

const PODS: &str = "[topology.fat-tree]\nk = 4\n[[workload]]\n";

fn in_pods(workload: &str) -> Checked {
    check(&Source::new("t.toml", format!("{PODS}{workload}")), &[]).unwrap()
}

/// Four hosts in each pod of a fat tree with k = 4.
fn pod(host: HostId) -> u32 {
    host.0 / 4
}

#[test]
fn cross_pod_traffic_crosses_the_aggregation_switches() {
    for job in [
        "permutation = { bytes = \"8MiB\", kind = \"cross-pod\" }",
        "random-partner = { peers = \"cross-pod\" }",
        "poisson = { peers = \"cross-pod\" }",
    ] {
        let c = in_pods(job);
        assert!(c.plan.qps.iter().all(|qp| pod(qp.from) != pod(qp.to)), "{job}");
        let near = in_pods(&job.replace("cross-pod", "cross-rack"));
        assert!(near.plan.qps.iter().all(|qp| !near.plan.fabric.same_rack(qp.from, qp.to)), "{job}");
        let inside = |c: &Checked| c.plan.qps.iter().any(|qp| pod(qp.from) == pod(qp.to));
        assert!((1..9).any(|seed| inside(&near.with_seed(seed).unwrap())), "{job}");
    }
    let (mut from, mut to): (Vec<_>, Vec<_>) =
        pairs(&in_pods("permutation = { kind = \"cross-pod\" }")).into_iter().unzip();
    from.sort();
    to.sort();
    assert_eq!((from, to), ((0..16).collect(), (0..16).collect()), "every host sends once and receives once");
}

#[test]
fn on_a_dragonfly_a_group_counts_as_a_pod() {
    let laid = |groups: usize, job: &str| {
        let text = format!(
            "[topology.dragonfly]\ngroups = {groups}\nrouters-per-group = 4\nhosts-per-router = 2\n[[workload]]\n{job}"
        );
        check(&Source::new("t.toml", text), &[])
    };
    for job in [
        "permutation = { kind = \"cross-pod\" }",
        "random-partner = { peers = \"cross-pod\" }",
        "poisson = { peers = \"cross-pod\" }",
    ] {
        let c = laid(3, job).unwrap();
        let groups = c.plan.qps.iter().map(|qp| (qp.from.0 / 8, qp.to.0 / 8)).collect::<BTreeSet<_>>();
        assert_eq!(groups, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)].into(), "{job}");
        let error = laid(1, job).unwrap_err();
        assert!(error.text.contains("one group") && error.text.contains("8 hosts"), "{error}");
    }
}

#[test]
fn flows_arrive_at_the_set_load() {
    // 16 hosts at 400 Gb/s with flows of 40,869.8 B: at 30 % 5.87 million flows a second, 11,745 in 2 ms.
    let job = "poisson = { sizes = \"alibaba-storage\", load = 0.3, duration = \"2ms\" }";
    let plan = checked(job).plan;
    let expected = 0.3 * 16.0 * 400e9 / (8.0 * 40_869.8) * 2e-3;
    let n = plan.messages.len() as f64;
    assert!((n - expected).abs() < 4.0 * expected.sqrt(), "{n} flows, {expected} expected");
    assert_eq!(plan.qps.len(), plan.messages.len(), "each flow has its own queue pair");
    assert!(plan.messages.iter().all(|m| m.start < model::Time::from_ms(2) && m.needs == 0));
    // Every host sends and receives a sixteenth of the flows, evenly from and to all other hosts.
    for host in 0..16 {
        let sent = plan.qps.iter().filter(|qp| qp.from.0 == host).count() as f64;
        let received = plan.qps.iter().filter(|qp| qp.to.0 == host).count() as f64;
        let to_next =
            plan.qps.iter().filter(|qp| qp.from.0 == host && qp.to.0 == (host + 1) % 16).count() as f64;
        for (got, share) in [(sent, 16.0), (received, 16.0), (to_next, 240.0)] {
            assert!((got - n / share).abs() < 4.5 * (n / share).sqrt(), "host {host}: {got} of {n}");
        }
    }
    // The mean size, within four times its standard error.
    let mean = plan.messages.iter().map(|m| m.bytes as f64).sum::<f64>() / n;
    let spread = plan.messages.iter().map(|m| (m.bytes as f64 - mean).powi(2)).sum::<f64>().sqrt() / n;
    assert!((mean - 40_869.8).abs() < 4.0 * spread, "{mean} +- {spread}");
    // In a Poisson process the standard deviation of the gaps equals their mean.
    let mut starts: Vec<u64> = plan.messages.iter().map(|m| m.start.ps()).collect();
    starts.sort();
    let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    assert!((deviation / mean - 1.0).abs() < 0.05, "{deviation} ps, mean {mean} ps");
}

/// Web search flows between two datacentres of 16 hosts, as the long-haul prototype draws them: 10 ms at full load.
fn across(mix: &str) -> Vec<(bool, model::Time)> {
    let fabric = "[topology.datacentres]\n[switch]\nbuffer = \"4GB\"\n[[workload]]\n";
    let job = format!("poisson = {{ load = 1.0, duration = \"10ms\", mix = {{ {mix} }} }}");
    let plan = check(&Source::new("t.toml", format!("{fabric}{job}")), &[]).unwrap().plan;
    let remote = |m: &model::plan::Message| {
        let qp = &plan.qps[m.qp.index()];
        (qp.from.0 < 16) != (qp.to.0 < 16)
    };
    plan.messages.iter().map(|m| (remote(m), m.start)).collect()
}

#[test]
fn one_flow_in_six_leaves_its_datacentre_at_any_time_or_until_its_quota_is_used_up() {
    let count = |flows: &[(bool, model::Time)]| flows.iter().filter(|(remote, _)| *remote).count();
    let last = |flows: &[(bool, model::Time)]| flows.iter().filter(|f| f.0).map(|f| f.1).max().unwrap();
    let mixed = across("local = 5, remote = 1");
    let share = count(&mixed) as f64 / mixed.len() as f64;
    assert!((share - 1.0 / 6.0).abs() < 4.0 * (5.0f64 / 36.0 / mixed.len() as f64).sqrt(), "{share}");
    assert!(last(&mixed) > model::Time::from_us(9_500));
    // Until the quota of a sixth of the expected flows is used up, after 3.2 ms, 16 of 31 possible receivers are remote.
    let quota = across("by = \"quota\"");
    assert_eq!((quota.len(), count(&quota)), (mixed.len(), 389));
    let end = last(&quota).ps() as f64 / 1e9;
    assert!((2.8..3.7).contains(&end), "{end} ms");
    assert_eq!(count(&across("local = 0, by = \"quota\"")), mixed.len());
    assert_eq!(count(&across("remote = 0")), 0);
}

#[test]
fn a_mix_needs_pods_of_at_least_two_hosts_and_a_ratio_above_0() {
    let fail = |text: &str| check(&Source::new("t.toml", text), &[]).unwrap_err().to_string();
    let far =
        "[switch]\nbuffer = \"4GB\"\n[topology.datacentres]\ntors = 1\nhosts-per-tor = 1\n[[workload]]\n";
    assert!(fail(&format!("{far}poisson = {{ mix = {{}} }}")).contains("no other host in its pod"));
    assert!(
        fail(&format!("{PODS}poisson = {{ mix = {{ local = 0, remote = 0 }} }}"))
            .contains("found 0 for both")
    );
    assert!(fail(&format!("{PODS}poisson = {{ mix = {{}}, peers = \"cross-rack\" }}")).contains("not both"));
    assert!(fail(&format!("{FABRIC}poisson = {{ mix = {{}} }}")).contains("has no pods"));
}

#[test]
fn another_load_gives_the_same_flows_at_other_times() {
    let flows = |load: &str| {
        let plan = checked(&format!("poisson = {{ load = {load}, count = 200 }}")).plan;
        let mut flows: Vec<_> = plan
            .messages
            .iter()
            .map(|m| (m.start.ps(), plan.qps[m.qp.index()].from, plan.qps[m.qp.index()].to, m.bytes))
            .collect();
        flows.sort();
        flows
    };
    let (slow, fast) = (flows("0.25"), flows("0.5"));
    for (a, b) in slow.iter().zip(&fast) {
        assert_eq!((a.1, a.2, a.3), (b.1, b.2, b.3));
        assert!(a.0.abs_diff(2 * b.0) <= 2, "{} ps, {} ps", a.0, b.0);
    }
    assert_eq!((slow.len(), fast.len()), (200, 200));
}

#[test]
fn faster_hosts_start_more_flows() {
    let text = "[topology.links]\nhosts = 3\nswitches = [\"s\"]\nlinks = [[\"host0\", \"s\", \"300Gbps\"], \
                [\"host1\", \"s\", \"100Gbps\"], [\"host2\", \"s\", \"100Gbps\"]]\n[[workload]]\n\
                poisson = { sizes = { fixed = \"1kB\" }, count = 5000 }\n";
    let plan = check(&Source::new("t.toml", text), &[]).unwrap().plan;
    let sent = |host| plan.qps.iter().filter(|qp| qp.from == HostId(host)).count() as f64;
    assert!((sent(0) - 3000.0).abs() < 4.0 * 1200f64.sqrt(), "{}", sent(0));
    assert!((sent(1) - 1000.0).abs() < 4.0 * 800f64.sqrt(), "{}", sent(1));
}

#[test]
fn sizes_stay_within_their_limits() {
    let clamped = "sizes = \"enterprise-tail\", clamp = { min = \"20kB\", max = \"1MB\" }";
    for job in [format!("poisson = {{ {clamped} }}"), format!("random-partner = {{ {clamped} }}")] {
        let sizes: Vec<u64> = checked(&job).plan.messages.iter().map(|m| m.bytes).collect();
        assert!(sizes.iter().all(|bytes| (20_000..=1_000_000).contains(bytes)), "{job}");
        assert!(sizes.iter().filter(|bytes| **bytes == 20_000).count() * 10 > sizes.len() * 8, "{job}");
    }
    let even = checked("poisson = { sizes = { uniform = { min = \"1kB\", max = \"3kB\" } } }").plan;
    let mean = even.messages.iter().map(|m| m.bytes).sum::<u64>() as f64 / 1000.0;
    assert!((mean - 2_000.0).abs() < 4.0 * 577.4 / 1000f64.sqrt(), "{mean}");
}

#[test]
fn sizes_come_from_a_file_beside_the_scenario() {
    let folder = std::env::temp_dir().join(format!("ropewalk-sizes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mine.cdf"), "# mine\n1000 50\n1000 100\n").unwrap();
    std::fs::write(folder.join("broken.cdf"), "0 0\n1000 x\n").unwrap();
    let of = |file: &str, sets: &[String]| {
        let text = format!("{FABRIC}poisson = {{ sizes = \"{file}\", count = 10 }}\n");
        check(&Source::new(folder.join("s.toml").display().to_string(), text), sets)
    };
    let c = of("mine.cdf", &[]).unwrap();
    assert!(c.plan.messages.iter().all(|m| m.bytes == 1000));
    // The printed scenario has the rows of the file and does not need the file.
    let shown = c.annotated();
    assert!(shown.contains("points = [[\"1kB\", 50.0], [\"1kB\", 100.0]]\n"), "{shown}");
    let again = check(&Source::new("elsewhere.toml", c.to_toml()), &[]).unwrap();
    assert_eq!((again.hash(), &again.plan.messages), (c.hash(), &c.plan.messages));
    let broken = folder.join("broken.cdf").display().to_string();
    let want = format!("{broken}:2:6: expected a percentage, found `x`");
    assert_eq!(of("broken.cdf", &[]).unwrap_err().located(), want);
    assert_eq!(of("mine.cdf", &["workload.0.sizes=broken.cdf".into()]).unwrap_err().located(), want);
    let missing = of("none.cdf", &[]).unwrap_err().located();
    assert!(
        missing.contains("s.toml:6:21: the file ") && missing.contains("none.cdf cannot be read"),
        "{missing}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_host_draws_a_new_partner_when_its_message_is_acknowledged() {
    let plan = checked("qp = \"per-message\"\nrandom-partner = { bytes = \"1kB\", iterations = 50 }").plan;
    assert_eq!((plan.messages.len(), plan.triggers.len()), (16 * 50, 16 * 49));
    assert_eq!(plan.messages.iter().filter(|m| m.needs == 0).count(), 16);
    for host in 0..16 {
        let mine: Vec<_> = plan.qps.iter().filter(|qp| qp.from == HostId(host)).collect();
        assert_eq!(mine.len(), 50);
        let partners: std::collections::BTreeSet<_> = mine.iter().map(|qp| qp.to).collect();
        assert!(partners.len() >= 12, "50 draws among 15 hosts rarely miss more than one host");
    }
}

#[test]
fn a_window_limits_how_many_peers_a_rank_sends_to() {
    let plan = checked("all-to-all = { per-pair = \"1MB\", groups = \"all\", window = 4 }").plan;
    assert_eq!(plan.messages.iter().filter(|m| m.needs == 0).count(), 16 * 4);
    assert_eq!(plan.triggers.len(), 16 * 11);
    let one = |key: &str| checked(&format!("all-to-all = {{ {key}, groups = \"all\" }}")).plan;
    assert_eq!(one("window = 1").messages, one("schedule = \"staggered\"").messages);
    assert_eq!(one("window = 99").messages, one("schedule = \"at-once\"").messages);
}

#[test]
fn more_load_than_a_host_can_send_is_warned_of() {
    let warnings = |load: &str| checked(&format!("poisson = {{ load = {load} }}")).warnings();
    assert_eq!(warnings("0.9"), [""; 0]);
    // 1520 B on the wire for 1438 B of payload.
    let [warning] = &warnings("0.96")[..] else { panic!() };
    assert!(warning.starts_with("a load of 0.96 takes 1.015 of the line rate with headers"), "{warning}");
    assert_eq!(warnings("2").len(), 1);
}

#[test]
fn an_incast_takes_senders_from_all_racks() {
    let c = checked("incast = { senders = 5, receiver = \"host1\" }");
    assert_eq!(pairs(&c), [(0, 1), (4, 1), (5, 1), (8, 1), (12, 1)]);
}

#[test]
fn flows_share_a_queue_pair_in_order_of_their_starts_or_have_one_each() {
    let list = r#"flows = { list = [
        { from = "host0", to = "host5", bytes = "2B", start = "9us" },
        { from = "host0", to = "host5", bytes = "1B", start = "1us" },
    ] }"#;
    let c = checked(list);
    assert_eq!(c.plan.qps.len(), 1);
    assert_eq!(c.plan.messages.iter().map(|m| m.bytes).collect::<Vec<_>>(), [1, 2]);
    let c = checked(&format!("qp = \"per-message\"\nstart = \"1us\"\n{list}"));
    assert_eq!(c.plan.qps.len(), 2);
    assert_eq!(c.plan.messages[0].start, model::Time::from_us(2));
}

#[test]
fn jobs_run_at_the_same_time_under_their_names() {
    let c = checked(
        "incast = {}\n[[workload]]\nincast = {}\n[[workload]]\nname = \"bg\"\nbackground = true\npermutation = {}",
    );
    let names: Vec<_> = c.plan.jobs.iter().map(|j| (j.name.as_str(), j.background)).collect();
    assert_eq!(names, [("incast", false), ("incast-2", false), ("bg", true)]);
}

proptest! {
    #[test]
    fn every_collective_makes_a_valid_plan(
        leaves in 1usize..6, hosts in 1usize..6, bytes in 1u64..100_000, size in 2usize..12,
        kind in 0usize..6, per_message: bool,
    ) {
        let rule = if size % 2 == 0 { "groups = \"all\"".into() } else { format!("groups = \"contiguous\", group-size = {size}") };
        let job = match kind {
            0 => format!("all-reduce = {{ bytes = \"{bytes}B\", {rule} }}"),
            1 => format!("all-to-all = {{ bytes = \"{bytes}B\", {rule} }}"),
            2 => format!("all-to-all = {{ bytes = \"{bytes}B\", schedule = \"staggered\", {rule} }}"),
            3 => format!("all-to-all = {{ bytes = \"{bytes}B\", window = {size}, {rule} }}"),
            4 => format!("random-partner = {{ bytes = \"{bytes}B\", iterations = {size} }}"),
            _ => format!("neighbour-ring = {{ bytes = \"{bytes}B\", {rule} }}"),
        };
        let qp = if per_message { "per-message" } else { "persistent" };
        let text = format!("[topology.leaf-spine]\nleaves = {leaves}\nspines = 2\nhosts-per-leaf = {hosts}\n[[workload]]\nqp = \"{qp}\"\n{job}");
        if let Ok(c) = check(&Source::new("t.toml", text), &[]) {
            prop_assert_eq!(plan_check(&c.plan), Ok(()));
        }
    }
}

#[test]
fn messages_of_a_connection_take_its_queue_pairs_in_turn() {
    let lay = |keys: &str| {
        let list = "{ from = \"host0\", to = \"host1\", bytes = \"1kB\" }, ".repeat(7);
        let text = format!(
            "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n[[workload]]\n{keys}\n\
             flows = {{ list = [{list} {{ from = \"host1\", to = \"host0\", bytes = \"1kB\" }}] }}\n"
        );
        crate::check(&crate::Source::new("s.toml", text), &[])
    };
    let shares = |keys: &str| {
        let plan = lay(keys).unwrap_or_else(|e| panic!("{e}")).plan;
        plan.qps.iter().map(|qp| (qp.from.0, qp.messages.len())).collect::<Vec<_>>()
    };
    assert_eq!(shares(""), [(1, 1), (0, 7)]);
    assert_eq!(shares("qp = { in-turn = 1 }"), [(1, 1), (0, 7)]);
    assert_eq!(shares("qp = { in-turn = 3 }"), [(1, 1), (0, 3), (0, 2), (0, 2)]);
    assert_eq!(shares("qp = \"per-message\"").len(), 8);
    let both = lay("qp = { in-turn = 3 }\nsplit = { subflows = 2, paths = \"free\" }").unwrap_err();
    assert_eq!((both.code, both.key.join(".").as_str()), ("conflict", "workload.0.qp"), "{both}");
}

/// NVIDIA/nccl#545, #673: the NICs of a server share the work, whatever the algorithm.
#[test]
fn the_nics_of_a_server_send_alike_with_every_algorithm() {
    for &algorithm in collective::Algorithm::ALL {
        for kind in algorithm.kinds() {
            for (servers, nics) in [(2, 8), (4, 8), (5, 8), (8, 4)] {
                let text = format!(
                    "[server]\nnics = {nics}\n[topology.rails]\nservers = {servers}\nspines = 0\n[[workload]]\n\
                     collective = {{ kind = \"{}\", bytes = \"64MB\", algorithm = \"{}\" }}\n",
                    kind.name(),
                    algorithm.name()
                );
                // Some need a power of two of ranks, one rank per server, or one server.
                let Ok(laid) = check(&Source::new("t.toml", text), &[]) else { continue };
                let plan = &laid.plan;
                let mut sent = vec![0u64; plan.fabric.hosts()];
                for message in &plan.messages {
                    sent[plan.qps[message.qp.index()].from.index()] += message.bytes;
                }
                let alike = |server: &&[u64]| {
                    let (least, most) = (server.iter().min().unwrap(), server.iter().max().unwrap());
                    most - least <= most / 50
                };
                let uneven = sent.chunks(nics).filter(|server| !alike(server)).count();
                // A chain ends in one server, whose GPUs send on only if the root stands behind them.
                let ends = [collective::Kind::Broadcast, collective::Kind::Reduce].contains(kind);
                let at = format!("{} {} {servers} x {nics}: {sent:?}", algorithm.name(), kind.name());
                assert!(uneven <= usize::from(ends), "{at}");
            }
        }
    }
}
