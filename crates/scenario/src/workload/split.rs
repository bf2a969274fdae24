//! `split`: messages as several subflows on paths of their own.
//!
//! The messages that a source sends in one step of a job are those that start together: at one time, or after the same
//! causes. They have the same size and leave over the same number of paths; others form steps of their own. Subflows are messages
//! of the plan. What waits for a message waits for all of its subflows, and the results show the message as one flow.

use super::draft::Draft;
use super::laid::{DraftMessage, DraftWhole, Event, Graph, Item, part};
use crate::footprint::Exists;
use finding::Finding;
use model::draw::{Key, below};
use model::{Fabric, HostId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use schemes::entropies::paths_between;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Splitting of messages that leave their rack over several paths. Each subflow has its own queue pair. A message is complete when
/// all its subflows are, and results show it as one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Split {
    /// Subflows of a message: a number, or `"balanced"`. Balanced, r equal messages that a source starts together over s
    /// paths become s / gcd(r, s) subflows each, so that every path gets as many subflows as any other (Ethereal, arXiv
    /// 2407.00550). A message has no more subflows than packets (our choice). Default `"balanced"` (Ethereal).
    pub subflows: Subflows,
    /// Paths of the subflows. `"pinned"`: the subflows of messages that a source starts together take one path after the
    /// other, from a random one on; the path of a queue pair has effect under schemes that follow it, such as `ethereal`.
    /// `"planned"`: a controller that knows all pairs of hosts pins each pair to the path that the fewest pairs of its two racks
    /// have, with `subflows = 1` as H3C's AD-DC (its rule is not public; this one is our choice). `"free"`: the scheme chooses.
    /// Default `"pinned"` (Ethereal).
    pub paths: Paths,
}

/// Subflows of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subflows {
    /// As many as give every path of the source the same number of subflows.
    #[default]
    Balanced,
    /// This many.
    Count(u16),
}

/// Paths of the subflows of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SplitPaths")]
pub enum Paths {
    /// Each subflow is pinned to a path.
    #[default]
    Pinned,
    /// Each pair of hosts is pinned to the paths that its racks use least.
    Planned,
    /// The scheme chooses.
    Free,
}

/// Most subflows of a message (our choice).
const MOST_SUBFLOWS: u16 = 4096;
/// The word for a number of subflows that fills all paths evenly.
const BALANCED: &str = "balanced";

impl Serialize for Subflows {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Subflows::Balanced => to.serialize_str(BALANCED),
            Subflows::Count(count) => to.serialize_u16(*count),
        }
    }
}

impl<'de> Deserialize<'de> for Subflows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl Visitor<'_> for ValueVisitor {
            type Value = Subflows;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"{BALANCED}\" or a number of subflows from 1 to {MOST_SUBFLOWS}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Subflows, E> {
                match text {
                    BALANCED => Ok(Subflows::Balanced),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Subflows, E> {
                match u16::try_from(count) {
                    Ok(count) if (1..=MOST_SUBFLOWS).contains(&count) => Ok(Subflows::Count(count)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(count), &self)),
                }
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Subflows, E> {
                self.visit_i64(i64::try_from(count).unwrap_or(i64::MAX))
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Subflows {
    fn schema_name() -> Cow<'static, str> {
        "Subflows".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "enum": [BALANCED] },
            { "type": "integer", "minimum": 1, "maximum": MOST_SUBFLOWS },
        ] })
    }
}

/// The subflow of a draft's graph that one job has added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    /// Its first message.
    pub(crate) message: usize,
    /// Its first cause.
    pub(crate) cause: usize,
}

/// What messages that start together have in common: sender, group, operation, size, number of paths, start and causes.
type Together = (u32, u16, u32, u64, u16, u64, Vec<Event>);

