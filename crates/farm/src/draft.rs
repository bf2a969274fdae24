//! Random scenarios.

use crate::draws::Draws;
use crate::graph;
use crate::panics;
use crate::servers;
use crate::trial::{Verdict, refused};
use crate::values::{Names, Values};
use model::NodeId;
use model::fabric::Link;
use scenario::{Checked, Source, builtin, check};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// A scenario by top-level key, as one line of TOML each.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Draft(pub(crate) Map<String, Json>);

/// Most packets of a scenario's messages: a run of so many takes about a millisecond on each engine.
const MOST_PACKETS: u64 = 1_200;
/// Most nodes of a fabric.
const MOST_NODES: usize = 120;
/// Times that a refused key is drawn again before it is left out.
const TRIES: usize = 3;

/// Top-level keys beside `topology` and `workload`, each with the probability that it is drawn.
const KEYS: [(&str, f64); 14] = [
    ("seed", 1.0),
    ("compat", 0.1),
    ("links", 0.5),
    ("wire", 0.3),
    ("switch", 0.6),
    ("switch-role", 0.1),
    ("nic", 0.7),
    ("scheme", 0.95),
    ("feedback", 0.15),
    ("class", 0.1),
    ("failure", 0.35),
    ("routing", 0.25),
    ("stop", 0.2),
    ("record", 0.4),
];

impl Draft {
    /// A draft from the text of a scenario; `None` if it is no TOML.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let table: toml::Table = text.parse().ok()?;
        match serde_json::to_value(table).ok()? {
            Json::Object(keys) => Some(Draft(keys)),
            _ => None,
        }
    }

    /// The scenario as TOML, one line per top-level key.
    pub(crate) fn text(&self) -> String {
        let line = |(key, value): (&String, &Json)| {
            let value = toml::Value::try_from(value).ok()?;
            Some(format!("{key} = {value}\n"))
        };
        self.0.iter().filter_map(line).collect()
    }

    /// The key on a line of [`Draft::text`].
    fn key_on(&self, line: usize) -> Option<String> {
        let text = self.text();
        let (key, _) = text.lines().nth(line.checked_sub(1)?)?.split_once(" = ")?;
        Some(key.to_owned())
    }

    /// The plan of the scenario, or its refusal.
    fn check(&self) -> Result<Box<Checked>, Box<Refusal>> {
        let source = Source::new("farm.toml", self.text());
        let (line, verdict) = match panics::fault(|| check(&source, &[])) {
            Ok(Ok(checked)) => return Ok(Box::new(checked)),
            Ok(Err(error)) => (error.place.as_ref().map(|place| place.line), refused(&error)),
            Err(fault) => (None, Verdict::Failed(fault)),
        };
        let key = line.and_then(|line| self.key_on(line));
        Err(Box::new(Refusal { draft: self.clone(), key, verdict }))
    }
}

/// A scenario that was refused.
pub(crate) struct Refusal {
    pub(crate) draft: Draft,
    /// The top-level key that the error points to.
    key: Option<String>,
    pub(crate) verdict: Verdict,
}

/// A random scenario, and the scenarios on the way to it that were refused.
pub(crate) struct Drawn {
    /// The scenario; `None` if nothing that runs was found.
    pub(crate) accepted: Option<(Draft, Box<Checked>)>,
    pub(crate) refused: Vec<Refusal>,
}

/// Draws scenarios.
pub(crate) struct Drafter {
    /// The settings of built-in scenarios, whose schemes and NICs fit together.
    examples: Vec<Map<String, Json>>,
}

impl Drafter {
    pub(crate) fn new() -> Self {
        let settings = |builtin: &builtin::Builtin| {
            let mut keys = Draft::of(builtin.text)?.0;
            keys.retain(|key, _| {
                ["nic", "scheme", "feedback", "switch", "wire", "compat"].contains(&key.as_str())
            });
            Some(keys)
        };
        Drafter { examples: builtin::ALL.iter().filter_map(settings).collect() }
    }

    /// A random scenario that a run finishes in milliseconds.
    pub(crate) fn draw(&self, draws: &mut Draws) -> Drawn {
        let mut refusals = Vec::new();
        let density = *draws.pick(&[0.05, 0.15, 0.35]);
        let mut values = Values::new(scenario::schema(), Names::default(), density);
        let Some((mut draft, names)) = fabric(&values, draws, &mut refusals) else {
            return Drawn { accepted: None, refused: refusals };
        };
        values.names = names;
        if draws.chance(0.4) {
            draft.0.extend(draws.pick(&self.examples).clone());
        }
        for (key, probability) in KEYS {
            if draws.chance(probability) && !(draft.0.contains_key(key) && draws.chance(0.7)) {
                draft.0.extend(top_level(&values, draws, key).map(|value| (key.to_owned(), value)));
            }
        }
        if draft.0.get("server").is_some_and(|server| server.get("ports-per-nic").is_some())
            && draws.chance(0.4)
        {
            servers::fail_over(draws, &mut draft.0);
        }
        draft.0.insert("workload".to_owned(), workloads(&values, draws));
        let accepted =
            repaired(&values, draws, draft, &mut refusals).map(|accepted| match draws.chance(0.5) {
                true => with_small_buffers(draws, accepted),
                false => accepted,
            });
        Drawn { accepted, refused: refusals }
    }
}

