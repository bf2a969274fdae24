//! Claim: switches that learn of a failure by themselves lose what real ones lose. Packets go on into dead links, or in circles,
//! until the news has arrived, and no longer.

use crate::lab::{agreed_on, lay};
use engine::Outcome;
use engine::outcome::{Ending, Losses};
use model::Time;

/// Four leaves with two hosts each under four spines; the link of leaf0 and spine0 dies at 100 us.
const DEAD_UPLINK: &str = "[topology.leaf-spine]\nleaves = 4\nspines = 4\nhosts-per-leaf = 2\nrate = \"100Gbps\"\n\
     [nic.transport.ideal]\n[nic.congestion.none]\n[scheme.rps]\n\
     [[failure]]\nlinks = [[\"leaf0\", \"spine0\"]]\nat = \"100us\"\n";

/// Host b of leaf `y` is two switches away from host a of `x`, and five the other way round.
const RING: &str = "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"x\", \"y\", \"z\", \"w\", \"v\"]\n\
     links = [[\"a\", \"x\", \"10Gbps\"], [\"b\", \"y\", \"10Gbps\"], [\"x\", \"y\"], [\"x\", \"z\"], [\"z\", \"w\"], [\"w\", \"v\"], [\"v\", \"y\"]]\n\
     rate = \"400Gbps\"\n[nic.transport.ideal]\n[nic.congestion.none]\n\
     [[failure]]\nlinks = [[\"x\", \"y\"]]\nat = \"100us\"\n";

fn detection(value: &str) -> String {
    format!("[routing]\ndetection = {value}\n")
}

fn flow(from: &str, to: &str, bytes: &str) -> String {
    format!(
        "[[workload]]\nflows = {{ list = [{{ from = \"{from}\", to = \"{to}\", bytes = \"{bytes}\" }}] }}\n"
    )
}

fn agreed(text: &str) -> Outcome {
    let checked = lay(text);
    let run = agreed_on(&checked, text);
    assert_eq!(run.ending, Ending::Finished, "{text}");
    run
}

/// The span in which packets were lost, and their number.
fn span(run: &Outcome) -> (Time, Time, u64) {
    let first = run.losses.iter().map(|losses| losses.first).min().unwrap();
    let last = run.losses.iter().map(|losses| losses.last).max().unwrap();
    (first, last, run.losses.iter().map(|losses| losses.packets).sum())
}

/// A spine without a link to a leaf has no other way down, so it is a black hole for that leaf until the other leaves have
/// heard: `local` and one hop after the failure. The leaf itself acts after `local`.
#[test]
fn a_spine_without_a_downlink_is_a_black_hole_until_the_leaves_have_heard() {
    let clocks = "{ local = \"10us\", per-hop = \"50us\", install = \"0us\" }";
    let down = agreed(&format!("{DEAD_UPLINK}{}{}", detection(clocks), flow("host2", "host0", "5MB")));
    let (first, last, lost) = span(&down);
    // One packet in four goes to spine0: a packet of 121.6 ns every 486 ns or so. Packets are up to 4 us on their way.
    assert!(Time::from_us(98) < first && first < Time::from_us(103), "{first}");
    assert!(Time::from_us(155) < last && last < Time::from_us(165), "{last}");
    assert_eq!(lost, down.data.dropped_link);
    assert!(down.data.black_hole > lost - 20 && (100..150).contains(&lost), "{:?}", down.data);
    assert_eq!(down.data.dropped_loop, 0);
    // The same way up: leaf0 sees its own port, and nobody has to hear.
    let up = agreed(&format!("{DEAD_UPLINK}{}{}", detection(clocks), flow("host0", "host2", "5MB")));
    let (_, last, fewer) = span(&up);
    assert!(last < Time::from_us(111) && fewer < lost / 2, "{last} {fewer} {lost}");
    // Switches that change at once after 60 us lose as many as those whose last one hears after 60 us.
    let at_once = agreed(&format!("{DEAD_UPLINK}{}{}", detection("\"60us\""), flow("host2", "host0", "5MB")));
    assert!(span(&at_once).2.abs_diff(lost) < 3, "{} {lost}", span(&at_once).2);
}

/// x turns to z at once, and z sends back to x until it has heard: packets run in circles of 2 us or so until their 64th switch.
#[test]
fn two_switches_send_packets_in_circles_until_the_second_has_heard() {
    let text = |clocks: &str| format!("{RING}{}{}", detection(clocks), flow("a", "b", "500kB"));
    let run = agreed(&text("{ local = \"10us\", per-hop = \"100us\", install = \"0us\" }"));
    let of = |is: fn(&&Losses) -> bool| run.losses.iter().find(is).copied().unwrap();
    let (link, circle) = (of(|losses| losses.link.is_some()), of(|losses| losses.link.is_none()));
    assert!(link.last < Time::from_us(111) && link.black_hole > 0, "{link:?}");
    assert_eq!((circle.since, circle.packets), (Time::from_us(100), run.data.dropped_loop));
    // From 110 us on packets circle. At 210 us z sends them on, and those that still circle arrive.
    assert!(Time::from_us(150) < circle.first && circle.last < Time::from_us(220), "{circle:?}");
    assert!(circle.packets > 20, "{circle:?}");
    let fast = agreed(&text("{ local = \"10us\", per-hop = \"1us\", install = \"0us\" }"));
    assert_eq!(fast.data.dropped_loop, 0, "packets that circle for 1 us are only late");
}

/// News of a repair may overtake that of the failure; switches draw their times. In the end all know what is true.
#[test]
fn flaps_faster_than_the_news_leave_all_switches_with_the_truth() {
    let mut text = DEAD_UPLINK.replace("at = \"100us\"", "at = \"20us\"\nuntil = \"25us\"");
    for at in [30, 40, 47, 80] {
        text += &format!(
            "[[failure]]\nlinks = [[\"leaf*\", \"spine1\"]]\nrandom = 2\nat = \"{at}us\"\nuntil = \"{}us\"\n",
            at + 6
        );
    }
    let clocks = detection("{ local = \"1us\", per-hop = \"2us\", install = \"70us\" }");
    let flows = flow("host0", "host7", "4MB") + &flow("host6", "host1", "4MB");
    let run = agreed(&format!("{text}{clocks}{flows}"));
    let checked = lay(&format!("{text}{clocks}{flows}"));
    let failures = &checked.plan.failures;
    for of_switch in failures.of_switches().chunk_by(|a, b| a.0 == b.0) {
        assert!(failures.routing(&of_switch[of_switch.len() - 1].1).is_none(), "all links work");
    }
    assert!(run.data.dropped_link > 0);
}
