//! Claim: flaps drawn by rate and distribution do what the same outages do that are written one by one, in every engine.

use crate::lab::{agreed_on, lay};
use engine::outcome::Ending;
use std::fmt::Write;

const FABRIC: &str = "[topology.leaf-spine]\nleaves = 4\nspines = 4\nhosts-per-leaf = 2\nrate = \"100Gbps\"\n\
     [nic]\ntimeout = { fixed = \"50us\" }\n[nic.transport.nic-sr]\n[nic.congestion.none]\n[scheme.ecmp]\n\
     [[workload]]\npermutation = { kind = \"shift\", bytes = \"4MB\" }\n";

const FLAPS: &str = "[[failure]]\nlinks = [[\"leaf*\", \"spine*\"]]\nat = \"20us\"\nuntil = \"400us\"\n\
     flaps = { up = \"600us\", down = { median = \"15us\", sigma = 1.0 } }\n";

#[test]
fn flaps_cost_what_the_same_outages_cost() {
    for detection in ["\"10us\"", "{ local = \"2us\", per-hop = \"5us\", install = \"10us\" }"] {
        let routing = format!("[routing]\ndetection = {detection}\n");
        let text = format!("{FABRIC}{routing}{FLAPS}");
        let checked = lay(&text);
        let drawn = agreed_on(&checked, &text);
        assert_eq!(drawn.ending, Ending::Finished);
        let fabric = &checked.plan.fabric;
        let causes: Vec<_> = checked.plan.failures.outages().collect();
        let mut written = format!("{FABRIC}{routing}");
        for cause in causes.iter().filter(|cause| cause.link < fabric.reverse(cause.link)) {
            let link = &fabric.links()[cause.link.index()];
            let (from, to) = (fabric.name(link.from), fabric.name(link.to));
            let (at, until) = (cause.at.ps(), cause.until.ps());
            writeln!(
                written,
                "[[failure]]\nlinks = [[\"{from}\", \"{to}\"]]\nat = \"{at}ps\"\nuntil = \"{until}ps\""
            )
            .unwrap();
        }
        let one_by_one = agreed_on(&lay(&written), &written);
        assert!(causes.len() > 8 && drawn.data.in_outages > 0, "{causes:?}");
        assert_eq!(
            (drawn.data, drawn.control, drawn.messages),
            (one_by_one.data, one_by_one.control, one_by_one.messages)
        );
    }
}

/// Each link has times of its own, which depend on the seed and on nothing else; both directions of a cable share them.
#[test]
fn each_link_flaps_by_itself_and_both_directions_at_once() {
    let spans = |text: &str| {
        let checked = lay(text);
        let fabric = &checked.plan.fabric;
        let of = |(link, way): (u32, fn(&model::Fabric, model::LinkId) -> model::LinkId)| -> Vec<_> {
            let link = way(fabric, model::LinkId(link));
            checked.plan.failures.outages().filter(|c| c.link == link).map(|c| (c.at, c.until)).collect()
        };
        let there: Vec<Vec<_>> =
            (0..fabric.links().len() as u32).map(|link| of((link, |_, link| link))).collect();
        let back: Vec<Vec<_>> =
            (0..fabric.links().len() as u32).map(|link| of((link, |f, link| f.reverse(link)))).collect();
        assert_eq!(there, back);
        there
    };
    let all = spans(&format!("{FABRIC}{FLAPS}"));
    let flapping: std::collections::BTreeSet<_> = all.iter().filter(|spans| !spans.is_empty()).collect();
    assert!(flapping.len() > 4, "the cables differ: {}", flapping.len());
    let one = spans(&format!("{FABRIC}{}", FLAPS.replace("leaf*", "leaf1")));
    assert!(one.iter().zip(&all).all(|(one, all)| one.is_empty() || one == all), "others change nothing");
    assert_ne!(all, spans(&format!("seed = 2\n{FABRIC}{FLAPS}")));
}
