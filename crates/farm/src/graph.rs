//! Random fabrics of the topology `links`: a tree of switches with some more links, and hosts with one port or several.

use crate::draws::Draws;
use serde_json::{Value as Json, json};

const RATES: [&str; 6] = ["100Gbps", "400Gbps", "40Gbps", "25Gbps", "73Gbps", "1Gbps"];
/// Delays by length.
const DELAYS: [&str; 10] = ["1ns", "10ns", "50001ps", "100ns", "333ns", "1us", "5us", "50us", "3ms", "150ms"];
/// The usual delays: from the first of these to 50 us. The shortest delay of a fabric is the length of a window, and with
/// short windows a run takes much longer, so they are rare.
const SHORTEST: [usize; 8] = [0, 2, 3, 4, 4, 5, 5, 5];

/// The table `topology.links`.
pub(crate) fn draw(draws: &mut Draws) -> Json {
    let hosts = 2 + draws.below(5);
    let switches = 1 + draws.below(4);
    let shortest = *draws.pick(&SHORTEST);
    let mut links = Vec::new();
    let mut link = |draws: &mut Draws, a: String, b: String| {
        // The long delays are rare.
        let most = if draws.chance(0.02) { DELAYS.len() } else { 8 };
        let delay = shortest + draws.below(most - shortest);
        links.push(json!([a, b, draws.pick(&RATES), DELAYS[delay]]));
    };
    for host in 0..hosts {
        let ports = if draws.chance(0.2) { 2 + draws.below(2) } else { 1 };
        for _ in 0..ports {
            let switch = draws.below(switches);
            link(draws, format!("host{host}"), format!("s{switch}"));
        }
    }
    for switch in 1..switches {
        let parent = draws.below(switch);
        link(draws, format!("s{switch}"), format!("s{parent}"));
    }
    for _ in 0..draws.below(5) {
        let (a, b) = (draws.below(switches), draws.below(switches));
        if a != b {
            link(draws, format!("s{a}"), format!("s{b}"));
        }
    }
    let names: Vec<String> = (0..switches).map(|switch| format!("s{switch}")).collect();
    json!({ "hosts": hosts, "switches": names, "links": links })
}
