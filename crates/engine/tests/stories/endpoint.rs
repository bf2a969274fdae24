//! Claim: schemes in the sending NIC have their intended effect on a whole fabric.

use crate::lab::{agreed_on, lay};
use engine::Outcome;

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(n, _)| *n == name).map_or(0, |c| c.1)
}

/// One flow from a to b at half of the fabric's rate, over m0 or m1, whose paths take 10 us and `other`. From time
/// to time ten other packets cross the link behind m0, then the link behind m1; a flow that waits for them is
/// marked.
fn two_paths(bursts: u32, other: &str, scheme: &str, clock: &str) -> String {
    let mut list = String::new();
    for burst in 0..bursts {
        let (from, at) = (burst % 2, 100 + 80 * burst);
        list += &format!("{{ from = \"c{from}\", to = \"d\", bytes = \"14380B\", start = \"{at}us\" }},");
    }
    format!(
        "[topology.links]\nhosts = [\"a\", \"b\", \"c0\", \"c1\", \"d\"]\nswitches = [\"s\", \"m0\", \"m1\", \"t\"]\n\
         rate = \"100Gbps\"\nlinks = [[\"a\", \"s\", \"50Gbps\"], [\"s\", \"m0\"], [\"s\", \"m1\"],\n\
         [\"m0\", \"t\", \"100Gbps\", \"10us\"], [\"m1\", \"t\", \"100Gbps\", \"{other}\"], [\"t\", \"b\", \"400Gbps\"],\n\
         [\"c0\", \"m0\"], [\"c1\", \"m1\"], [\"t\", \"d\"]]\n\
         [switch.ecn]\nkmin = \"2000B\"\nkmax = \"2001B\"\npmax = 1.0\n\
         [nic]\non-nack = \"none\"\nclock-spread = \"{clock}\"\n[nic.congestion.none]\n[nic.transport.sr-sack]\n\
         {scheme}\n[class.noise.scheme.ecmp]\n\
         [[workload]]\nflows = {{ list = [{{ from = \"a\", to = \"b\", bytes = \"4MB\" }}] }}\n\
         [[workload]]\nname = \"noise\"\nclass = \"noise\"\nflows = {{ list = [{list}] }}\n"
    )
}

const DLBF: &str = "[scheme.dlbf]\nports = 2\navailable = \"10ms\"\nunavailable = \"50us\"";

#[test]
fn dlbf_moves_a_flow_and_its_receiver_sees_every_packet_in_order() {
    let mut in_order = 0;
    for seed in 1..5 {
        let story = |bursts, other, clock| {
            let text = format!("seed = {seed}\n{}", two_paths(bursts, other, DLBF, clock));
            agreed_on(&lay(&text), &text)
        };
        // The paper's Fig. 3: the flow moves several times to the faster path and back to the slower one.
        let run = story(6, "3us", "1ms");
        assert!(counter(&run, "path_moves") >= 4, "{:?}", run.counters);
        assert!(
            counter(&run, "duplicates_sent") > 0 && counter(&run, "notifications_sent") == 1,
            "{:?}",
            run.counters
        );
        // The first move goes to a path of unknown delay. If the path is faster, its notification causes
        // retransmission of the packets that it overtook. Nothing else ever arrives out of order, and no packet is
        // considered lost.
        let first = story(2, "3us", "1ms");
        assert_eq!(
            (run.data.out_of_order, run.data.retransmitted),
            (first.data.out_of_order, first.data.retransmitted)
        );
        assert_eq!(run.control.nack, 0);
        assert_eq!(run.data.duplicate, run.data.duplicated + run.data.retransmitted);
        in_order += u32::from(run.data.out_of_order == 0);
        // The result does not depend on the clock offset.
        for clock in ["0us", "50ms"] {
            let other = story(6, "3us", clock);
            assert_eq!(
                (other.data, other.messages, other.counters),
                (run.data, run.messages.clone(), run.counters.clone())
            );
        }
        // After three bursts the flow is on the faster path. The fourth burst drives it to the slower path, where
        // it overtakes no packet.
        let (three, four) = (story(3, "3us", "1ms"), story(4, "3us", "1ms"));
        assert_eq!(counter(&four, "path_moves"), counter(&three, "path_moves") + 1);
        assert!(three.data.duplicated > 0 && four.data.duplicated == three.data.duplicated);
    }
    assert!((1..4).contains(&in_order), "both kinds of a first move: {in_order}");
}

#[test]
fn each_mechanism_of_dlbf_has_an_effect() {
    let run = |keys: &str| {
        let text = two_paths(6, "3us", &format!("{DLBF}\n{keys}"), "1ms");
        agreed_on(&lay(&text), &text)
    };
    let without_duplicates = run("duplicates = false");
    assert!(without_duplicates.data.out_of_order > 0 && without_duplicates.control.nack > 0);
    let without_moves = run("switching = false");
    assert_eq!((counter(&without_moves, "path_moves"), without_moves.data.duplicated), (0, 0));
}

#[test]
fn a_sender_that_sprays_reorders_and_one_that_keeps_to_ecmp_does_not() {
    for (scheme, reordered) in [("[scheme.rps-nic]", true), ("[scheme.reps]", true), ("[scheme.ecmp]", false)]
    {
        let text = two_paths(6, "3us", scheme, "1ms");
        let run = agreed_on(&lay(&text), &text);
        assert_eq!(run.data.out_of_order > 0, reordered, "{scheme}");
    }
}

#[test]
fn classes_have_schemes_of_their_own() {
    // Two racks. Background traffic keeps to one path and stays in order; foreground traffic is sprayed.
    let text = |scheme: &str| {
        format!(
            "[topology.leaf-spine]\nleaves = 2\nspines = 4\nhosts-per-leaf = 4\nrate = \"100Gbps\"\n\
             [nic.transport.ideal]\n[scheme.{scheme}]\n[class.background.scheme.ecmp]\n\
             [[workload]]\nname = \"job\"\npermutation = {{ bytes = \"300kB\", kind = \"shift\" }}\n\
             [[workload]]\nname = \"noise\"\nbackground = true\npermutation = {{ bytes = \"900kB\", kind = \"shift\" }}\n"
        )
    };
    for scheme in ["rps", "rps-nic", "themis", "reps"] {
        let text = text(scheme);
        let checked = lay(&text);
        let run = agreed_on(&checked, &text);
        assert!(run.data.out_of_order > 0, "{scheme}");
        let uplinks = |class: u8| -> usize {
            let of_class = |qp: u32| checked.plan.class_of(model::QpId(qp)) == class;
            (0..checked.plan.qps.len() as u32).filter(|&qp| of_class(qp)).count()
        };
        assert_eq!((uplinks(0), uplinks(1)), (8, 8));
    }
    let text = text("ecmp");
    let run = agreed_on(&lay(&text), &text);
    assert_eq!(run.data.out_of_order, 0);
}