/// A scenario with nothing but a fabric and a flow, and the names of the fabric.
fn fabric(values: &Values, draws: &mut Draws, refused: &mut Vec<Refusal>) -> Option<(Draft, Names)> {
    for _ in 0..4 * TRIES {
        let mut draft = Draft::default();
        let topology = match draws.below(20) {
            0..=6 => json!({ "links": graph::draw(draws) }),
            7..=9 => json!({ "rails": servers::rails(draws) }),
            _ => values.draw(draws, values.of_key("topology"), "topology")?,
        };
        if topology.get("rails").is_some() || draws.chance(0.05) {
            draft.0.insert("server".to_owned(), servers::server(draws));
        }
        draft.0.insert("topology".to_owned(), topology);
        let flow = json!([{ "permutation": { "bytes": "1B" } }]);
        draft.0.insert("workload".to_owned(), flow);
        match draft.check() {
            Ok(checked) => {
                let fabric = &checked.plan.fabric;
                if fabric.nodes() > MOST_NODES {
                    continue;
                }
                let name = |node: NodeId| fabric.name(node).to_owned();
                let hosts =
                    (0..fabric.hosts()).map(|host| fabric.host_name(model::HostId(host as u32)).into_owned());
                let mut roles: Vec<String> =
                    fabric.switches().map(|node| fabric.role(node).to_owned()).collect();
                roles.sort_unstable();
                roles.dedup();
                let gpus = draft.0.get("server").and_then(|server| server["gpus"].as_u64());
                let ranks = gpus.map_or(fabric.hosts(), |gpus| fabric.servers() * gpus as usize);
                let switches = fabric.switches().map(name).collect();
                let names = Names { hosts: hosts.collect(), switches, roles, ranks };
                return Some((draft, names));
            }
            Err(refusal) => refused.push(*refusal),
        }
    }
    None
}

/// The scenario with buffers that a few dozen packets fill, if it is possible with such buffers.
fn with_small_buffers(draws: &mut Draws, accepted: (Draft, Box<Checked>)) -> (Draft, Box<Checked>) {
    let plan = &accepted.1.plan;
    let kept = |node: NodeId| {
        let links = plan.fabric.ports(node).iter();
        let of_link = |link: &Link| {
            let reverse =
                &plan.fabric.links()[plan.fabric.reverse(plan.fabric.link(link.from, link.port)).index()];
            let headroom = plan.ports[plan.fabric.link(link.from, link.port).index()].headroom.get();
            headroom * u64::from(plan.fabric.channels_on(reverse))
        };
        links.map(of_link).sum::<u64>()
    };
    let most = plan.fabric.switches().map(kept).max().unwrap_or(0);
    let buffer = most + draws.magnitude(3e3, 3e5) as u64;
    let mut draft = accepted.0.clone();
    let switch = draft.0.entry("switch").or_insert_with(|| json!({}));
    if let Some(switch) = switch.as_object_mut() {
        switch.insert("buffer".to_owned(), format!("{buffer}B").into());
        if draws.chance(0.4) {
            switch.insert("pfc".to_owned(), "off".into());
        }
    }
    match draft.check() {
        Ok(checked) => (draft, checked),
        Err(_) => accepted,
    }
}

fn top_level(values: &Values, draws: &mut Draws, key: &str) -> Option<Json> {
    match key {
        "seed" => Some(draws.below(1000).into()),
        _ => values.draw(draws, values.of_key(key), key),
    }
}

/// One job, or several.
fn workloads(values: &Values, draws: &mut Draws) -> Json {
    let jobs = 1 + draws.below(4) / 2;
    let schema = values.of_key("workload");
    let jobs = (0..jobs).filter_map(|_| match draws.chance(0.08) && values.names.ranks <= 12 {
        true => Some(json!({ "training": servers::training(draws, values.names.ranks) })),
        false => job(values, draws, &schema["items"]),
    });
    Json::Array(jobs.collect())
}

