//! Where a job runs: its servers and GPUs, those that compute slowly, and the jitter of computations.

use finding::{Finding, code};
use model::draw::{Key, scaled};
use model::plan::{Role, Task, Work};
use model::{NodeId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Servers, or GPUs of a server, by number: `"0..127"` with both ends, `"0..3,8"`, or a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Servers {
    /// Numbers and ranges with both ends, separated by commas.
    Text(String),
    /// Numbers.
    List(Vec<u32>),
}

impl Servers {
    /// The servers in the order in which they were named, of a fabric with so many.
    pub(crate) fn of(&self, servers: usize) -> Result<Vec<NodeId>, Finding> {
        let numbers = self.numbers("server", servers).map_err(|text| code::RANGE.at("servers", text))?;
        Ok(numbers.into_iter().map(NodeId).collect())
    }

    /// The numbers in ascending order, of a server with so many GPUs.
    pub(crate) fn of_gpus(&self, gpus: usize) -> Result<Vec<u32>, Finding> {
        let mut numbers = self.numbers("GPU", gpus).map_err(|text| code::RANGE.at("gpus", text))?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The numbers of so many things, in the order in which they were named.
    fn numbers(&self, what: &str, all: usize) -> Result<Vec<u32>, String> {
        let numbers = match self {
            Servers::List(list) => list.clone(),
            Servers::Text(text) => parse(text, what)?,
        };
        if numbers.is_empty() {
            return Err(format!("expected at least one {what}"));
        }
        let mut seen = BTreeSet::new();
        for number in &numbers {
            if *number as usize >= all {
                let last = all.saturating_sub(1);
                return Err(format!("there is no {what} {number}; the {what}s are 0 to {last}"));
            }
            if !seen.insert(*number) {
                return Err(format!("{what} {number} is named twice"));
            }
        }
        Ok(numbers)
    }
}

/// Most servers of a text (our choice), so that a range with a wrong end costs no memory.
const MOST: u32 = 1 << 20;

fn parse(text: &str, what: &str) -> Result<Vec<u32>, String> {
    let number = |part: &str| {
        part.trim()
            .parse::<u32>()
            .map_err(|_| format!("expected the number of a {what}, found `{}`", part.trim()))
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let Some((first, last)) = part.split_once("..") else {
            all.push(number(part)?);
            continue;
        };
        let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
        if first > last {
            return Err(format!("the range {} is empty", part.trim()));
        }
        if last - first >= MOST {
            return Err(format!("expected at most {MOST} {what}s, found {}", u64::from(last - first) + 1));
        }
        all.extend(first..=last);
    }
    Ok(all)
}

/// A server whose GPUs compute slowly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slow {
    /// Number of the server in the fabric.
    pub server: u32,
    /// Time of its computations over that of others, above 0, such as 1.1.
    pub factor: f64,
}

/// One slow server, or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Stragglers {
    /// One.
    One(Slow),
    /// Several.
    Several(Vec<Slow>),
}

/// Largest factor (our choice): a computation of a second then takes less than twelve days.
const MOST_FACTOR: f64 = 1e6;

impl Stragglers {
    /// The slow servers.
    pub fn all(&self) -> &[Slow] {
        match self {
            Stragglers::One(one) => std::slice::from_ref(one),
            Stragglers::Several(several) => several,
        }
    }

    /// Lengthens the computations of slow servers.
    pub(crate) fn apply(&self, tasks: &mut [Task], servers: usize) -> Result<(), Finding> {
        for slow in self.all() {
            if slow.server as usize >= servers {
                let last = servers.saturating_sub(1);
                let text = format!("there is no server {}; the servers are 0 to {last}", slow.server);
                return Err(code::RANGE.at("slow", text));
            }
            if !(slow.factor > 0.0 && slow.factor <= MOST_FACTOR) {
                let text =
                    format!("expected a factor above 0 and at most {MOST_FACTOR}, found {}", slow.factor);
                return Err(code::RANGE.at("slow", text));
            }
            let mine = |task: &&mut Task| task.node == NodeId(slow.server) && task.role == Role::Compute;
            for task in tasks.iter_mut().filter(mine) {
                if let Work::On { time, .. } | Work::Free { time } = &mut task.work {
                    *time = Time((time.ps() as f64 * slow.factor).round() as u64);
                }
            }
        }
        Ok(())
    }
}

