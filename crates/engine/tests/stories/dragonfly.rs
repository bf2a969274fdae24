//! Claim: on a Dragonfly, minimal routing, Valiant and UGAL deliver every packet, equally on both engines. With
//! virtual channels PFC never deadlocks, whatever the load. With one channel it does, and the run names the ring.

use crate::lab::{agreed_on, lay, run, total};
use engine::link_name;
use engine::outcome::{Ending, Outcome};
use std::collections::BTreeSet;

/// A Dragonfly with `groups` of `routers` and 2 hosts per router; `more` adds keys of the topology, then of the
/// scenario.
fn dragonfly(groups: usize, routers: usize, links: usize, more: &str) -> String {
    format!(
        "[topology.dragonfly]\ngroups = {groups}\nrouters-per-group = {routers}\nhosts-per-router = 2\n\
         links-per-pair = {links}\nrate = \"100Gbps\"\ndelay = \"200ns\"\n{more}\n"
    )
}

const SCHEMES: [&str; 6] = [
    "minimal]",
    "valiant]",
    "valiant]\nper = \"flow\"",
    "ugal-l]\nbias = \"0B\"",
    "ugal-g]\ndelay = \"700ns\"",
    "ar]",
];

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(n, _)| *n == name).map_or(0, |(_, value)| *value)
}

/// A scenario whose switches share so little buffer beside their headroom that all of them send pauses; no sender
/// slows down.
fn full_load(scheme: &str, channels: u8, minimal: &str) -> String {
    let keys = format!(
        "channels = {channels}\nminimal = \"{minimal}\"\n[switch]\nbuffer = \"140kB\"\n[switch.pfc]\nalpha = \"1/16\"\n\
         [nic.transport.ideal]\n[nic.congestion.none]\n[nic]\ntimeout = \"none\"\n[stop]\nno-progress = \"3ms\"\n\
         [scheme.{scheme}\n[[workload]]\nall-to-all = {{ per-pair = \"60kB\", groups = \"all\" }}"
    );
    dragonfly(4, 3, 2, &keys)
}

#[test]
fn at_full_load_three_channels_never_deadlock() {
    for scheme in SCHEMES {
        for minimal in ["fewest-hops", "any-link"] {
            let (_, run) = run(&full_load(scheme, 3, minimal));
            assert_eq!(run.ending, Ending::Finished, "{scheme}, {minimal}");
            assert!(run.control.pause > 1_000, "{scheme}: {} pauses", run.control.pause);
            assert_eq!((run.data.dropped_buffer, run.broke_lossless.len()), (0, 0));
        }
    }
}

#[test]
fn at_full_load_one_channel_deadlocks_and_the_ring_is_named() {
    let text = full_load("valiant]", 1, "fewest-hops");
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    let Ending::Stalled(stall) = &run.ending else { panic!("it ended as {:?}", run.ending) };
    assert!(stall.pfc_cycle.len() >= 2 && run.data.dropped_buffer == 0);
    let fabric = &checked.plan.fabric;
    for (i, link) in stall.pfc_cycle.iter().enumerate() {
        let next = stall.pfc_cycle[(i + 1) % stall.pfc_cycle.len()];
        assert_eq!(fabric.links()[link.index()].to, fabric.links()[next.index()].from, "in order");
        let name = link_name(fabric, *link);
        assert!(name.matches("-router").count() == 2, "{name} joins two routers");
    }
}

#[test]
fn on_tight_and_loose_fabrics_both_engines_agree() {
    let jobs = [
        "permutation = { bytes = \"60kB\" }",
        "all-to-all = { per-pair = \"7kB\", groups = \"all\" }",
        "incast = { senders = 9, bytes = \"25kB\" }",
    ];
    let worlds = [
        "[switch]\nbuffer = \"200kB\"",
        "[switch]\nbuffer = \"8MB\"\n[switch.ecn]\nkmin = \"3kB\"\nkmax = \"12kB\"",
        "[switch]\nbuffer = \"200kB\"\nclasses = \"one\"",
        "[switch]\npfc = \"off\"\nbuffer = \"60kB\"\n[links]\nloss = 0.003",
        "[switch]\nbuffer = \"200kB\"\n[stop]\nafter = \"7654321ps\"",
    ];
    let (mut pauses, mut drops, mut detours) = (0, 0, 0);
    for (w, world) in worlds.iter().enumerate() {
        for (s, scheme) in
            SCHEMES.iter().chain(&["themis]\npath-map = false", "rps-nic]", "drill]"]).enumerate()
        {
            let (channels, minimal) = ([3, 2, 1][(w + s) % 3], ["fewest-hops", "any-link"][(w + s) % 2]);
            let keys = format!(
                "global-delay = \"500ns\"\nchannels = {channels}\nminimal = \"{minimal}\"\n{world}\n[scheme.{scheme}\n\
                 [[workload]]\n{}",
                jobs[(w + s) % 3]
            );
            let text = dragonfly([3, 2, 4][s % 3], [3, 4, 2][w % 3], 2, &keys);
            let run = agreed_on(&lay(&text), &text);
            pauses += run.control.pause;
            drops += run.data.dropped_buffer;
            detours += counter(&run, "ways_detour");
        }
    }
    assert!(pauses > 0 && drops > 0 && detours > 0, "{pauses} pauses, {drops} drops, {detours} detours");
}

