//! Claim: with PFC and the headroom that `check` recommends, no packet is lost to congestion, however small the
//! buffer. With less headroom packets are lost, and the run names the switches. ECMP without loss delivers in
//! order.

use crate::lab::{agreed_on, lay, leaf_spine, total};
use model::Bytes;
use model::plan::FlowControl;

/// 11 hosts send to one host through switches that share 15 kB beside their headroom.
fn heavy_incast(scheme: &str, congestion: &str) -> String {
    let fabric = leaf_spine(4, 2, 3, "rate = \"100Gbps\"\ndelay = \"500ns\"");
    format!(
        "{fabric}[switch]\nbuffer = \"94kB\"\n[scheme.{scheme}]\n[nic.congestion.{congestion}]\n\
         [[workload]]\nincast = {{ senders = 11, bytes = \"300kB\" }}\n"
    )
}

#[test]
fn with_enough_headroom_a_heavy_incast_loses_nothing() {
    for scheme in ["ecmp", "rps", "ar", "drill", "themis"] {
        for congestion in ["none", "dcqcn"] {
            let checked = lay(&heavy_incast(scheme, congestion));
            let run = agreed_on(&checked, scheme);
            assert_eq!((run.data.dropped_buffer, run.control.dropped), (0, 0));
            assert_eq!(run.broke_lossless, []);
            assert!(run.control.pause > 0);
            // Every pause is resumed, and all buffer is released, or `violations` would list it.
            assert_eq!(run.control.pause, run.control.resume);
            assert_eq!(total(&run, |l| l.pauses), run.control.pause);
            assert!(run.links.iter().all(|l| (l.paused.ps() > 0) == (l.pauses > 0)));
            assert_eq!(run.violations, [""; 0]);
        }
    }
}

#[test]
fn pause_frames_with_a_transmission_time_arrive_in_time() {
    // Frames of the HPCC family: a pause of 43 B waits for the frame before it, and data flows meanwhile.
    let text = heavy_incast("ecmp", "none").replace("94kB", "95kB");
    for hosts in ["cnp-first", "one"] {
        let text = format!("compat = \"ns3\"\n{text}")
            .replace("[switch]\n", &format!("[switch]\nclasses = \"{hosts}\"\n"));
        for seed in 1..9 {
            let run = agreed_on(&lay(&format!("seed = {seed}\n{text}")), &text);
            assert_eq!((run.data.dropped_buffer, run.control.dropped), (0, 0), "{hosts}, seed {seed}");
            assert!(run.control.pause > 0);
        }
    }
}

#[test]
fn a_resume_frame_waits_for_the_packet_that_leaves_by_the_same_port() {
    // The two ports of a NIC send to each other. As one of their ToRs is dead, both packets come and leave by the same port.
    let run = agreed_on(
        &lay("compat = \"ns3\"\nserver = { gpus = 1, ports-per-nic = 2 }\nwire = { payload = \"4000B\" }\n\
              topology = { rails = { servers = 1, spines = 1, uplink-delay = \"50ns\" } }\nswitch = { buffer = \"173541B\" }\n\
              failure = [{ switch = \"tor1\" }]\nworkload = [{ permutation = { bytes = \"3kB\" } }]\n"),
        "a NIC beside a dead ToR",
    );
    assert_eq!((total(&run, |link| link.pauses), total(&run, |link| link.paused.ps())), (2, 120_000));
}

#[test]
fn pauses_spread_from_the_receivers_leaf_to_the_senders() {
    let checked = lay(&heavy_incast("ecmp", "none"));
    let run = agreed_on(&checked, "incast");
    let fabric = &checked.plan.fabric;
    let paused = |role: &str| {
        let of = |l: &&model::fabric::Link| fabric.role(l.from) == role;
        fabric.links().iter().filter(of).any(|l| run.links[fabric.link(l.from, l.port).index()].pauses > 0)
    };
    assert!(paused("spine") && paused("leaf") && paused("host"));
}

