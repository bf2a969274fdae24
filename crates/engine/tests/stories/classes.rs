//! Claim: classes of a table get the service, the caps, the pauses and the marks that the table gives them.

use crate::lab::{agreed_on, lay, leaf_spine, run_on, total};
use engine::outcome::{Outcome, Passed};
use model::plan::Classes;
use model::record::RecordPlan;
use model::{Kind, LinkId, NodeId};

/// Tables that repeat the presets.
const PRESETS: [(&str, &str, Classes); 3] = [
    (
        "strict",
        "[{ kinds = [\"cnp\"] }, { kinds = [\"ack\", \"nack\", \"signal\", \"trimmed\", \"control\"]CAP }, { kinds = [\"data\"] }]",
        Classes::STRICT,
    ),
    ("one", "[{ kinds = [\"data\"]CAP }]", Classes::ONE),
    ("cnp-first", "[{ kinds = [\"cnp\"] }, { kinds = [\"data\"]CAP }]", Classes::CNP_FIRST),
];

/// A fabric with incasts, marks, pauses, losses or drops, and replies in both directions.
fn world(scheme: &str, switch: &str) -> String {
    let fabric = leaf_spine(3, 2, 3, "rate = \"100Gbps\"\ndelay = \"500ns\"");
    format!(
        "{fabric}[switch]\n{switch}\n[switch.ecn]\nkmin = \"3kB\"\nkmax = \"30kB\"\n[scheme.{scheme}\n\
         [nic]\ntimeout = {{ fixed = \"60us\" }}\n\
         [[workload]]\nname = \"a\"\nincast = {{ senders = 8, bytes = \"60kB\" }}\n\
         [[workload]]\nname = \"b\"\nall-to-all = {{ per-pair = \"8kB\", groups = \"all\" }}\n"
    )
}

fn without_effort(run: Outcome) -> Outcome {
    Outcome { effort: engine::outcome::Effort::default(), ..run }
}

#[test]
fn a_table_that_repeats_a_preset_is_the_preset() {
    for (name, table, classes) in PRESETS {
        for table in [format!("\"{name}\""), table.replace("CAP", "")] {
            let checked = lay(&world("ecmp]", &format!("classes = {table}")));
            assert_eq!(checked.plan.classes, classes, "{table}");
            assert!(checked.plan.classes.is_plain());
        }
    }
}

/// The class of probes, and whether the engine's rules for presets hold.
fn probes_in(classes: &str, infer: bool) -> (usize, bool) {
    let fabric = leaf_spine(2, 2, 2, "rate = \"100Gbps\"\ndelay = \"500ns\"");
    let classes = lay(&format!(
        "{fabric}[switch]\npfc = \"off\"\nclasses = {classes}\n[nic.transport.uec]\ninfer-loss = {infer}\n\
         [nic.congestion.nscc]\n[[workload]]\nincast = {{ senders = 2, bytes = \"8kB\" }}\n"
    ))
    .plan
    .classes;
    (classes.of(Kind::Probe), classes.is_plain())
}

#[test]
fn probes_wait_with_data_unless_a_class_lists_them() {
    assert_eq!(probes_in("\"strict\"", true), (2, false));
    assert_eq!(probes_in("\"one\"", true), (0, true));
    let replies = |more: &str| {
        format!("[{{ kinds = [\"ack\", \"nack\", \"control\"{more}] }}, {{ kinds = [\"data\", \"cnp\"] }}]")
    };
    assert_eq!(probes_in(&replies(""), true), (1, false));
    assert_eq!(probes_in(&replies(", \"probe\""), true).0, 0);
    // Without senders that probe, the engine is as fast as ever.
    assert_eq!(probes_in("\"strict\"", false), (1, true));
}

/// A cap that no queue reaches makes the table another one, so that the engine computes its queues by the general rules.
#[test]
fn the_general_rules_give_the_outcome_of_the_presets() {
    for buffer in [
        "buffer = \"150kB\"",
        "pfc = \"off\"\nbuffer = \"40kB\"",
        "pfc = \"off\"\nbuffer = \"60kB\"\ncut = \"on\"",
    ] {
        for scheme in ["themis]", "drill]", "conweave]"] {
            for (name, table, _) in PRESETS {
                let preset = lay(&world(scheme, &format!("{buffer}\nclasses = \"{name}\"")));
                let text = world(
                    scheme,
                    &format!("{buffer}\nclasses = {}", table.replace("CAP", ", cap = \"1GB\"")),
                );
                let checked = lay(&text);
                assert!(!checked.plan.classes.is_plain());
                let general = agreed_on(&checked, &text);
                let plain = Outcome {
                    notes: general.notes.clone(),
                    recording: general.recording.clone(),
                    queues: general.queues.clone(),
                    watermarks: general.watermarks.clone(),
                    ..run_on(&preset)
                };
                assert!(without_effort(plain) == without_effort(general), "{buffer}, {scheme}, {name}");
            }
        }
    }
}

