//! A graph of computations, collectives and messages, written in the scenario.

use super::Generate;
use super::collective::Tuning;
use super::draft::{Draft, some_bytes};
use super::laid::Item;
use super::outline::Event;
use super::planned::Schedules;
use super::ranks::Stream;
use crate::values::LATEST;
use crate::workload::communicator::{Communicator, Nic, Ports};
use collective::{Algorithm, Kind};
use finding::{Finding, code, suggestion};
use formats::order::order;
use model::plan::{Operation, Role, Work};
use model::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Tasks of GPUs, each of which may wait for others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Graph(Vec<Task>);

/// A task. It has one of `compute`, `collective` and `send`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Task {
    /// Name of the task, for `after`. No default.
    pub name: String,
    /// GPUs that compute or take part in the collective: `"all"` or a list. Default `"all"` (our choice).
    #[serde(default)]
    pub ranks: Which,
    /// Time of a computation. A GPU does one computation after another, in the order in which they are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Time>,
    /// A collective of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collective: Option<Call>,
    /// A message from one GPU to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<Send>,
    /// Tasks that must end first. On each GPU, the task waits for the part that the GPU has in these tasks: its computation,
    /// its leave from the collective, the arrival of the message at its receiver or the acknowledgement at its sender.
    /// Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// GPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// All GPUs.
    #[default]
    All,
    /// These GPUs.
    #[serde(untagged)]
    List(Vec<u32>),
}

/// A collective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Call {
    /// The collective. No default.
    pub kind: Kind,
    /// Size as nccl-tests count it. No default.
    pub bytes: Bytes,
    /// The algorithm. Default: as for the workload `collective`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Channels, messages, NICs and ports.
    #[serde(default)]
    pub tuning: Tuning,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Send {
    /// GPU that sends. No default.
    pub from: u32,
    /// GPU that receives. No default.
    pub to: u32,
    /// Size. No default.
    pub bytes: Bytes,
}

impl Generate for Graph {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        if self.0.is_empty() {
            return Err(code::MISSING.at("", "the graph has no tasks"));
        }
        let order = self.order()?;
        let mut layer = Layer {
            graph: self,
            compute: draft.operation(Operation { name: "compute", ..Operation::default() }),
            ends: vec![BTreeMap::new(); self.0.len()],
            groups: BTreeMap::new(),
            schedules: Schedules::default(),
            draft,
        };
        for task in order {
            layer.task(task).map_err(|error| error.within(&task.to_string()))?;
        }
        Ok(layer.groups.len().max(1))
    }
}

impl Graph {
    /// An order in which no task comes before those for which it waits.
    fn order(&self) -> Result<Vec<usize>, Finding> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (i, task) in self.0.iter().enumerate() {
            if places.insert(&task.name, i).is_some() {
                let text = format!("the name \"{}\" stands twice", task.name);
                return Err(code::TWICE.at(&format!("{i}.name"), text));
            }
        }
        let mut edges = Vec::new();
        for (i, task) in self.0.iter().enumerate() {
            for (k, name) in task.after.iter().enumerate() {
                let Some(&first) = places.get(name.as_str()) else {
                    let names: Vec<&str> = places.keys().copied().collect();
                    let error = code::UNKNOWN_NAME
                        .at(&format!("{i}.after.{k}"), format!("there is no task \"{name}\""));
                    return Err(error.with_help(suggestion(name, &names)));
                };
                edges.push((first as u32, i as u32));
            }
        }
        let ordered = order(self.0.len(), &edges).map_err(|cycle| {
            let names = cycle.iter().map(|&edge| self.0[edges[edge].0 as usize].name.clone());
            let first = cycle.first().map(|&edge| self.0[edges[edge].0 as usize].name.clone());
            let chain = formats::goal::chain(names.chain(first).collect());
            code::CYCLE.at("", format!("tasks wait for each other: {chain}"))
        })?;
        Ok(ordered.into_iter().map(|task| task as usize).collect())
    }
}

/// Lays the tasks of a graph.
struct Layer<'l, 'd> {
    graph: &'l Graph,
    draft: &'l mut Draft<'d>,
    compute: u32,
    /// Ends of each task, by rank.
    ends: Vec<BTreeMap<u32, Event>>,
    /// Numbers of groups of ranks, which keep their connections.
    groups: BTreeMap<Vec<u32>, u32>,
    schedules: Schedules,
}

