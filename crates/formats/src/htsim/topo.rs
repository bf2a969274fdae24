//! Topologies of htsim (`.topo`): two or three tiers of switches, by their radices.

use crate::words::{Line, Word, lines};
use finding::{Finding, code, suggestion};
use std::collections::BTreeMap;
use std::fmt::Write;

/// True if a text looks like a topology: a line begins with `Nodes`, and another one with `Tiers`.
pub fn is_topology(text: &str) -> bool {
    let begins = |key: &str| {
        let first =
            |line: &str| line.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case(key));
        text.lines().any(first)
    };
    begins("Nodes") && begins("Tiers")
}

/// Keys of the header.
const HEADER: [&str; 3] = ["nodes", "tiers", "podsize"];

/// Keys of a tier.
const TIER: [&str; 9] = [
    "downlink_speed_gbps",
    "downlink_latency_ns",
    "radix_down",
    "radix_up",
    "oversubscribed",
    "bundle",
    "queue_up",
    "queue_down",
    "switch_latency_ns",
];

/// Largest value of a key. Our choice: beyond any fabric, and small enough for products of three.
const MOST: u64 = 1 << 20;

/// A number with its word.
type Value<'a> = (u64, Word<'a>);

/// The keys of the file.
#[derive(Default)]
struct Keys<'a> {
    header: BTreeMap<&'static str, Value<'a>>,
    tiers: BTreeMap<u64, BTreeMap<&'static str, Value<'a>>>,
    skipped: Vec<String>,
}

/// A tier of switches, and the links below it.
#[derive(Clone, Copy, Debug)]
struct Tier {
    gbps: u64,
    /// Delay of a link below, ns.
    delay: u64,
    down: u64,
    up: u64,
    oversubscribed: u64,
    /// Parallel links to each switch below.
    bundle: u64,
    /// Time that a switch takes, ns.
    latency: u64,
}

/// A fabric as TOML, and warnings.
pub type Fabric = (String, Vec<Finding>);

/// Reads a topology; messages call it `file`.
pub fn read(file: &str, text: &str) -> Result<Fabric, Finding> {
    let keys = keys(file, text)?;
    let end = Word::end(file, text);
    let header = |key: &str| {
        let missing = || end.error(format!("the line `{key} N` is missing"));
        keys.header.get(key).copied().ok_or_else(missing)
    };
    let (nodes, nodes_word) = header("nodes")?;
    let (count, count_word) = header("tiers")?;
    if !(2..=3).contains(&count) {
        return Err(count_word.error(format!("expected 2 or 3 tiers, found {count}")));
    }
    let (podsize, podsize_word) = match keys.header.get("podsize") {
        Some(size) => *size,
        None if count == 2 => (nodes, nodes_word),
        None => return Err(header("podsize").err().unwrap_or_else(|| end.error("no podsize"))),
    };
    if podsize == 0 || !nodes.is_multiple_of(podsize) {
        return Err(podsize_word.error(format!("{nodes} nodes do not fill pods of {podsize}")));
    }
    let skipped = |line: &String| format!("the line `{line}` of {file} has no effect, as in htsim");
    let mut warnings: Vec<Finding> =
        keys.skipped.iter().map(|line| code::NO_EFFECT.plain(skipped(line))).collect();
    let tiers = (0..count).map(|number| tier(&keys, number, count, end)).collect::<Result<Vec<_>, _>>()?;
    if keys.tiers.values().any(|tier| tier.contains_key("queue_up") || tier.contains_key("queue_down")) {
        let text = format!("`Queue_Up` and `Queue_Down` of {file} have no effect; set `switch.queue-cap`");
        warnings.push(code::NO_EFFECT.plain(text));
    }
    if let Some((number, tier)) = keys.tiers.iter().find(|(number, _)| **number >= count) {
        let word = tier.values().next().map_or(end, |(_, word)| *word);
        return Err(word.error(format!("there is no tier {number}: the file has {count} tiers")));
    }
    let shape = shape(nodes, podsize, &tiers, nodes_word)?;
    Ok((toml(nodes, &tiers, &shape), warnings))
}

