//! Where a job runs: the servers of its GPUs, and those that compute slowly.

use finding::{Finding, code};
use model::plan::{Role, Task, Work};
use model::{NodeId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Servers by number: `"0..127"` with both ends, `"0..3,8"`, or a list.
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
        let wrong = |text: String| code::RANGE.at("servers", text);
        let numbers = match self {
            Servers::List(list) => list.clone(),
            Servers::Text(text) => parse(text).map_err(wrong)?,
        };
        if numbers.is_empty() {
            return Err(wrong("expected at least one server".to_owned()));
        }
        let mut seen = BTreeSet::new();
        for number in &numbers {
            if *number as usize >= servers {
                let last = servers.saturating_sub(1);
                return Err(wrong(format!("there is no server {number}; the servers are 0 to {last}")));
            }
            if !seen.insert(*number) {
                return Err(wrong(format!("server {number} is named twice")));
            }
        }
        Ok(numbers.into_iter().map(NodeId).collect())
    }
}

/// Most servers of a text (our choice), so that a range with a wrong end costs no memory.
const MOST: u32 = 1 << 20;

fn parse(text: &str) -> Result<Vec<u32>, String> {
    let number = |part: &str| {
        part.trim()
            .parse::<u32>()
            .map_err(|_| format!("expected the number of a server, found `{}`", part.trim()))
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
            return Err(format!("expected at most {MOST} servers, found {}", u64::from(last - first) + 1));
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