impl Split {
    /// Splits the messages that a job has added. `key` draws the first path of each step.
    pub(crate) fn apply(
        &self,
        draft: &mut Draft<'_>,
        graph: &mut Graph,
        added: Added,
        key: Key,
    ) -> Result<(), Finding> {
        let steps = steps(draft, graph, added);
        let all = &graph.messages[added.message..];
        let mut counts = vec![1usize; all.len()];
        for (paths, step) in &steps {
            for &m in step {
                let packets = draft.wire.packets(all[m as usize].bytes);
                counts[m as usize] = self.count(step.len(), usize::from(*paths), packets);
            }
        }
        // Subflows of several messages may share a queue pair, so this may count too many of them.
        let more: u64 = counts.iter().map(|&count| count as u64 - 1).sum();
        let path = format!("workload.{}.split", draft.job);
        draft.memory.add_messages(more, more, path.clone(), Exists::Now)?;
        let of = |m: u32| (m as usize).checked_sub(added.message).map_or(1, |m| counts[m] as u64);
        let ends = |(cause, effect): &(Event, Item)| {
            let causes = match *cause {
                Event::Received(m) | Event::Acked(m) => of(m),
                Event::Done(_) => 1,
            };
            let effects = if let Item::Message(m) = *effect { of(m) } else { 1 };
            causes * effects
        };
        let causes = &graph.causes[added.cause..];
        let triggers: u64 = causes.iter().map(ends).sum();
        draft.memory.add_triggers(triggers - causes.len() as u64, path)?;

        let mut starts = vec![None; counts.len()];
        let mut planner = Planner::default();
        for (paths, step) in &steps {
            let mut next = below(key.draw(u64::from(step[0])), usize::from(*paths));
            for &m in step {
                if self.paths == Paths::Planned {
                    let message = &graph.messages[added.message + m as usize];
                    let ends = (message.from, message.to);
                    next = planner.first_path(draft.fabric, ends, usize::from(*paths), counts[m as usize]);
                }
                starts[m as usize] = Some((next, usize::from(*paths)));
                next += counts[m as usize];
            }
        }
        self.divide(graph, added, &counts, &starts);
        Ok(())
    }

    /// Number of subflows of each of `together` messages over so many paths.
    fn count(&self, together: usize, paths: usize, packets: u64) -> usize {
        let subflows = match self.subflows {
            Subflows::Balanced => paths / gcd(together, paths),
            Subflows::Count(count) => count.into(),
        };
        subflows.min(usize::try_from(packets).unwrap_or(usize::MAX)).max(1)
    }

    /// Replaces messages by their subflows. `starts` has the first path and the number of paths of every message that leaves its
    /// rack over several.
    fn divide(&self, graph: &mut Graph, added: Added, counts: &[usize], starts: &[Option<(usize, usize)>]) {
        let first = added.message as u32;
        let mut place: Vec<Range<u32>> = Vec::with_capacity(counts.len());
        for ((whole, &count), start) in
            graph.messages.split_off(added.message).into_iter().zip(counts).zip(starts)
        {
            let at = graph.messages.len() as u32;
            for i in 0..count {
                let (path, line) = match (self.paths, *start) {
                    (Paths::Pinned | Paths::Planned, Some((first, paths))) => {
                        (Some(((first + i) % paths) as u16), i / paths)
                    }
                    _ => (None, i),
                };
                let bytes = part(whole.bytes, count, i);
                graph.messages.push(DraftMessage { bytes, path, line: line as u16, ..whole });
            }
            let subflows = at..graph.messages.len() as u32;
            if count > 1 {
                graph.wholes.push(DraftWhole { subflows: subflows.clone(), request: None });
            }
            place.push(subflows);
        }
        let subflows = |m: u32| match m.checked_sub(first) {
            Some(m) => place[m as usize].clone(),
            None => m..m + 1,
        };
        for (cause, effect) in graph.causes.split_off(added.cause) {
            let causes: Vec<Event> = match cause {
                Event::Received(m) => subflows(m).map(Event::Received).collect(),
                Event::Acked(m) => subflows(m).map(Event::Acked).collect(),
                Event::Done(_) => vec![cause],
            };
            let effects: Vec<Item> = match effect {
                Item::Message(m) => subflows(m).map(Item::Message).collect(),
                Item::Task(_) => vec![effect],
            };
            let pairs = causes.iter().flat_map(|&cause| effects.iter().map(move |&effect| (cause, effect)));
            graph.causes.extend(pairs);
        }
    }
}