fn keys<'a>(file: &'a str, text: &'a str) -> Result<Keys<'a>, Finding> {
    let mut keys = Keys::default();
    let mut tier: Option<u64> = None;
    for mut line in lines(file, text).filter(|line| !line.words[0].word.starts_with('#')) {
        let word = line.take();
        let key = word.word.to_ascii_lowercase();
        if key == "tier" {
            let number = value(&mut line, "tier")?;
            if keys.tiers.insert(number.0, BTreeMap::new()).is_some() {
                return Err(word.error(format!("tier {} stands twice", number.0)));
            }
            tier = Some(number.0);
            continue;
        }
        let known = if tier.is_some() { &TIER[..] } else { &HEADER[..] };
        let Some(key) = known.iter().copied().find(|known| *known == key) else {
            if tier.is_none() {
                let words: Vec<&str> = line.words.iter().map(|word| word.word).collect();
                keys.skipped.push(words.join(" "));
                continue;
            }
            let error = word.error(format!("expected a key of a tier, found `{}`", word.word));
            return Err(error.with_help(suggestion(&key, known)));
        };
        let number = value(&mut line, key)?;
        let table = match tier.and_then(|tier| keys.tiers.get_mut(&tier)) {
            Some(table) => table,
            None => &mut keys.header,
        };
        if table.insert(key, number).is_some() {
            return Err(word.error(format!("`{}` stands twice", word.word)));
        }
    }
    Ok(keys)
}

/// The value of a line.
fn value<'a>(line: &mut Line<'a>, key: &str) -> Result<Value<'a>, Finding> {
    let word = line.take();
    let number = word.number(&format!("a whole number after `{key}`"))?;
    line.finish()?;
    match number > MOST {
        true => Err(word.error(format!("expected at most {MOST}, found {number}"))),
        false => Ok((number, word)),
    }
}

fn tier(keys: &Keys<'_>, number: u64, count: u64, end: Word<'_>) -> Result<Tier, Finding> {
    let Some(table) = keys.tiers.get(&number) else {
        return Err(end.error(format!("tier {number} is missing: the file has {count} tiers")));
    };
    let of = |key: &str| match table.get(key) {
        Some((0, word)) if !["switch_latency_ns", "downlink_latency_ns"].contains(&key) => {
            Err(word.error(format!("expected `{key}` above 0, found 0")))
        }
        Some((value, _)) => Ok(Some(*value)),
        None => Ok(None),
    };
    let needed = |key: &str| {
        let missing = || {
            let word = table.values().next_back().map_or(end, |(_, word)| *word);
            word.error(format!("tier {number} has no `{key}`"))
        };
        of(key)?.ok_or_else(missing)
    };
    Ok(Tier {
        gbps: needed("downlink_speed_gbps")?,
        delay: needed("downlink_latency_ns")?,
        down: needed("radix_down")?,
        up: if number + 1 < count { needed("radix_up")? } else { 0 },
        oversubscribed: of("oversubscribed")?.unwrap_or(1),
        bundle: of("bundle")?.unwrap_or(1),
        latency: of("switch_latency_ns")?.unwrap_or(0),
    })
}

/// Numbers of switches.
#[derive(Debug)]
struct Shape {
    pods: u64,
    /// ToRs of a pod.
    tors: u64,
    /// Aggregation switches of a pod.
    aggs: u64,
    cores: u64,
}

/// Most links. Our choice, as for other fabrics of this size.
const MOST_LINKS: u64 = 1 << 22;