/// Bytes of data and of cut packets on the receiver's link, frame by frame, while both classes wait.
fn bytes_sent(weights: [u32; 2]) -> Vec<[u64; 2]> {
    let [data, headers] = weights;
    let mut links = String::new();
    (0..=40).for_each(|host| links += &format!("[\"host{host}\", \"s\"], "));
    let text = format!(
        "[topology.links]\nhosts = 41\nswitches = [\"s\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\nlinks = [{links}]\n\
         [wire]\nframe = \"4158B\"\n[switch]\npfc = \"off\"\nbuffer = \"10MB\"\nqueue-cap = \"60kB\"\ncut = \"on\"\n\
         classes = [{{ kinds = [\"ack\", \"nack\", \"cnp\", \"signal\", \"control\"] }}, \
         {{ kinds = [\"trimmed\"], weight = {headers}, cap = \"100kB\" }}, {{ kinds = [\"data\"], weight = {data} }}]\n\
         [nic.congestion.none]\n[stop]\nafter = \"120us\"\n[[workload]]\nincast = {{ senders = 40, bytes = \"3MB\" }}\n"
    );
    let mut checked = lay(&text);
    let agreed = agreed_on(&checked, &text);
    assert!(agreed.data.headers_lost > 100, "the headers overflow their cap: {:?}", agreed.data);
    let plan = &mut checked.plan;
    let fabric = &plan.fabric;
    let down = fabric.reverse(LinkId(fabric.base(NodeId(0))));
    plan.record = RecordPlan { taps: vec![down], ..plan.record.clone() };
    let run = run_on(&checked);
    let mut sums = [0, 0];
    // Both classes have filled by 20 us, and the senders' first round trip is over.
    let frames = run.notes.frames.iter().filter(|frame| frame.at.ps() > 20_000_000);
    frames
        .map(|frame| {
            if let Passed::Packet(packet, _) = frame.what {
                sums[usize::from(!packet.is_data())] += u64::from(packet.frame());
            }
            sums
        })
        .collect()
}

#[test]
fn a_weighted_class_gets_its_share_to_within_one_frame() {
    for [data, headers] in [[3, 1], [1, 1], [75, 25]] {
        let sums = bytes_sent([data, headers]);
        assert!(sums.len() > 1000);
        for [sent, cut] in sums {
            let share = (sent + cut) as f64 * f64::from(data) / f64::from(data + headers);
            // A turn of the weights 75 and 25 brings 4800 B and 1600 B.
            let turn = f64::from(data.max(headers)) * 64.0;
            assert!(
                (sent as f64 - share).abs() <= 4158.0_f64.max(turn),
                "{data}:{headers}: {sent} of {}",
                sent + cut
            );
        }
    }
}

#[test]
fn a_class_that_is_not_charged_never_pauses() {
    let table = |charged: bool| {
        format!(
            "buffer = \"94kB\"\nclasses = [{{ kinds = [\"cnp\"] }}, {{ kinds = [\"data\"], charged = {charged}, cap = \"1GB\" }}]"
        )
    };
    for (charged, pauses) in [(true, true), (false, false)] {
        let text = world("ecmp]", &table(charged));
        let run = agreed_on(&lay(&text), &text);
        assert_eq!((run.control.pause > 0, run.data.dropped_buffer), (pauses, 0), "charged = {charged}");
        assert_eq!(run.max_buffer.iter().any(|most| most.get() > 0), charged);
    }
}

#[test]
fn a_pause_stops_the_charged_class_alone() {
    // Replies are charged, data is not: pauses of full switches hold back replies, and data goes on.
    let text = world(
        "ecmp]",
        "buffer = \"84kB\"\nclasses = [{ kinds = [\"ack\", \"nack\", \"cnp\"], charged = true }, { kinds = [\"data\"], charged = false }]",
    );
    let run = agreed_on(&lay(&text), &text);
    assert_eq!(run.ending.name(), "finished");
}

#[test]
fn only_marked_classes_mark() {
    for (marked, some) in [(true, true), (false, false)] {
        let text = world(
            "ecmp]",
            &format!(
                "buffer = \"1MB\"\nclasses = [{{ kinds = [\"data\"], marked = {marked}, cap = \"1GB\" }}]"
            ),
        );
        let run = agreed_on(&lay(&text), &text);
        assert_eq!((total(&run, |l| l.marks) > 0, run.control.cnp > 0), (some, some), "marked = {marked}");
    }
}

/// A fabric with PFC breaks its promise if it drops data for lack of buffer, and not where the user sets a cap.
#[test]
fn a_capped_class_drops_without_breaking_a_lossless_fabric() {
    let text = "topology = { links = { hosts = 3, switches = [\"s0\"], links = [[\"host0\", \"s0\"], [\"host1\", \"s0\"],\n\
                [\"host2\", \"s0\", \"1Gbps\"]] } }\nworkload = [{ back-to-back = {} }]\n\
                switch = { classes = [{ kinds = [\"data\"], cap = \"100000B\" }] }\n";
    let run = agreed_on(&lay(text), text);
    assert!(run.data.dropped_buffer > 0);
    assert_eq!(run.broke_lossless, []);
}

/// Beside its decision on a packet, ARS asks to be woken.
#[test]
fn a_capped_class_refuses_what_does_not_fit_whatever_the_scheme_asks_for() {
    for scheme in ["ars]", "ar]", "drill]", "flowcut]", "conga]", "themis]"] {
        let classes = "{ kinds = [\"cnp\", \"ack\"] }, { kinds = [\"data\"], cap = \"9000B\" }";
        let text = world(scheme, &format!("pfc = \"off\"\nbuffer = \"1MB\"\nclasses = [{classes}]"));
        let run = agreed_on(&lay(&text), &text);
        assert!(run.data.dropped_buffer > 0, "{scheme} fills no queue");
    }
}