/// One flow for each host, on the same tight fabric.
fn long_flows(scheme: &str) -> String {
    full_load(scheme, 3, "any-link").replace(
        "all-to-all = { per-pair = \"60kB\", groups = \"all\" }",
        "permutation = { bytes = \"400kB\" }",
    )
}

#[test]
fn minimal_routing_and_flows_with_a_group_of_their_own_stay_in_order() {
    for scheme in ["minimal]", "ecmp]", "valiant]\nper = \"flow\""] {
        let (_, run) = run(&long_flows(scheme));
        assert_eq!(run.data.out_of_order, 0, "{scheme}");
        assert!(run.control.pause > 0);
    }
    let (_, run) = run(&long_flows("valiant]"));
    assert!(run.data.out_of_order > 0, "Valiant per packet reorders");
}

/// The first host of group 0 sends to the first host of group 1, over the only link between the groups.
fn alone(scheme: &str) -> Outcome {
    let keys = format!(
        "[nic.transport.ideal]\n[nic.congestion.none]\n[scheme.{scheme}\n[[workload]]\n[workload.flows]\n\
         list = [{{ from = \"host0\", to = \"host6\", bytes = \"143800B\" }}]"
    );
    let text = dragonfly(4, 3, 1, &keys);
    agreed_on(&lay(&text), &text)
}

#[test]
fn a_detour_crosses_two_links_between_groups_and_a_minimal_way_one() {
    for (scheme, least, most) in [("minimal]", 300, 500), ("valiant]", 400, 700), ("ugal-l]", 300, 500)] {
        let run = alone(scheme);
        assert_eq!(run.ending, Ending::Finished);
        // 100 packets cross two links of hosts, and one to three (or two to five) links between routers.
        assert!((least..=most).contains(&run.data_hops), "{scheme}: {} hops", run.data_hops);
    }
}

/// All hosts of a group send to the next group. Minimal paths share a few links, and detours use the others. This
/// traffic is why Dragonflies need detours (Kim et al., ISCA 2008, section 4.2, worst-case traffic).
fn to_the_next_group(scheme: &str) -> Outcome {
    let flows: String = (0..16)
        .map(|h| format!("{{ from = \"host{h}\", to = \"host{}\", bytes = \"500kB\" }}, ", h + 16))
        .collect();
    let text = format!(
        "[topology.dragonfly]\ngroups = 5\nrouters-per-group = 4\nhosts-per-router = 4\nlinks-per-pair = 1\n\
         rate = \"100Gbps\"\ndelay = \"200ns\"\n[switch]\nbuffer = \"2MB\"\n[nic.transport.ideal]\n[nic.congestion.none]\n\
         [scheme.{scheme}\n[[workload]]\n[workload.flows]\nlist = [{flows}]\n"
    );
    run(&text).1
}

#[test]
fn detours_pay_under_worst_case_traffic() {
    let [minimal, valiant, local, global] =
        ["minimal]", "valiant]", "ugal-l]", "ugal-g]"].map(|scheme| to_the_next_group(scheme).end.as_us());
    // 16 flows share one link, or three detours.
    assert!(minimal > 640.0, "{minimal} us: 8 MB over 100 Gb/s");
    assert!(valiant < 0.5 * minimal, "valiant {valiant} us, minimal {minimal} us");
    assert!(local < 0.7 * minimal, "ugal-l {local} us, minimal {minimal} us");
    assert!(global < 0.7 * minimal, "ugal-g {global} us, minimal {minimal} us");
}

#[test]
fn without_load_ugal_takes_minimal_ways() {
    for scheme in ["ugal-l]", "ugal-g]"] {
        let run = alone(scheme);
        assert_eq!(counter(&run, "ways_detour"), 0);
        assert_eq!(counter(&run, "ways_minimal"), 100);
    }
}

#[test]
fn a_channel_that_is_paused_lets_others_pass() {
    // Pauses of a channel are counted per link. The paused links are those between routers and those from hosts.
    let checked = lay(&full_load("valiant]", 3, "fewest-hops"));
    let (_, run) = run(&full_load("valiant]", 3, "fewest-hops"));
    let fabric = &checked.plan.fabric;
    let paused: BTreeSet<&str> = fabric
        .links()
        .iter()
        .filter(|l| run.links[fabric.link(l.from, l.port).index()].pauses > 0)
        .map(|l| if fabric.is_host(l.from) { "host" } else { "router" })
        .collect();
    assert_eq!(paused, BTreeSet::from(["host", "router"]));
    assert_eq!(total(&run, |l| l.pauses), run.control.pause);
    assert!(
        fabric
            .links()
            .iter()
            .filter(|l| fabric.is_host(l.to))
            .all(|l| { run.links[fabric.link(l.from, l.port).index()].pauses == 0 })
    );
}