fn shape(nodes: u64, podsize: u64, tiers: &[Tier], word: Word<'_>) -> Result<Shape, Finding> {
    let wrong = |text: String| Err(word.error(text));
    let [low, middle] = [tiers[0], tiers[1]];
    if low.bundle != 1 {
        return wrong(format!("tier 0 has `Bundle {}`; a host has one link", low.bundle));
    }
    if !podsize.is_multiple_of(low.down) {
        return wrong(format!("a pod of {podsize} hosts does not fill ToRs of {}", low.down));
    }
    if low.down / low.up != low.oversubscribed {
        return wrong(format!(
            "tier 0 has {} links down and {} up, so `Oversubscribed` must be {}, found {}",
            low.down,
            low.up,
            low.down / low.up,
            low.oversubscribed
        ));
    }
    let (pods, tors) = (nodes / podsize, podsize / low.down);
    let exact = |product: u64, by: u64, what: &str| match product.is_multiple_of(by) && product > 0 {
        true => Ok(product / by),
        false => Err(word.error(format!("the number of {what}, {product} / {by}, is not whole"))),
    };
    let uplinks = exact(nodes * low.gbps, middle.gbps * low.oversubscribed, "links above the ToRs")?;
    let aggs = exact(uplinks, pods * middle.down, "aggregation switches of a pod")?;
    if aggs * middle.bundle != low.up {
        return wrong(format!(
            "a ToR has `Radix_Up {}`, but {aggs} aggregation switches with {} links each above it",
            low.up, middle.bundle
        ));
    }
    if tors * middle.bundle != middle.down {
        return wrong(format!(
            "an aggregation switch has `Radix_Down {}`, but {tors} ToRs with {} links each below it",
            middle.down, middle.bundle
        ));
    }
    let mut cores = 0;
    if let Some(high) = tiers.get(2) {
        let links = exact(uplinks * middle.gbps, high.gbps * middle.oversubscribed, "links below the cores")?;
        cores = exact(links, high.down, "cores")?;
        let per_agg = exact(cores, aggs, "cores of an aggregation switch")?;
        if per_agg * high.bundle != middle.up {
            return wrong(format!(
                "an aggregation switch has `Radix_Up {}`, but {per_agg} cores with {} links each above it",
                middle.up, high.bundle
            ));
        }
    } else if pods > 1 {
        return wrong(format!("two tiers join one pod, and {nodes} nodes are {pods} pods"));
    }
    let links = nodes + pods * tors * low.up + pods * aggs * middle.up;
    match links > MOST_LINKS {
        true => wrong(format!("the fabric has {links} links; at most {MOST_LINKS} are possible")),
        false => Ok(Shape { pods, tors, aggs, cores }),
    }
}

fn toml(nodes: u64, tiers: &[Tier], shape: &Shape) -> String {
    let Shape { pods, tors, aggs, cores } = *shape;
    let mut toml = format!("[topology.links]\nhosts = {nodes}\nswitches = [\n");
    for (role, count) in [("tor", pods * tors), ("agg", pods * aggs), ("core", cores)] {
        for i in 0..count {
            let _ = writeln!(toml, "  {{ name = \"{role}{i}\", role = \"{role}\" }},");
        }
    }
    toml.push_str("]\nlinks = [\n");
    // The time that a switch takes is shared by the links at both sides of the packet's way through it.
    let delay = |below: Option<Tier>, above: Tier| {
        let both = above.latency + below.map_or(0, |below| below.latency);
        format!("{}ps", above.delay * 1000 + both * 500)
    };
    let mut link = |from: String, to: String, rate: u64, delay: &str| {
        let _ = writeln!(toml, "  [\"{from}\", \"{to}\", \"{rate}Gbps\", \"{delay}\"],");
    };
    let low = tiers[0];
    for host in 0..nodes {
        link(format!("host{host}"), format!("tor{}", host / low.down), low.gbps, &delay(None, low));
    }
    let middle = tiers[1];
    let above = delay(Some(low), middle);
    for tor in 0..pods * tors {
        for agg in 0..aggs {
            let agg = tor / tors * aggs + agg;
            (0..middle.bundle)
                .for_each(|_| link(format!("tor{tor}"), format!("agg{agg}"), middle.gbps, &above));
        }
    }
    if let Some(&high) = tiers.get(2) {
        let above = delay(Some(middle), high);
        for agg in 0..pods * aggs {
            for core in (agg % aggs..cores).step_by(aggs as usize) {
                (0..high.bundle)
                    .for_each(|_| link(format!("agg{agg}"), format!("core{core}"), high.gbps, &above));
            }
        }
    }
    toml.push_str("]\n");
    toml
}

#[cfg(test)]
mod tests {
    use super::*;
    use files::damage::Draws;
    use scenario::{Checked, Source, check};

    fn fabric(text: &str) -> Result<Fabric, Finding> {
        read("t.topo", text)
    }

    fn laid(text: &str) -> Checked {
        let (toml, _) = fabric(text).unwrap();
        let job = "[[workload]]\nname = \"job\"\npermutation = { bytes = \"4kB\" }\n";
        check(&Source::new("t.toml", format!("{toml}{job}")), &[]).unwrap()
    }

    const THREE: &str = "Nodes 8\nTiers 3\nPodsize 4\n\
        Tier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 100\n\
        Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\nBundle 1\nDownlink_Latency_ns 1000\nQueue_Up 100\n\
        Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\nBundle 2\nDownlink_Latency_ns 2000\n";

