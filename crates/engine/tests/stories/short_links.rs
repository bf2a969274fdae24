//! Claim: short links inside racks do not make the windows of the whole fabric short.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::outcome::{Ending, Outcome};
use model::{LinkId, Time};

const JOB: &str =
    "[scheme.themis]\n[[workload]]\npermutation = { bytes = \"200kB\", kind = \"cross-rack\" }\n";

fn on(hosts: &str, uplinks: &str) -> (Time, Outcome) {
    let fabric = leaf_spine(4, 4, 4, &format!("delay = \"{hosts}\"\nuplink-delay = \"{uplinks}\""));
    let text = format!("{fabric}{JOB}");
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert_eq!(run.ending, Ending::Finished);
    (Time(engine::window(&checked.plan)), run)
}

#[test]
fn racks_with_links_of_100_ns_take_the_windows_of_their_uplinks() {
    let (even, long) = on("1us", "1us");
    let (uneven, short) = on("100ns", "1us");
    let (all_short, _) = on("100ns", "100ns");
    assert_eq!((even, uneven, all_short), (Time::from_us(1), Time::from_us(1), Time::from_ns(100)));
    // The run is shorter by the hosts' delays, and takes no more windows.
    assert!(short.end < long.end);
    assert!(short.effort.windows <= long.effort.windows, "{:?} {:?}", short.effort, long.effort);
}

#[test]
fn the_window_is_at_most_16_times_the_shortest_link() {
    assert_eq!(on("10ns", "1us").0, Time::from_ns(160));
    assert_eq!(on("1us", "10ns").0, Time::from_ns(10), "all racks would be one group");
}

/// Host `far1` sends to a slow host, whose ToR must pause switch `s1`. Host `far0` sends to a fast host by `s0`: the ToR
/// takes packets of both switches in every step, but only those of `s1` wait.
#[test]
fn a_rack_that_steps_pauses_the_switch_whose_packets_wait() {
    let text = "[topology.links]\nhosts = [\"fast\", \"slow\", \"far0\", \"far1\"]\nswitches = [\"tor\", \"s0\", \"s1\"]\n\
        links = [\n\
        [\"fast\", \"tor\", \"100Gbps\", \"100ns\"], [\"slow\", \"tor\", \"10Gbps\", \"100ns\"],\n\
        [\"s0\", \"tor\", \"100Gbps\", \"1us\"], [\"s1\", \"tor\", \"100Gbps\", \"1us\"],\n\
        [\"far0\", \"s0\", \"100Gbps\", \"1us\"], [\"far1\", \"s1\", \"100Gbps\", \"1us\"]]\n\
        [switch]\nbuffer = \"1MB\"\necn = \"off\"\n[nic.congestion.none]\n\
        [[workload]]\nflows = { list = [{ from = \"far0\", to = \"fast\", bytes = \"2MB\" }, \
        { from = \"far1\", to = \"slow\", bytes = \"400kB\" }] }\n";
    let checked = lay(text);
    assert_eq!(Time(engine::window(&checked.plan)), Time::from_us(1));
    let run = agreed_on(&checked, text);
    let paused = |name: &str| {
        let links = (0..).map(LinkId).zip(&run.links);
        links
            .filter(|(id, _)| engine::link_name(&checked.plan.fabric, *id) == name)
            .map(|(_, l)| l.pauses)
            .sum::<u64>()
    };
    assert_eq!(paused("s0 -> tor"), 0);
    assert!(paused("s1 -> tor") > 0);
}