#[test]
fn with_too_little_headroom_it_drops_and_the_run_names_the_switches() {
    let mut checked = lay(&heavy_incast("ecmp", "none"));
    for port in &mut checked.plan.ports {
        port.headroom = Bytes(1_500);
    }
    for switch in &mut checked.plan.switches {
        assert!(matches!(switch.flow_control, FlowControl::Lossless(_)));
        switch.buffer = Bytes(25_000);
    }
    let plan = &checked.plan;
    let run = agreed_on(&checked, "too little headroom");
    assert!(run.data.dropped_buffer > 0);
    let dropped_at = |node| {
        let base = plan.fabric.base(node) as usize;
        run.links[base..base + plan.fabric.ports(node).len()].iter().any(|l| l.drops > 0)
    };
    let guilty: Vec<_> = plan.fabric.switches().filter(|n| dropped_at(*n)).collect();
    assert_eq!(run.broke_lossless, guilty);
    assert!(guilty.contains(&plan.fabric.find("leaf0").unwrap()), "the leaf of the receiver");
}

#[test]
fn a_lossy_fabric_drops_and_breaks_no_promise() {
    let text = heavy_incast("ecmp", "none").replace("buffer = \"94kB\"", "buffer = \"40kB\"\npfc = \"off\"");
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert!(run.data.dropped_buffer > 0 && run.control.pause == 0);
    assert_eq!(run.broke_lossless, []);
}

#[test]
fn ecmp_without_loss_delivers_in_order() {
    let mut sprayed = 0;
    for workload in [
        "incast = { senders = 11, bytes = \"200kB\" }",
        "permutation = { bytes = \"200kB\" }",
        "all-to-all = { per-pair = \"20kB\", groups = \"all\" }",
        "all-reduce = { bytes = \"500kB\", groups = \"all\" }",
    ] {
        for scheme in ["ecmp", "rps"] {
            let fabric = leaf_spine(4, 4, 3, "rate = \"100Gbps\"\ndelay = \"500ns\"");
            let text = format!(
                "{fabric}[switch]\nbuffer = \"300kB\"\n[scheme.{scheme}]\n[[workload]]\n{workload}\n"
            );
            let checked = lay(&text);
            let run = agreed_on(&checked, &text);
            let spots = run.data.out_of_order + run.control.nack + run.data.retransmitted;
            match scheme {
                "ecmp" => assert_eq!(spots, 0, "{text}"),
                _ => sprayed += spots,
            }
        }
    }
    assert!(sprayed > 0, "spraying does not deliver in order");
}

/// A port that is resumed and paused again at the same instant sends one packet in between, whether its switch
/// keeps detailed accounts or not.
#[test]
fn a_resume_and_a_pause_at_one_instant_let_one_packet_through() {
    for (seed, delay, shared) in
        [(0, "500ns", 16_000), (1, "500ns", 36_000), (2, "2us", 60_000), (3, "100ns", 8_000)]
    {
        for (frame, pfc, offset) in [("", 0, 0), ("[wire]\nframe = \"4158B\"\n", 64, 0), ("", 64, 3072)] {
            let fabric = leaf_spine(4, 2, 3, &format!("rate = \"100Gbps\"\ndelay = \"{delay}\""));
            let text = format!(
                "seed = {seed}\n{fabric}{frame}[switch]\nbuffer = \"10MB\"\n[scheme.rps]\n[nic.congestion.none]\n\
                 [[workload]]\nname = \"a\"\nincast = {{ senders = 11, bytes = \"100kB\" }}\n\
                 [[workload]]\nname = \"b\"\npermutation = {{ bytes = \"150kB\" }}\n"
            );
            let mut checked = lay(&text);
            checked.plan.wire.pfc = pfc;
            let plan = &mut checked.plan;
            for (i, node) in plan.fabric.switches().enumerate() {
                if let FlowControl::Lossless(pfc) = &mut plan.switches[i].flow_control {
                    pfc.resume_offset = Bytes(offset);
                }
                // Leaves have small buffers and pause. Spines have large ones, so their visits stay light.
                if plan.fabric.role(node) == "leaf" {
                    let base = plan.fabric.base(node) as usize;
                    let ports = &plan.ports[base..base + plan.fabric.ports(node).len()];
                    plan.switches[i].buffer =
                        Bytes(ports.iter().map(|p| p.headroom.get()).sum::<u64>() + shared);
                }
            }
            let run = agreed_on(&checked, &text);
            assert!(run.control.pause > 0, "no switch paused in: {text}");
        }
    }
}
