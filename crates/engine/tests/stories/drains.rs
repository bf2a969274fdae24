//! Claim: Flowcut drains flows only for the delays that they meet themselves. A lone flow is never drained,
//! whatever preceded it. Lost packets and overflowing counters neither block a flow forever nor reorder it.

use crate::lab::{agreed_on, run};
use engine::Outcome;
use scenario::{Source, check};

const DEPLOYMENTS: [&str; 5] = [
    "deployment = \"nic\"",
    "deployment = \"full\"",
    "deployment = \"ingress\"",
    "deployment = \"ingress\"\nack-every = 3",
    "deployment = \"full\"\nbackpressure = \"class\"",
];

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(n, _)| *n == name).map_or(0, |c| c.1)
}

/// Two racks of four hosts, and flows between them.
fn two_racks(rate: &str, delay: &str, scheme: &str, nic: &str, flows: &[(&str, &str, &str, &str)]) -> String {
    let flows: String = flows
        .iter()
        .map(|(from, to, bytes, start)| {
            format!("{{ from = \"{from}\", to = \"{to}\", bytes = \"{bytes}\", start = \"{start}\" }},\n")
        })
        .collect();
    format!(
        "[topology.leaf-spine]\nleaves = 2\nspines = 4\nhosts-per-leaf = 4\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
         [wire]\npayload = \"4096B\"\n[switch]\nbuffer = \"32MB\"\necn = \"off\"\n{nic}\n[nic.congestion.none]\n\
         [scheme.flowcut]\n{scheme}\n[[workload]]\n[workload.flows]\nlist = [\n{flows}]\n"
    )
}

/// Completion time of the last message, us.
fn last(run: &Outcome) -> u64 {
    let last = run.messages.iter().max_by_key(|message| message.start).unwrap();
    (last.received.ps() - last.start.ps()) / 1_000_000
}

#[test]
fn a_lone_flow_is_never_drained_whatever_small_packets_went_before_it() {
    let nic = "[nic.transport.ideal]\nmax-outstanding = 20";
    let lone = ("host0", "host4", "4MB", "20us");
    let histories: [&[_]; 4] = [
        &[lone],
        &[("host1", "host5", "100B", "0us"), lone],
        &[("host0", "host4", "100B", "0us"), lone],
        &[("host0", "host4", "40100B", "0us"), ("host1", "host5", "1B", "1us"), lone],
    ];
    for deployment in DEPLOYMENTS {
        for flows in histories {
            let (_, run) =
                run(&two_racks("25Gbps", "500ns", &format!("{deployment}\nratio = 2.0"), nic, flows));
            assert_eq!(counter(&run, "drains"), 0, "{deployment}: {flows:?}");
            assert!((1300..1330).contains(&last(&run)), "{deployment}: {} us", last(&run));
        }
    }
}

#[test]
fn a_lone_flow_is_not_drained_after_an_incast_beyond_16_bits_of_nanoseconds() {
    let nic = "[nic.transport.ideal]\nmax-outstanding = 100";
    let flows = [
        ("host1", "host4", "4MB", "0us"),
        ("host2", "host4", "4MB", "0us"),
        ("host3", "host4", "4MB", "0us"),
        ("host0", "host5", "4MB", "20ms"),
    ];
    for deployment in DEPLOYMENTS {
        let incast = &two_racks("100Gbps", "1us", deployment, nic, &flows[..3]);
        let (_, before) = run(incast);
        let (_, after) = run(&two_racks("100Gbps", "1us", deployment, nic, &flows));
        assert_eq!(counter(&after, "drains"), counter(&before, "drains"), "{deployment}");
        assert!((325..340).contains(&last(&after)), "{deployment}: {} us", last(&after));
    }
}

#[test]
fn more_bytes_in_flight_than_24_bits_count_stay_in_order() {
    for deployment in ["full", "ingress"] {
        for more in
            ["", "credit = \"2MB\"", "drain-timeout = \"1s\"", "drain-timeout = \"30us\"", "overlap = 0"]
        {
            let text = format!(
                "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 1\nrate = \"100Gbps\"\n\
                 uplink-rate = \"10Gbps\"\ndelay = \"1us\"\n[wire]\npayload = \"4096B\"\n[switch]\nbuffer = \"1GB\"\n\
                 ecn = \"off\"\n[nic.transport.ideal]\nmax-outstanding = 20000\n[nic.congestion.none]\n[scheme.flowcut]\n\
                 deployment = \"{deployment}\"\nratio = 1000000.0\n{more}\n[[workload]]\n[workload.flows]\nlist = [\
                 {{ from = \"host0\", to = \"host1\", bytes = \"60MB\" }}, \
                 {{ from = \"host0\", to = \"host1\", bytes = \"1MB\", start = \"25ms\" }}]\n"
            );
            let (_, run) = run(&text);
            assert_eq!(run.data.out_of_order, 0, "{deployment} {more}");
            assert!(counter(&run, "in_flight_limit") > 0, "{deployment} {more}: {:?}", run.counters);
        }
    }
}