/// Lets each computation take up to a share of its time longer.
pub(crate) fn jitter(tasks: &mut [Task], share: f64, key: Key) -> Result<(), Finding> {
    if !(share > 0.0 && share <= MOST_FACTOR) {
        let text = format!("expected a share above 0 and at most {MOST_FACTOR}, found {share}");
        return Err(code::RANGE.at("compute-jitter", text));
    }
    for (i, task) in (0..).zip(tasks.iter_mut().filter(|task| task.role == Role::Compute)) {
        if let Work::On { time, .. } | Work::Free { time } = &mut task.work {
            let most = (time.ps() as f64 * share).round() as u64;
            *time = Time(time.ps().saturating_add(scaled(key.draw(i), most.saturating_add(1))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checked, Source, check};

    #[test]
    fn servers_are_ranges_with_both_ends_or_lists() {
        let of = |text: &str, servers: usize| {
            Servers::Text(text.to_owned())
                .of(servers)
                .map(|nodes| nodes.iter().map(|node| node.0).collect::<Vec<_>>())
        };
        assert_eq!(of("0..2, 5", 8).unwrap(), [0, 1, 2, 5]);
        for (text, wrong) in [
            ("0..8", "there is no server 8; the servers are 0 to 7"),
            ("3..1", "the range 3..1 is empty"),
            ("1,1", "server 1 is named twice"),
            ("one", "expected the number of a server, found `one`"),
        ] {
            assert_eq!(of(text, 8).unwrap_err().text, wrong);
        }
    }

    /// Two trainings on eight servers, of which one is slow in the first.
    fn two(first: &str, second: &str) -> Result<Checked, Finding> {
        let step = "[workload.training]\nmodel = { hidden = 256, layers = 2, heads = 4, ffn = 1024, vocab = 1000 }\n\
                    batch = { global = 4, sequence = 128 }\ncompute = { forward = \"5ms\", backward = \"10ms\" }\n";
        let text = format!(
            "[server]\ngpus = 2\nnvlink = {{ rate = \"800Gbps\", delay = \"1us\" }}\n[topology.rails]\nservers = 8\nspines = 1\n\
             [[workload]]\nname = \"a\"\n{first}\n{step}[[workload]]\nname = \"b\"\n{second}\n{step}"
        );
        check(&Source::new("two.toml", text), &[])
    }

    #[test]
    fn two_trainings_share_a_fabric_and_one_has_a_straggler() {
        let checked =
            two("servers = \"0..1\"\nslow = { server = 1, factor = 1.5 }", "servers = [6, 4]").unwrap();
        let plan = &checked.plan;
        let nodes = |job: u16| -> BTreeSet<u32> {
            let mine = plan.tasks.iter().filter(|task| task.job == job && task.role == Role::Compute);
            mine.map(|task| task.node.0).collect()
        };
        assert_eq!((nodes(0), nodes(1)), ([0, 1].into(), [4, 6].into()));
        let computes = |node: u32| -> u64 {
            let mine =
                plan.tasks.iter().filter(|task| task.node == NodeId(node) && task.role == Role::Compute);
            mine.map(|task| if let Work::On { time, .. } = task.work { time.ps() } else { 0 }).sum()
        };
        assert_eq!(computes(1) * 2, computes(0) * 3);
        assert_eq!(computes(4), computes(0));
    }

    /// Two trainings share two servers: one has the first GPU of each, the other one the second.
    #[test]
    fn jobs_have_parts_of_servers() {
        let checked = two("servers = [0, 1]\ngpus = [0]", "servers = [0, 1]\ngpus = \"1\"").unwrap();
        let plan = &checked.plan;
        let streams = |job: u16| -> BTreeSet<(u32, u32)> {
            let mine = plan.tasks.iter().filter(|task| task.job == job && task.role == Role::Compute);
            mine.flat_map(|task| task.work.streams().map(|stream| (task.node.0, stream))).collect()
        };
        assert_eq!(streams(0), [(0, 0), (1, 0)].into());
        assert_eq!(streams(1), [(0, 3), (1, 3)].into());
        let from: BTreeSet<_> =
            plan.qps.iter().map(|qp| plan.fabric.host_name(qp.from).into_owned()).collect();
        assert_eq!(from.len(), 4, "each job has the NIC of its own GPU: {from:?}");
        let wrong = two("servers = [0]\ngpus = [2]", "servers = [4]").unwrap_err();
        assert_eq!(
            (wrong.path().as_str(), wrong.text.as_str()),
            ("workload.0.gpus", "there is no GPU 2; the GPUs are 0 to 1")
        );
    }

    #[test]
    fn computations_take_up_to_a_share_longer() {
        let times = |keys: &str| -> Vec<u64> {
            let checked = two(keys, "servers = [4]").unwrap();
            let time = |task: &Task| match task.work {
                Work::On { time, .. } if task.role == Role::Compute && task.job == 0 => Some(time.ps()),
                _ => None,
            };
            checked.plan.tasks.iter().filter_map(time).collect()
        };
        let (even, drawn) = (times("servers = [0]"), times("servers = [0]\ncompute-jitter = 0.1"));
        assert!(even.iter().zip(&drawn).all(|(a, b)| a <= b && *b <= a + a / 10 + 1));
        assert!(drawn.iter().collect::<BTreeSet<_>>().len() > even.iter().collect::<BTreeSet<_>>().len());
        let wrong = two("servers = [0]\ncompute-jitter = 0.0", "servers = [4]").unwrap_err();
        assert_eq!(wrong.path(), "workload.0.compute-jitter");
    }

    #[test]
    fn impossible_places_are_refused_with_their_key() {
        let wrong = |first: &str| two(first, "servers = [4]").unwrap_err();
        let outside = wrong("servers = \"0..9\"");
        assert_eq!(
            (outside.path().as_str(), outside.text.as_str()),
            ("workload.0.servers", "there is no server 8; the servers are 0 to 7")
        );
        assert!(wrong("servers = [0]\nslow = { server = 9, factor = 2.0 }").text.contains("no server 9"));
        assert!(
            wrong("servers = [0]\nslow = { server = 0, factor = 0.0 }").text.contains("a factor above 0")
        );
        let text = "[topology.leaf-spine]\n[[workload]]\nservers = [0, 1]\npermutation = {}\n";
        let error = check(&Source::new("p.toml", text), &[]).unwrap_err();
        assert!(error.text.contains("`permutation`"), "{}", error.text);
    }
}