/// A controller that pins pairs of hosts to paths.
#[derive(Debug, Default)]
struct Planner {
    /// First path of every pair.
    pinned: BTreeMap<(HostId, HostId), usize>,
    /// Pairs on each path that leave a rack, and that enter it.
    leaving: BTreeMap<(usize, usize), usize>,
    entering: BTreeMap<(usize, usize), usize>,
}

impl Planner {
    /// The first of `count` paths of a pair: one that the fewest pairs of its racks have, in the worse direction first.
    fn first_path(&mut self, fabric: &Fabric, ends: (HostId, HostId), paths: usize, count: usize) -> usize {
        if let Some(&path) = self.pinned.get(&ends) {
            return path;
        }
        let (out, into) = (fabric.rack(ends.0), fabric.rack(ends.1));
        let load = |path: usize| {
            let of = |table: &BTreeMap<_, usize>, rack| table.get(&(rack, path)).copied().unwrap_or(0);
            let (leaving, entering) = (of(&self.leaving, out), of(&self.entering, into));
            (leaving.max(entering), leaving + entering)
        };
        let first = (0..paths).min_by_key(|&path| load(path)).unwrap_or(0);
        for path in (first..first + count).map(|path| path % paths) {
            *self.leaving.entry((out, path)).or_default() += 1;
            *self.entering.entry((into, path)).or_default() += 1;
        }
        self.pinned.insert(ends, first);
        first
    }
}