#[test]
fn a_lost_packet_costs_a_drain_once() {
    // Four flows share two uplinks and are drained again and again; one of the flows loses a packet.
    let nic = "[nic.transport.adaptive-routing]\nmax-outstanding = 80\nreorder-window = 128";
    for (deployment, sender) in [
        ("full", ""),
        ("ingress", ""),
        ("full", "backpressure = \"class\"\n"),
        ("ingress", "backpressure = \"class\"\n"),
    ] {
        let scheme = format!("deployment = \"{deployment}\"\n{sender}ratio = 1.2\nalpha = 1.0");
        let crowd: Vec<_> = ["host4", "host5", "host6", "host7"]
            .into_iter()
            .zip(["host0", "host1", "host2", "host3"])
            .map(|(to, from)| (from, to, "8MB", "0us"))
            .collect();
        let text = two_racks("100Gbps", "1us", &scheme, nic, &crowd).replace("spines = 4", "spines = 2");
        let lossy = format!("{text}[[links.lose]]\nfrom = \"host0\"\nto = \"host4\"\npsns = [40]\n");
        let checked = check(&Source::new("story.toml", &lossy), &[]).unwrap();
        let run = agreed_on(&checked, &lossy);
        assert_eq!((run.data.dropped_link, run.data.retransmitted > 0), (1, true), "{scheme}");
        let (drains, by_timer) = (counter(&run, "drains"), counter(&run, "drains_ended_by_timer"));
        assert!(drains > 20 && by_timer <= 2, "{scheme}: {by_timer} of {drains} drains waited for the timer");
        assert_eq!(counter(&run, "entries_left"), 0, "{scheme}");
    }
}

#[test]
fn a_signal_back_along_a_detour_needs_no_route() {
    // The minimal path's link inside group 1 is slow, so flows go over group 2, where a router has no link to group
    // 0.
    let text = "[topology.dragonfly]\ngroups = 3\nrouters-per-group = 3\nhosts-per-router = 2\nlinks-per-pair = 1\n\
         rate = \"100Gbps\"\nglobal-rate = \"40Gbps\"\ndelay = \"1us\"\nminimal = \"any-link\"\n[wire]\npayload = \"4096B\"\n\
         [switch]\nbuffer = \"1GB\"\necn = \"off\"\n[nic.transport.ideal]\nmax-outstanding = 200\n[nic.congestion.none]\n\
         [scheme.flowcut]\ndeployment = \"full\"\nratio = 1000000.0\n\
         [[failure]]\nlinks = [[\"group1-router0\", \"group1-router2\"]]\none-way = true\nrate = 0.02\n\
         [[workload]]\n[workload.flows]\nlist = [{ from = \"host0\", to = \"host8\", bytes = \"1MB\" }, \
         { from = \"host1\", to = \"host10\", bytes = \"100kB\", start = \"100us\" }]\n";
    let checked = check(&Source::new("story.toml", text), &[]).unwrap();
    let run = agreed_on(&checked, text);
    assert_eq!((run.data.out_of_order, counter(&run, "entries_left")), (0, 0));
}

#[test]
fn a_nic_that_keeps_its_average_drains_again_and_again() {
    // Four flows share three spines, so at least two of them collide, whatever ports they draw.
    let nic = "[nic.transport.ideal]\nmax-outstanding = 96";
    let flows = [
        ("host0", "host4", "4MB", "0us"),
        ("host1", "host5", "4MB", "0us"),
        ("host2", "host6", "4MB", "0us"),
        ("host3", "host7", "4MB", "0us"),
    ];
    let drains = |keep: bool| -> u64 {
        let of_seed = |seed: u32| {
            let text =
                two_racks("200Gbps", "1us", &format!("ratio = 2.0\nkeep-average = {keep}"), nic, &flows);
            let text = format!("seed = {seed}\n{}", text.replace("spines = 4", "spines = 3"));
            let checked = check(&Source::new("story.toml", &text), &[]).unwrap();
            let run = agreed_on(&checked, &text);
            assert_eq!((run.data.out_of_order, run.data.retransmitted), (0, 0), "seed {seed}, {keep}");
            counter(&run, "drains")
        };
        (0..6).map(of_seed).sum()
    };
    let (kept, reset) = (drains(true), drains(false));
    assert!(reset > 0 && kept > reset, "{kept} drains with the average kept, {reset} without");
}

/// A fat tree on which a core switch is dead at first and comes back at 100 us, so that active flows get more
/// paths.
fn comes_back(deployment: &str, seed: u32) -> Outcome {
    let (_, run) = run(&format!(
        "seed = {seed}\n[topology.fat-tree]\nk = 4\nrate = \"200Gbps\"\ndelay = \"1us\"\n[wire]\npayload = \"4096B\"\n[switch]\n\
         buffer = \"71MB\"\necn = \"off\"\n[nic.transport.ideal]\nmax-outstanding = 80\n[nic.congestion.none]\n[routing]\n\
         detection = \"10us\"\n[[failure]]\nswitch = \"core1\"\nat = \"0us\"\nuntil = \"100us\"\n[scheme.flowcut]\n\
         deployment = \"{deployment}\"\n[[workload]]\npermutation = {{ bytes = \"4MB\", kind = \"cross-pod\" }}\n"
    ));
    assert_eq!(run.data.dropped_link, 0, "nothing is lost");
    run
}

#[test]
fn route_changes_reorder_flows_where_switches_hash_but_not_where_all_keep_entries() {
    let disorder =
        |deployment| (1..4).map(|seed| comes_back(deployment, seed).data.out_of_order).sum::<u64>();
    assert_eq!(disorder("full"), 0);
    // A hash over one more port moves flows regardless of packets in flight, and schemes in NICs and ToRs cannot
    // see it.
    assert!(disorder("nic") > 0 && disorder("ingress") > 0);
}