impl Layer<'_, '_> {
    fn task(&mut self, i: usize) -> Result<(), Finding> {
        let graph = self.graph;
        let task = &graph.0[i];
        match (task.compute, &task.collective, task.send) {
            (Some(time), None, None) => self.compute(i, task, time),
            (None, Some(call), None) => {
                self.collective(i, task, call).map_err(|error| error.within("collective"))
            }
            (None, None, Some(send)) => self.send(i, task, send).map_err(|error| error.within("send")),
            _ => {
                let text =
                    format!("the task \"{}\" needs one of `compute`, `collective` and `send`", task.name);
                Err(code::MISSING.at("name", text))
            }
        }
    }

    /// The GPUs of a task.
    fn ranks(&self, task: &Task) -> Result<Vec<u32>, Finding> {
        let count = self.draft.ranks.count() as u32;
        let Which::List(list) = &task.ranks else { return Ok((0..count).collect()) };
        let mut ranks = list.clone();
        ranks.sort_unstable();
        if ranks.is_empty() {
            return Err(code::MISSING.at("ranks", "expected at least one GPU"));
        }
        if let Some(pair) = ranks.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(code::TWICE.at("ranks", format!("GPU {} stands twice", pair[0])));
        }
        self.known(*ranks.last().unwrap_or(&0), "ranks").map(|()| ranks)
    }

    fn known(&self, rank: u32, path: &str) -> Result<(), Finding> {
        let count = self.draft.ranks.count() as u32;
        match rank < count {
            true => Ok(()),
            false => {
                Err(code::NO_NODE.at(path, format!("there is no GPU {rank}; the last one is {}", count - 1)))
            }
        }
    }

    /// What a GPU waits for before its part in a task.
    fn causes(&self, task: &Task, rank: u32) -> Result<Vec<Event>, Finding> {
        let of = |(k, name): (usize, &String)| {
            let first = self.graph.0.iter().position(|other| other.name == *name);
            first.and_then(|first| self.ends[first].get(&rank).copied()).ok_or_else(|| {
                let text = format!(
                    "GPU {rank} has no part in \"{name}\", so \"{}\" cannot wait for it there",
                    task.name
                );
                code::FIT.at(&format!("after.{k}"), text)
            })
        };
        let mut causes = task.after.iter().enumerate().map(of).collect::<Result<Vec<_>, _>>()?;
        causes.sort_unstable();
        causes.dedup();
        Ok(causes)
    }

    fn compute(&mut self, i: usize, task: &Task, time: Time) -> Result<(), Finding> {
        if time > LATEST {
            return Err(code::RANGE.at("compute", format!("expected at most {LATEST}, found {time}")));
        }
        let ranks = self.ranks(task)?;
        self.draft.reserve_tasks(ranks.len() as u64, "compute")?;
        for rank in ranks {
            let causes = self.causes(task, rank)?;
            let stream = self.draft.ranks.stream(rank, Stream::Compute);
            let number = self.draft.task(self.draft.ranks.node(rank), Work::On { stream, time });
            let made = &mut self.draft.outline.tasks[number as usize];
            (made.rank, made.role, made.operation) = (rank, Role::Compute, self.compute);
            causes.into_iter().for_each(|cause| self.draft.join(cause, Item::Task(number)));
            self.ends[i].insert(rank, Event::Done(number));
        }
        Ok(())
    }

    fn collective(&mut self, i: usize, task: &Task, call: &Call) -> Result<(), Finding> {
        let ranks = self.ranks(task)?;
        if ranks.len() < 2 {
            return Err(code::RANGE.at("kind", "a collective needs at least two GPUs"));
        }
        let bytes = some_bytes(call.bytes, "bytes")?;
        let Call { kind, algorithm, ref tuning, .. } = *call;
        let made = tuning.call(self.draft, kind, bytes, &ranks).map_err(|e| e.within("tuning"))?;
        let planned = self.schedules.of(
            self.draft.memory,
            algorithm.unwrap_or(self.draft.usual_algorithm(kind)),
            &made,
        )?;
        let number = self.group(&ranks);
        let steps = planned.steps;
        self.draft.expect(steps, steps.min(ranks.len() as u64 * 64), "bytes")?;
        let causes = ranks.iter().map(|&rank| self.causes(task, rank)).collect::<Result<Vec<_>, _>>()?;
        let communicator = tuning.communicator(kind, ranks.clone(), number as usize, number);
        let left = self.draft.collective(communicator, &planned, Operation::default(), causes)?;
        self.ends[i] = ranks.into_iter().zip(left).collect();
        Ok(())
    }

    fn send(&mut self, i: usize, task: &Task, Send { from, to, bytes }: Send) -> Result<(), Finding> {
        self.known(from, "from")?;
        self.known(to, "to")?;
        if from == to {
            return Err(code::TO_ITSELF.at("to", format!("GPU {from} cannot send to itself")));
        }
        let bytes = some_bytes(bytes, "bytes")?;
        self.draft.reserve(1, 1, "bytes")?;
        let number = self.group(&[from, to]);
        let communicator = Communicator {
            ranks: vec![from, to],
            group: number as usize,
            lane: number,
            nic: Nic::Own,
            ports: Ports::Hash,
            cost: None,
        };
        let operation = Operation { name: "send", bytes, ranks: 2, bus: (1, 1), ..Operation::default() };
        let operation = self.draft.operation(operation);
        let causes = self.causes(task, from)?;
        let (arrived, sent) = self.draft.transfer(communicator, bytes, operation, causes);
        self.ends[i] = [(from, sent), (to, arrived)].into();
        Ok(())
    }

    fn group(&mut self, ranks: &[u32]) -> u32 {
        let next = self.groups.len() as u32;
        *self.groups.entry(ranks.to_vec()).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Checked, Source, check};

    /// Checks tasks on four GPUs.
    fn checked(tasks: &str) -> Result<Checked, String> {
        let text = format!(
            "[server]\ngpus = 1\n[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n[[workload]]\n\
             name = \"step\"\ngraph = [\n{tasks}]\n"
        );
        check(&Source::new("g.toml", text), &[]).map_err(|e| e.located())
    }

    #[test]
    fn tasks_come_in_any_order_and_wait_for_their_own_ranks_part() {
        let graph = checked(
            "{ name = \"update\", compute = \"1us\", after = [\"sum\"] },\n\
             { name = \"sum\", ranks = [0, 2], collective = { kind = \"all-reduce\", bytes = \"1kB\", \
             algorithm = \"ring\" }, after = [\"forward\"] },\n\
             { name = \"forward\", compute = \"10us\" },\n",
        );
        // Ranks 1 and 3 have no part in the sum.
        assert!(graph.unwrap_err().contains("GPU 1 has no part in \"sum\""));
        let graph = checked(
            "{ name = \"update\", ranks = [0, 2], compute = \"1us\", after = [\"sum\"] },\n\
             { name = \"sum\", ranks = [2, 0], collective = { kind = \"all-reduce\", bytes = \"1kB\", \
             algorithm = \"ring\" }, after = [\"forward\"] },\n\
             { name = \"forward\", compute = \"10us\" },\n",
        )
        .unwrap();
        let sent: u64 = graph.plan.messages.iter().map(|message| message.bytes).sum();
        assert_eq!(sent, 2 * 1000, "two ranks send half of the buffer twice");
    }

    #[test]
    fn wrong_graphs_are_refused_at_their_place() {
        for (tasks, message) in [
            ("", "the graph has no tasks"),
            (
                "{ name = \"a\", compute = \"1us\", after = [\"b\"] },\n{ name = \"b\", compute = \"1us\", after = [\"a\"] },\n",
                "wait for each other",
            ),
            (
                "{ name = \"a\", compute = \"1us\" },\n{ name = \"b\", compute = \"1us\", after = [\"aa\"] },\n",
                "g.toml:11:41: there is no task \"aa\"",
            ),
            (
                "{ name = \"a\", compute = \"1us\" },\n{ name = \"a\", compute = \"1us\" },\n",
                "the name \"a\" stands twice",
            ),
            ("{ name = \"a\" },\n", "the task \"a\" needs one of `compute`, `collective` and `send`"),
            ("{ name = \"a\", ranks = [4], compute = \"1us\" },\n", "there is no GPU 4; the last one is 3"),
            ("{ name = \"a\", ranks = [1, 1], compute = \"1us\" },\n", "GPU 1 stands twice"),
            (
                "{ name = \"a\", send = { from = 1, to = 1, bytes = \"1kB\" } },\n",
                "GPU 1 cannot send to itself",
            ),
            (
                "{ name = \"a\", ranks = [1], collective = { kind = \"all-reduce\", bytes = \"1kB\" } },\n",
                "at least two GPUs",
            ),
        ] {
            let error = checked(tasks).map(|_| ()).unwrap_err();
            assert!(error.contains(message), "{tasks}{error}");
        }
    }
}