/// Failures 12 us after the start, in groups of three routers with two links between every two groups: one link
/// between two groups, all links between two groups, a link inside a group, and all of these with a router.
const DEATHS: [&str; 4] = [
    "links = [[\"group0-router0\", \"group1-router*\"]]",
    "links = [[\"group0-router*\", \"group1-router*\"]]",
    "links = [[\"group2-router0\", \"group2-router1\"], [\"group3-router1\", \"group3-router2\"]]",
    "links = [[\"group0-router*\", \"group1-router*\"], [\"group2-router0\", \"group2-router1\"], \
     [\"group0-router1\", \"group0-router2\"]]",
];

/// An all-to-all with a failure on the tight fabric of [`full_load`]; a timer recovers losses.
fn dies(death: &str, until: &str, scheme: &str, minimal: &str) -> String {
    full_load(scheme, 3, minimal)
        .replace("timeout = \"none\"", "timeout = { fixed = \"150us\" }")
        .replace("[nic.transport.ideal]", "[nic.transport.ideal]\nresend = \"all\"")
        .replace("60kB", "20kB")
        .replace("delay = \"200ns\"", "delay = \"1us\"")
        .replace("buffer = \"140kB\"", "buffer = \"480kB\"")
        + &format!("\n[routing]\ndetection = \"10us\"\n[[failure]]\n{death}\nat = \"12us\"\n{until}")
}

#[test]
fn when_links_die_in_the_middle_of_an_all_to_all_every_flow_finishes() {
    for (d, death) in DEATHS.iter().enumerate() {
        for (s, scheme) in ["minimal]", "valiant]", "ugal-l]", "ugal-g]", "flowcut]\ndeployment = \"full\""]
            .iter()
            .enumerate()
        {
            let minimal = ["fewest-hops", "any-link"][(d + s) % 2];
            let text = dies(death, "", scheme, minimal);
            let run = agreed_on(&lay(&text), &text);
            assert_eq!(run.ending, Ending::Finished, "{scheme}, {death}: {:?}", run.ending);
            let (lost, pauses) = (run.data.dropped_link, run.control.pause);
            assert!(lost > 0 && pauses > 100, "{scheme}, {death}: {lost} lost, {pauses} pauses");
            assert_eq!((run.data.dropped_buffer, run.broke_lossless.len()), (0, 0));
        }
    }
}

#[test]
fn dead_links_that_come_back_are_used_again() {
    for scheme in ["minimal]", "valiant]", "ugal-l]", "flowcut]\ndeployment = \"full\""] {
        let text = dies(DEATHS[3], "until = \"60us\"", scheme, "any-link");
        let run = agreed_on(&lay(&text), &text);
        assert_eq!(run.ending, Ending::Finished, "{scheme}");
        assert!(run.data.dropped_link > 0);
    }
}

#[test]
fn links_dead_from_the_start_lose_nothing_and_at_full_load_no_flow_waits_forever() {
    for death in DEATHS {
        for scheme in SCHEMES {
            for minimal in ["fewest-hops", "any-link"] {
                let text = full_load(scheme, 3, minimal) + &format!("\n[[failure]]\n{death}");
                let (_, run) = run(&text);
                assert_eq!(run.ending, Ending::Finished, "{scheme}, {minimal}, {death}");
                assert!(run.control.pause > 1_000, "{scheme}: {} pauses", run.control.pause);
                assert_eq!((run.data.dropped_buffer, run.data.dropped_link), (0, 0), "{scheme}, {death}");
                if scheme == "minimal]" {
                    assert_eq!(run.data.out_of_order, 0);
                }
            }
        }
    }
}

#[test]
fn a_router_without_links_is_cut_off_and_two_channels_do_not_lead_over_a_third_group() {
    let told = |channels: u8, death: &str| {
        let text =
            full_load("minimal]", channels, "fewest-hops") + &format!("\n[[failure]]\n{death}\nat = \"5us\"");
        lay(&text).warnings().join("\n")
    };
    assert!(!told(3, DEATHS[3]).contains("cut off"));
    let two = told(2, DEATHS[1]);
    assert!(two.contains("cut off") && two.contains("`channels = 3`"), "{two}");
    let dead = told(3, "switch = \"group1-router2\"");
    // Two hosts are cut off from 22 others and from each other.
    assert!(dead.contains("host10") && dead.contains("and 89 more queue pairs"), "{dead}");
    assert!(!dead.contains("channels"));
}
