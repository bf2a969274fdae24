//! Claim: every packet and every byte is accounted for, even in a run that is cut short.
//!
//! After every run of every story, [`crate::lab::mistakes`] checks the books independently: packets by fate,
//! control packets by kind, hops against frames on links, and bytes that left the NICs against bytes of messages
//! and replies. This file covers runs with every fate of a packet, and stopped runs.

use crate::lab::{agreed_on, lay, leaf_spine, mistakes, total};
use engine::outcome::{Ending, Outcome};
use engine::{Kind, Observer, Progress};
use model::Time;

/// A scenario with every kind of fault at once: losses of data and replies, drops, go-back-N, spraying.
const ROUGH: &str = "[switch]\npfc = \"off\"\nbuffer = \"12kB\"\nclasses = \"one\"\n\
                     [switch.ecn]\nkmin = \"1kB\"\nkmax = \"10kB\"\n\
                     [links]\nloss = 0.02\nlose-replies = true\n[scheme.rps]\n\
                     [nic]\ntimeout = { fixed = \"100us\" }\n[nic.transport.go-back-n]\n\
                     [[workload]]\nall-to-all = { per-pair = \"40kB\", groups = \"all\" }\n";

fn rough(more: &str) -> String {
    format!("{}{ROUGH}{more}", leaf_spine(3, 3, 2, "rate = \"100Gbps\"\ndelay = \"300ns\""))
}

#[test]
fn every_way_in_which_a_packet_ends_is_counted() {
    let text = rough("");
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    let (d, c) = (&run.data, &run.control);
    assert_eq!(run.ending, Ending::Finished);
    for (what, count) in [
        ("accepted", d.accepted),
        ("duplicate", d.duplicate),
        ("discarded", d.discarded),
        ("dropped for lack of buffer", d.dropped_buffer),
        ("lost on a link", d.dropped_link),
        ("out of order", d.out_of_order),
        ("replies lost", c.dropped),
        ("NACKs", c.nack),
        ("CNPs", c.cnp),
        ("timeouts", c.timeout),
        ("marks", total(&run, |l| l.marks)),
    ] {
        assert!(count > 0, "{what} never happened");
    }
    // There are 30 messages of 28 packets, each accepted once; all other packets were sent in vain.
    assert_eq!(d.accepted, 30 * 28);
    assert_eq!(d.sent, d.accepted + d.retransmitted);
    assert_eq!(d.sent - d.accepted, d.duplicate + d.discarded + d.dropped_buffer + d.dropped_link);
    assert_eq!(d.in_flight + d.held + c.in_flight, 0);
}

#[test]
fn wherever_a_run_is_cut_its_sums_hold() {
    let mut in_flight = 0;
    for k in 1..60u64 {
        // Irregular times put the cut anywhere inside a window.
        let text = rough(&format!("[stop]\nafter = \"{}ps\"\n", k * k * 12_347));
        let checked = lay(&text);
        let run = agreed_on(&checked, &text);
        assert_eq!(run.ending, Ending::Stopped);
        assert_eq!(run.end, Time(k * k * 12_347));
        in_flight += u64::from(run.data.in_flight > 0 && run.control.in_flight > 0);
        assert!(run.data.sent <= 30 * 28 + run.data.retransmitted);
    }
    assert!(in_flight > 40, "packets were in flight in {in_flight} of 59 cuts");
}

#[test]
fn a_longer_run_has_done_all_that_a_shorter_one_has() {
    let at = |us: u64| {
        let checked = lay(&rough(&format!("[stop]\nafter = \"{us}us\"\n")));
        sim::run(&checked.plan, &checked.schemes, &checked.nics, Kind::Window, &mut ())
    };
    let runs: Vec<Outcome> = (1..30).map(at).collect();
    for pair in runs.windows(2) {
        assert!(pair[0].data.sent <= pair[1].data.sent);
        assert!(pair[0].data.accepted <= pair[1].data.accepted);
        for (a, b) in pair[0].messages.iter().zip(&pair[1].messages) {
            assert!(a.received == b.received || a.received == Time::NEVER && b.received > pair[0].end);
        }
    }
}

/// An observer that interrupts the run after some calls, as Ctrl-C would.
struct Impatient(u64);

impl Observer for Impatient {
    fn on_progress(&mut self, progress: Progress) -> bool {
        assert!(progress.finished <= progress.messages);
        self.0 -= 1;
        self.0 > 0
    }
}

#[test]
fn an_interrupted_run_keeps_its_books() {
    let text = format!(
        "{}[[workload]]\npermutation = {{ bytes = \"20MB\", kind = \"cross-rack\" }}\n",
        leaf_spine(4, 4, 4, "")
    );
    let checked = lay(&text);
    for kind in [Kind::Reference, Kind::Window, Kind::HalfWindow] {
        let run = sim::run(&checked.plan, &checked.schemes, &checked.nics, kind, &mut Impatient(2));
        assert_eq!(run.ending, Ending::Interrupted, "{kind:?}");
        assert_eq!(mistakes(&checked.plan, &run), [""; 0], "{kind:?}");
        assert!(run.data.in_flight > 0 && run.data.accepted > 0);
    }
}

#[test]
fn background_traffic_is_cut_when_the_foreground_is_done() {
    let text = format!(
        "{}[[workload]]\nname = \"noise\"\nbackground = true\nneighbour-ring = {{ bytes = \"5MB\" }}\n\
         [[workload]]\npermutation = {{ bytes = \"50kB\" }}\n",
        leaf_spine(3, 3, 2, "")
    );
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert_eq!(run.ending, Ending::Finished);
    assert!(run.data.in_flight > 0);
    let last = (0..run.messages.len())
        .filter(|&i| !checked.plan.job(model::MessageId(i as u32)).background)
        .map(|i| run.messages[i].acked)
        .max()
        .unwrap();
    // The run ends with the window in which the last foreground ACK arrives.
    let window = Time(engine::window(&checked.plan));
    assert!(last < run.end && run.end <= last + window, "{last} {}", run.end);
}

#[test]
fn short_background_jobs_do_not_delay_the_end() {
    // With and without timers, the noise ends long before the foreground.
    for nic in ["", "[nic]\ntimeout = \"none\""] {
        let text = format!(
            "{}{nic}\n[[workload]]\nname = \"noise\"\nbackground = true\nneighbour-ring = {{ bytes = \"2kB\" }}\n\
             [[workload]]\npermutation = {{ bytes = \"50kB\" }}\n",
            leaf_spine(3, 3, 2, "")
        );
        let checked = lay(&text);
        let run = agreed_on(&checked, &text);
        let last = run.messages.iter().map(|m| m.acked).max().unwrap();
        assert!(last <= run.end && run.end <= last + Time(engine::window(&checked.plan)));
    }
}