/// The steps of the messages that a job has added and that leave their rack over several paths: the number of paths, and the
/// messages, counted from the job's first.
fn steps(draft: &Draft<'_>, graph: &Graph, added: Added) -> Vec<(u16, Vec<u32>)> {
    let messages = &graph.messages[added.message..];
    let mut causes: Vec<Vec<Event>> = vec![Vec::new(); messages.len()];
    for &(cause, effect) in &graph.causes[added.cause..] {
        if let Item::Message(m) = effect
            && let Some(mine) = (m as usize).checked_sub(added.message).and_then(|m| causes.get_mut(m))
        {
            mine.push(cause);
        }
    }
    let fabric = draft.fabric;
    let mut known: BTreeMap<(usize, usize), u16> = BTreeMap::new();
    let mut steps: BTreeMap<Together, Vec<u32>> = BTreeMap::new();
    for ((message, mut causes), number) in messages.iter().zip(causes).zip(0..) {
        let &DraftMessage { from, to, bytes, start, group, operation, .. } = message;
        if fabric.same_rack(from, to) {
            continue;
        }
        let racks = (fabric.rack(from), fabric.rack(to));
        let paths = *known.entry(racks).or_insert_with(|| paths_between(fabric, from, to));
        if paths > 1 {
            causes.sort_unstable();
            let together = (from.0, group, operation, bytes, paths, start.ps(), causes);
            steps.entry(together).or_default().push(number);
        }
    }
    steps.into_iter().map(|((.., paths, _, _), step)| (paths, step)).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use crate::{Checked, Source, check};
    use model::HostId;
    use model::plan::Trigger;
    use std::collections::{BTreeMap, BTreeSet};

    fn laid(spines: usize, text: &str) -> Checked {
        let fabric =
            format!("[topology.leaf-spine]\nleaves = 3\nspines = {spines}\nhosts-per-leaf = 8\n{text}");
        check(&Source::new("s.toml", fabric), &[]).unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    /// Flows from `host0` to so many hosts of other racks, which start together.
    fn from_one(flows: usize, bytes: usize) -> String {
        let flow =
            |to: usize| format!("{{ from = \"host0\", to = \"host{}\", bytes = \"{bytes}B\" }}", 8 + to);
        format!("flows = {{ list = [{}] }}", (0..flows).map(flow).collect::<Vec<_>>().join(", "))
    }

    /// Payload by path.
    fn by_path(c: &Checked) -> BTreeMap<u16, u64> {
        let mut sums = BTreeMap::new();
        for m in &c.plan.messages {
            *sums.entry(c.plan.qps[m.qp.index()].path.unwrap()).or_default() += m.bytes;
        }
        sums
    }

    #[test]
    fn every_path_of_a_source_gets_the_same_bytes() {
        for (flows, spines, subflows) in [
            (1, 4, 4),
            (2, 4, 2),
            (3, 4, 4),
            (4, 4, 1),
            (6, 4, 2),
            (8, 4, 1),
            (5, 3, 3),
            (4, 6, 3),
            (10, 6, 3),
            (7, 1, 0),
            (16, 16, 1),
        ] {
            let bytes = 720_000;
            let c = laid(spines, &format!("[scheme.ethereal]\n[[workload]]\n{}", from_one(flows, bytes)));
            if subflows == 0 {
                assert!(c.plan.qps.iter().all(|qp| qp.path.is_none()), "one path is no choice");
                continue;
            }
            assert_eq!(c.plan.messages.len(), flows * subflows, "{flows} flows over {spines} uplinks");
            assert_eq!(c.plan.qps.len(), flows * subflows, "every subflow has a queue pair");
            assert_eq!(c.plan.wholes.len(), if subflows > 1 { flows } else { 0 });
            assert_eq!(c.plan.flows(), flows);
            let each = (flows * bytes / spines) as u64;
            assert_eq!(by_path(&c), (0..spines as u16).map(|path| (path, each)).collect());
        }
    }

    #[test]
    fn a_controller_spreads_the_pairs_of_a_rack_over_all_uplinks_and_downlinks() {
        let text = "[topology.leaf-spine]\nleaves = 2\nspines = 8\nhosts-per-leaf = 8\n[scheme.ethereal]\n[[workload]]\n\
                    permutation = { bytes = \"1MB\", kind = \"shift\" }\nsplit = { subflows = 1, paths = \"PATHS\" }";
        let used = |paths: &str| {
            let text = text.replace("PATHS", paths);
            let c = check(&Source::new("s.toml", text), &[]).unwrap_or_else(|e| panic!("{e}"));
            let of = |rack: usize| {
                let mine = c.plan.qps.iter().filter(|qp| c.plan.fabric.rack(qp.from) == rack);
                mine.map(|qp| qp.path.unwrap()).collect::<BTreeSet<_>>().len()
            };
            [of(0), of(1)]
        };
        assert_eq!(used("planned"), [8, 8], "a path for each of eight hosts, in both directions");
        assert!(used("pinned").iter().all(|&n| n < 8), "each host draws its path alone");
    }

    #[test]
    fn in_a_fat_tree_every_path_between_pods_gets_the_same_bytes() {
        let text = "[topology.fat-tree]\nk = 4\n[scheme.ethereal]\n[[workload]]\n\
                    flows = { list = [{ from = \"host0\", to = \"host15\", bytes = \"400kB\" }, \
                    { from = \"host0\", to = \"host3\", bytes = \"400kB\" }, { from = \"host0\", to = \"host1\", bytes = \"400kB\" }] }";
        let c = check(&Source::new("s.toml", text), &[]).unwrap();
        let paths = |to: u32| {
            let mine = c.plan.qps.iter().filter(|qp| qp.to == HostId(to));
            mine.map(|qp| qp.path).collect::<BTreeSet<_>>()
        };
        assert_eq!(paths(15), (0..4).map(Some).collect());
        assert_eq!(paths(3), (0..2).map(Some).collect());
        assert_eq!(paths(1), [None].into(), "inside a rack there is nothing to choose");
        assert_eq!((c.plan.messages.len(), c.plan.flows()), (4 + 2 + 1, 3));
    }

    #[test]
    fn the_first_path_is_drawn_for_each_source_by_the_seed() {
        let text =
            "[scheme.ethereal]\n[[workload]]\nsplit = { subflows = 1 }\npermutation = { kind = \"shift\" }";
        let firsts = |c: &Checked| c.plan.qps.iter().map(|qp| qp.path.unwrap()).collect::<Vec<_>>();
        let one = laid(16, text);
        let used: BTreeSet<u16> = firsts(&one).into_iter().collect();
        assert!(used.len() > 8, "{used:?}");
        assert_ne!(firsts(&one), firsts(&one.with_seed(2).unwrap()));
        assert_eq!(firsts(&one), firsts(&laid(16, text)));
    }

    #[test]
    fn what_waits_for_a_message_waits_for_all_of_its_parts() {
        let text = "[scheme.ethereal]\n[[workload]]\nall-to-all = { per-pair = \"80kB\", schedule = \"staggered\", groups = \"all\" }";
        let c = laid(4, text);
        let plan = &c.plan;
        let across = |m: &model::plan::Message| {
            let qp = &plan.qps[m.qp.index()];
            !plan.fabric.same_rack(qp.from, qp.to)
        };
        let subflows = plan.wholes.len() * 4;
        assert_eq!(
            (plan.wholes.len(), plan.messages.iter().filter(|m| across(m)).count()),
            (24 * 16, subflows)
        );
        // A queue pair serves the same path in every step.
        assert!(plan.qps.len() <= 24 * (7 + 16 * 4));
        for whole in &plan.wholes {
            let triggers = |subflow: &model::MessageId| {
                let fired = plan.messages[subflow.index()].on_acked.clone();
                let fired = &plan.triggers[fired.start as usize..fired.end as usize];
                fired.iter().map(|t| format!("{t:?}")).collect::<BTreeSet<_>>()
            };
            let first = triggers(&whole.subflows[0]);
            assert!(whole.subflows.iter().all(|subflow| triggers(subflow) == first));
        }
        for trigger in &plan.triggers {
            let Trigger::Message(m) = trigger else { panic!("{trigger:?}") };
            assert!([1, 4].contains(&plan.messages[m.index()].needs));
        }
    }

    #[test]
    fn only_equal_messages_that_start_together_share_the_paths() {
        let list = |more: &str| {
            format!(
                "[scheme.ethereal]\n[[workload]]\nflows = {{ list = [\
                 {{ from = \"host0\", to = \"host8\", bytes = \"80kB\" }}, \
                 {{ from = \"host0\", to = \"host9\", bytes = \"80kB\"{more} }}] }}"
            )
        };
        assert_eq!(laid(4, &list("")).plan.messages.len(), 2 * 2);
        assert_eq!(laid(4, &list(", start = \"1us\"")).plan.messages.len(), 2 * 4);
        assert_eq!(laid(4, &list("").replacen("80kB", "40kB", 1)).plan.messages.len(), 2 * 4);
    }

    #[test]
    fn a_message_has_no_more_parts_than_packets() {
        let subflows = |bytes| {
            let c = laid(8, &format!("[scheme.ethereal]\n[[workload]]\n{}", from_one(1, bytes)));
            let mut subflows: Vec<u64> = c.plan.messages.iter().map(|m| m.bytes).collect();
            subflows.sort_unstable();
            subflows
        };
        assert_eq!(subflows(1), [1]);
        assert_eq!(subflows(3 * 1438), [1438; 3]);
        assert_eq!(subflows(8 * 1438 + 2), [1438, 1438, 1438, 1438, 1438, 1438, 1439, 1439]);
    }

    #[test]
    fn parts_without_a_path_have_queue_pairs_of_their_own() {
        let text = |scheme: &str| {
            format!(
                "[scheme.{scheme}]\n[[workload]]\nsplit = {{ subflows = 3, paths = \"free\" }}\npermutation = {{ kind = \"shift\" }}"
            )
        };
        let c = laid(4, &text("ecmp"));
        assert_eq!((c.plan.qps.len(), c.plan.messages.len(), c.plan.wholes.len()), (24 * 3, 24 * 3, 24));
        assert!(c.plan.qps.iter().all(|qp| qp.path.is_none()));
        assert_eq!(c.warnings(), [""; 0]);
        let pinned = laid(4, &text("ecmp").replace("free", "pinned"));
        assert!(pinned.warnings()[0].contains("`ecmp` chooses paths by itself"), "{:?}", pinned.warnings());
        let idle = laid(4, &text("ethereal"));
        assert!(idle.warnings()[0].contains("ECMP until a timeout"), "{:?}", idle.warnings());
    }

    #[test]
    fn a_comparison_splits_messages_for_the_scheme_that_follows_paths_only() {
        let c = laid(4, "[[workload]]\npermutation = { kind = \"shift\" }");
        let with = |scheme: &str| c.with_scheme(None, scheme).unwrap();
        assert_eq!(with("ethereal").plan.messages.len(), 24 * 4);
        assert_eq!(with("ethereal").with_scheme(None, "ar").unwrap().plan.messages.len(), 24);
        assert_eq!(with("ethereal").plan.flows(), with("ar").plan.flows());
    }
}
