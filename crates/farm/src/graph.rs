//! Random fabrics of the topology `links`: a tree of switches with some more links, and hosts with one port or several.

use crate::draws::Draws;
use serde_json::{Value as Json, json};

const RATES: [&str; 6] = ["100Gbps", "400Gbps", "40Gbps", "25Gbps", "73Gbps", "1Gbps"];
const DELAYS: [&str; 10] = ["1us", "1ns", "10ns", "100ns", "333ns", "5us", "50us", "50001ps", "3ms", "150ms"];

/// The table `topology.links`.
pub(crate) fn draw(draws: &mut Draws) -> Json {
    let hosts = 2 + draws.below(5);
    let switches = 1 + draws.below(4);
    let mut links = Vec::new();
    let mut link = |draws: &mut Draws, a: String, b: String| {
        // The long delays are rare.
        let delay = if draws.chance(0.02) { draws.below(DELAYS.len()) } else { draws.below(8) };
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
