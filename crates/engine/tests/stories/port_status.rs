//! Claim: a NIC with planes tells its peers which of its ports are down. Both ends leave these planes, and take them back at once.

use crate::lab::{agreed_on, lay};
use crate::servers::planes;
use engine::Outcome;
use engine::outcome::Ending;

/// One flow of 20 MB from s0 to s4, which takes 400 us over four planes. Links die and come back, and routes stay frozen.
fn flow(links: &str, times: &str, port_status: bool) -> Outcome {
    let rest = format!(
        "[[failure]]\nlinks = [{links}]\n{times}\n[routing]\ndetection = \"never\"\n[[workload]]\n[workload.flows]\n\
         list = [{{ from = \"s0g0p0\", to = \"s4g0p0\", bytes = \"20MB\" }}]\n"
    );
    let nic = format!("[nic.transport.mrc]\nport-status = {port_status}\n[nic.congestion.none]");
    let text = planes("mrc", &nic, &rest);
    let outcome = agreed_on(&lay(&text), &text);
    assert_eq!(outcome.ending, Ending::Finished, "{text}");
    outcome
}

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(n, _)| *n == name).map_or(0, |c| c.1)
}

/// Frames of the ports of s0.
fn frames(run: &Outcome) -> Vec<u64> {
    run.links[..4].iter().map(|link| link.frames).collect()
}

fn done(run: &Outcome) -> u64 {
    run.messages[0].acked.ps() / 1_000_000
}

/// Port 2 of the receiver, and of the sender.
const PORTS: [&str; 2] = ["[\"s4\", \"tor5\"]", "[\"s0\", \"tor4\"]"];

#[test]
fn both_ends_leave_the_plane_of_a_dead_port_and_the_other_planes_keep_equal_shares() {
    for port in PORTS {
        let run = flow(port, "at = \"40us\"", true);
        let sent = frames(&run);
        // Packets lost with the port are sent again over the others.
        let others = [sent[0], sent[1], sent[3]];
        assert!(others.iter().max().unwrap() * 99 < others.iter().min().unwrap() * 100, "{port}: {sent:?}");
        // The plane has its share for 40 us, for the 10 us until the report, and for the report's way.
        let time = sent[2] as f64 / sent[0] as f64 * done(&run) as f64;
        assert!((50.0..62.0).contains(&time), "{port}: {sent:?}, {time} us");
        assert!(run.control.port_status >= 2, "a report and its confirmation");
    }
}

#[test]
fn the_plane_is_back_as_soon_as_its_port_is() {
    for port in PORTS {
        let times = "at = \"40us\"\nuntil = \"200us\"";
        let (told, untold) = (flow(port, times, true), flow(port, times, false));
        let share = |run: &Outcome| frames(run)[2] as f64 / frames(run)[0] as f64;
        // Without reports, single entropies come back by probes at doubling intervals.
        assert!(share(&told) > share(&untold) + 0.1, "{port}: {:?}, {:?}", frames(&told), frames(&untold));
        assert!(done(&told) < done(&untold), "{port}: {} us, {} us", done(&told), done(&untold));
        let replaced = [&told, &untold].map(|run| counter(run, "entropies_replaced"));
        assert!(replaced[0] < replaced[1], "{port}: {replaced:?}");
        assert_eq!(untold.control.port_status, 0);
    }
}

#[test]
fn a_port_that_flaps_faster_than_the_report_is_not_reported() {
    let run = flow(PORTS[0], "at = \"40us\"\nuntil = \"44us\"", true);
    assert_eq!(run.control.port_status, 0);
}

/// Two servers report one port each to both ends of their queue pairs with five peers, and each report is confirmed. With a
/// tenth of all packets lost, reports and confirmations are, too; whoever misses one gets it again.
#[test]
fn lost_reports_are_repeated() {
    let told = |loss: &str| {
        let rest = format!(
            "{loss}[[failure]]\nlinks = [[\"s1\", \"tor2\"], [\"s4\", \"tor5\"]]\nat = \"5us\"\n\
             [routing]\ndetection = \"never\"\n\
             [[workload]]\ncollective = {{ kind = \"all-to-all\", bytes = \"6MB\" }}\n"
        );
        let text = planes("mrc", "[nic.transport.mrc]\n[nic.congestion.none]", &rest);
        let run = agreed_on(&lay(&text), &text);
        assert_eq!(run.ending, Ending::Finished);
        run.control.port_status
    };
    assert_eq!(told(""), 40);
    let lossy = told("[links]\nloss = 0.1\nlose-replies = true\n");
    assert!(lossy > 40, "{lossy}");
}