/// A job: one kind of workload, which is the only key that is a table, and some of the other keys.
fn job(values: &Values, draws: &mut Draws, schema: &'static Json) -> Option<Json> {
    let schema = values.resolved(schema);
    let of_keys = schema["properties"].as_object()?;
    let is_kind = |key: &&String| values.resolved(&of_keys[*key])["type"] == "object";
    let mut kinds: Vec<&String> = of_keys.keys().filter(is_kind).collect();
    let Json::Object(mut keys) = values.draw(draws, schema, "workload")? else { return None };
    keys.retain(|key, _| key != "name" && !kinds.contains(&key));
    // A training step of random sizes fits no fabric, or takes minutes to lay out: see `servers`.
    kinds.retain(|kind| *kind != "training");
    let kind = *draws.pick(&kinds);
    let value = values.draw(draws, values.resolved(&of_keys[kind]), &format!("workload.{kind}"))?;
    keys.insert(kind.clone(), value);
    Some(keys.into())
}

/// The draft with each refused key drawn again or left out, until a run of few packets is possible.
fn repaired(
    values: &Values,
    draws: &mut Draws,
    mut draft: Draft,
    refused: &mut Vec<Refusal>,
) -> Option<(Draft, Box<Checked>)> {
    let mut tries: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..30 {
        let key = match draft.check() {
            Ok(checked) => {
                let plan = &checked.plan;
                let packets: u64 = plan.messages.iter().map(|m| plan.wire.packets(m.bytes)).sum();
                if packets <= MOST_PACKETS {
                    return Some((draft, checked));
                }
                "workload".to_owned()
            }
            Err(refusal) => {
                let key = refusal.key.clone();
                refused.push(*refusal);
                key?
            }
        };
        // The fabric is possible with the default of all other keys, so one of them has to go.
        let key = match key.as_str() {
            "topology" => {
                let others: Vec<&String> =
                    draft.0.keys().filter(|key| !["topology", "workload"].contains(&key.as_str())).collect();
                if others.is_empty() {
                    return None;
                }
                (*draws.pick(&others)).clone()
            }
            _ => key,
        };
        let tried = tries.entry(key.clone()).or_default();
        *tried += 1;
        if key == "workload" {
            let next = if *tried > 2 * TRIES {
                json!([{ "permutation": { "bytes": "3kB" } }])
            } else {
                workloads(values, draws)
            };
            draft.0.insert(key, next);
        } else {
            let next = if *tried < TRIES { top_level(values, draws, &key) } else { None };
            match next {
                Some(value) => draft.0.insert(key, value),
                None => draft.0.shift_remove(&key),
            };
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Tally;
    use std::collections::BTreeSet;

    /// Names of the parts in one table of the schema.
    fn parts(definition: &str) -> BTreeSet<String> {
        let ways = scenario::schema()["definitions"][definition]["oneOf"].as_array().unwrap();
        let names = ways.iter().filter_map(|way| way["properties"].as_object()).flat_map(Map::keys);
        names.cloned().collect()
    }

    /// So many draws of seed 1 give a scenario, with few exceptions. What they contain is in the tally.
    fn drawn(draws: u64) -> Tally {
        let (drafter, mut tally, mut none) = (Drafter::new(), Tally::default(), 0);
        for number in 0..draws {
            match drafter.draw(&mut Draws::new(1, number)).accepted {
                Some((draft, _)) => tally.ran(&draft, &[]),
                None => none += 1,
            }
        }
        assert!(100 * none < draws, "{none} of {draws} draws gave no scenario");
        tally
    }

    #[test]
    fn nearly_all_scenarios_can_run() {
        let tally = drawn(300);
        assert!(tally.parts["workload"].len() > 9, "{:?}", tally.parts["workload"]);
        assert!(tally.parts["other"].len() > 5, "{:?}", tally.parts["other"]);
    }

    /// Some controls fit few transports, so they are rare.
    #[test]
    #[ignore = "takes minutes: make exhaustive"]
    fn every_part_is_drawn() {
        let tally = drawn(6000);
        for (table, definition) in [
            ("topology", "Topology"),
            ("scheme", "SchemeConfig"),
            ("feedback", "FeedbackConfig"),
            ("nic.transport", "TransportConfig"),
            ("nic.congestion", "CongestionConfig"),
        ] {
            let drawn: BTreeSet<String> = tally.parts[table].keys().cloned().collect();
            assert_eq!(drawn, parts(definition), "{table}");
        }
    }

    #[test]
    fn a_draft_has_a_line_per_key() {
        let draft =
            Draft::of("seed = 7\n[topology.leaf-spine]\nleaves = 2\n[[workload]]\npermutation = {}\n")
                .unwrap();
        assert_eq!(
            draft.text(),
            "seed = 7\ntopology = { leaf-spine = { leaves = 2 } }\nworkload = [{ permutation = {} }]\n"
        );
        assert_eq!(draft.key_on(2).as_deref(), Some("topology"));
        assert_eq!(Draft::of(&draft.text()), Some(draft));
    }
}