    #[test]
    fn three_tiers_have_their_switches_and_parallel_links() {
        let (toml, warnings) = fabric(THREE).unwrap();
        let count = |what: &str| toml.matches(what).count();
        assert_eq!([count("role = \"tor\""), count("role = \"agg\""), count("role = \"core\"")], [4, 4, 4]);
        assert_eq!(count("Gbps"), 32, "8 to hosts, 8 above ToRs, and 16 above the next switches in 8 pairs");
        assert_eq!(count("[\"agg0\", \"core0\","), 2);
        assert_eq!(count("[\"agg3\", \"core3\","), 2);
        assert!(
            warnings[0].text.contains("`Queue_Up` and `Queue_Down` of t.topo have no effect"),
            "{warnings:?}"
        );
        let plan = laid(THREE).plan;
        assert_eq!((plan.fabric.hosts(), plan.fabric.switches().count()), (8, 12));
        // A ToR takes 100 ns: half of it is on the link to the host, half on the link above.
        assert!(toml.contains("[\"host0\", \"tor0\", \"200Gbps\", \"1050000ps\"]"), "{toml}");
        assert!(toml.contains("[\"tor0\", \"agg0\", \"200Gbps\", \"1050000ps\"]"), "{toml}");
    }

    #[test]
    fn keys_have_any_case_and_comments_and_unknown_header_lines_are_skipped() {
        let text = THREE.to_uppercase().replacen("TIERS", "# a comment\nColour blue\ntiers", 1);
        let (toml, warnings) = fabric(&text).unwrap();
        assert_eq!(toml, fabric(THREE).unwrap().0);
        assert!(
            warnings.iter().any(|w| w.text.contains("the line `Colour blue` of t.topo has no effect")),
            "{warnings:?}"
        );
    }

    #[test]
    fn wrong_topologies_are_refused_with_line_and_column() {
        for (old, new, message) in [
            ("Tiers 3", "Tiers 4", "2:7: expected 2 or 3 tiers, found 4"),
            ("Podsize 4", "Podsize 3", "3:9: 8 nodes do not fill pods of 3"),
            ("Radix_Up 2", "Radix_Upp 2", "7:1: expected a key of a tier, found `Radix_Upp`"),
            ("Radix_Up 2", "Radix_Up 1", "so `Oversubscribed` must be 2, found 1"),
            ("Radix_Up 4", "Radix_Up 2", "an aggregation switch has `Radix_Up 2`, but 2 cores with 2 links"),
            (
                "Radix_Down 2",
                "Radix_Down 2.5",
                "6:12: expected a whole number after `radix_down`, found `2.5`",
            ),
            ("Radix_Down 2", "Radix_Down 0", "6:12: expected `radix_down` above 0, found 0"),
            ("Nodes 8", "Nodes 99999999", "1:7: expected at most 1048576"),
            ("Tier 2", "Tier 1", "stands twice"),
            ("Downlink_speed_Gbps 100", "", "tier 2 has no `downlink_speed_gbps`"),
            ("Nodes 8\n", "", "the line `nodes N` is missing"),
        ] {
            let error = fabric(&THREE.replacen(old, new, 1)).unwrap_err().located();
            assert!(error.contains(message), "{new}: {error}");
        }
    }

    /// Words that damage files.
    const WORDS: [&str; 9] =
        ["Tier 1", "Nodes", "0", "3", "1048576", "Bundle 7", "Radix_Up 65536", "Podsize 1", "é"];

    /// Damages so many files; returns the kinds of errors.
    fn damage(files: u64) -> std::collections::BTreeSet<String> {
        let mut draws = Draws(4);
        let mut kinds = std::collections::BTreeSet::new();
        for number in 0..files {
            let mut text = THREE.to_owned();
            for _ in 0..=draws.below(3) {
                text = draws.change(&text, &WORDS);
            }
            match fabric(&text) {
                Ok((toml, _)) => assert!(toml.contains("links = ["), "file {number}"),
                Err(error) => {
                    assert!(error.place.is_some(), "file {number}: {error:?}");
                    kinds.insert(error.text.chars().filter(|c| !c.is_ascii_digit()).take(30).collect());
                }
            }
        }
        kinds
    }

    #[test]
    fn damaged_files_give_a_fabric_or_an_error_with_its_place() {
        let kinds = damage(5_000);
        assert!(kinds.len() > 20, "{kinds:#?}");
    }

    /// Run it by `cargo test --release -p scenario --lib -- --ignored a_million_damaged_topologies`.
    #[test]
    #[ignore = "takes minutes"]
    fn a_million_damaged_topologies() {
        damage(1_000_000);
    }
}
