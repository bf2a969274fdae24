//! Claim: short links inside racks do not make the windows of the whole fabric short.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::outcome::{Ending, Outcome};
use model::Time;

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
