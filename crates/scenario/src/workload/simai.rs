//! Workloads of SimAI and AICB: one training step, layer by layer.

use super::digest;
use super::draft::Draft;
use super::laid::Item;
use super::outline::Event;
use super::planned::Schedules;
use super::ranks::Stream;
use super::training::Dimension;
use super::{Generate, QpUse};
use crate::values::LATEST;
use crate::workload::communicator::{Communicator, Nic, Ports};
use collective::{Algorithm, Kind};
use finding::{Finding, code};
use formats::read_text;
use formats::simai::{self, Comm, Group, Phase, Shape, Step};
use model::Time;
use model::plan::{Operation, Role, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A workload of SimAI or AICB: the layers of a training step, with the time of their computations and the bytes of their
/// collectives. Rank r of the workload is GPU r; tensor parallelism counts fastest, then data parallelism, then pipelines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Simai {
    /// The file: a path relative to the scenario's file. No default.
    pub file: String,
    /// Number of GPUs, if the file has no `all_gpus`. Default: all of the fabric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Collectives of tensor parallelism. Default: `"nvls"` inside a server with NVLink, else `"ring"`; `"direct"` for
    /// all-to-all.
    #[serde(default)]
    pub tp: Dimension,
    /// Collectives of data and expert parallelism. Default: the defaults of the workload `collective`.
    #[serde(default)]
    pub dp: Dimension,
    /// Digest of the file, which the results record. A scenario with a digest refuses a file that has changed. Default: the digest of
    /// the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The workload, once the file is read.
    #[serde(skip)]
    step: Option<Arc<Step>>,
}

impl Generate for Simai {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let Some(step) = &self.step else {
            return Err(code::FILE.at("file", format!("{} was not read", self.file)));
        };
        for (what, records) in &step.left_out {
            let text = format!("collectives of {} that are left out: {records}; {what}", self.file);
            draft.warnings.push(code::LEFT_OUT.at("file", text));
        }
        if step.header.checkpoints {
            let text = "have no effect: no layer computes its forward pass again";
            draft.warnings.push(code::NO_EFFECT.at("file", format!("checkpoints of {} {text}", self.file)));
        }
        let world = self.world(step, draft.ranks.count() as u64)?;
        let tasks = step.layers.len() as u64 * 4 * u64::from(world);
        draft.reserve_tasks(tasks, "file")?;
        let mut layer = Layer {
            settings: self,
            step,
            world,
            last: vec![Vec::new(); world as usize],
            open: vec![Vec::new(); world as usize],
            groups: BTreeMap::new(),
            schedules: Schedules::default(),
            compute: draft.operation(Operation { name: "compute", ..Operation::default() }),
            update: draft.operation(Operation { name: "update", ..Operation::default() }),
            draft,
        };
        layer.lay()?;
        Ok(layer.groups.len())
    }

    fn read_files(&mut self, folder: &Path) -> Result<(), Finding> {
        let path = folder.join(&self.file);
        let name = path.display().to_string();
        let text = read_text("simai", &path, &name)?;
        let step = simai::read(&name, &text)?;
        digest::keep(&mut self.digest, &self.file, digest::of(&text))?;
        self.step = Some(Arc::new(step));
        Ok(())
    }

    /// A queue pair per pair of GPUs and group, as collective libraries keep them.
    fn usual_qp(&self) -> QpUse {
        QpUse::Persistent
    }
}

impl Simai {
    /// Number of ranks, which the groups divide.
    fn world(&self, step: &Step, gpus: u64) -> Result<u32, Finding> {
        let header = &step.header;
        let world = header.gpus.or(self.gpus.map(u64::from)).unwrap_or(gpus);
        if world > gpus || world == 0 {
            let text = format!("{} runs on {world} GPUs; the fabric has {gpus}", self.file);
            return Err(code::FIT.at("file", text));
        }
        let (stages, experts) = (header.tp.checked_mul(header.pp), header.tp.checked_mul(header.ep));
        let divides = |group: Option<u64>, all: u64| group.is_some_and(|group| all.is_multiple_of(group));
        if !divides(stages, world) || !divides(experts, world / header.pp) {
            let text = format!(
                "{}: groups of tp {}, pp {} and ep {} do not divide {world} GPUs",
                self.file, header.tp, header.pp, header.ep
            );
            return Err(code::FIT.at("file", text));
        }
        u32::try_from(world).map_err(|_| code::CONTENT.at("file", "too many GPUs"))
    }
}

/// Lays the tasks and collectives of the step.
struct Layer<'l, 'd> {
    settings: &'l Simai,
    step: &'l Step,
    draft: &'l mut Draft<'d>,
    world: u32,
    /// By rank: what its next computation waits for.
    last: Vec<Vec<Event>>,
    /// By rank: updates of weights, which only the end of the step waits for.
    open: Vec<Vec<Event>>,
    /// Numbers of the groups so far, by kind and first rank.
    groups: BTreeMap<(Group, u32), u32>,
    schedules: Schedules,
    /// Operations of the plan under which the results show computations, and updates of weights.
    compute: u32,
    update: u32,
}

/// A time of so many ns.
fn possible(ns: u64) -> Result<Time, Finding> {
    let ps = ns.checked_mul(1000).filter(|ps| *ps <= LATEST.ps());
    ps.map(Time).ok_or_else(|| {
        let text = format!("a computation of {ns} ns is longer than {LATEST}, the longest possible");
        code::CONTENT.at("file", text)
    })
}

/// Bytes that SimAI sends at least in a collective of the forward pass.
const LEAST: u64 = 4096;

impl Layer<'_, '_> {
    fn lay(&mut self) -> Result<(), Finding> {
        let step = self.step;
        if step.shape == Shape::Micro {
            for layer in &step.layers {
                self.compute(layer.weight.ns)?;
                self.blocking(layer.weight.comm)?;
            }
            return Ok(());
        }
        for layer in &step.layers {
            let Phase { ns, comm } = layer.forward;
            self.compute(ns)?;
            let raised = comm.map(|comm| Comm { bytes: comm.bytes.max(LEAST), ..comm });
            self.blocking(raised)?;
        }
        for layer in step.layers.iter().rev() {
            self.compute(layer.input.ns)?;
            self.blocking(layer.input.comm)?;
            self.compute(layer.weight.ns)?;
            self.behind(layer.weight.comm, layer.update)?;
        }
        self.pipeline()
    }

    /// All ranks compute.
    fn compute(&mut self, ns: u64) -> Result<(), Finding> {
        let time = possible(ns)?;
        for rank in 0..self.world {
            let stream = self.draft.ranks.stream(rank, Stream::Compute);
            let event = self.task(rank, Work::On { stream, time }, Role::Compute, self.compute);
            self.last[rank as usize] = vec![event];
        }
        Ok(())
    }

    /// Adds a task that waits for what its rank did last. The results show it as a part of an operation.
    fn task(&mut self, rank: u32, work: Work, role: Role, operation: u32) -> Event {
        let task = self.draft.task(self.draft.ranks.node(rank), work);
        let made = &mut self.draft.outline.tasks[task as usize];
        (made.rank, made.role, made.operation) = (rank, role, operation);
        for cause in std::mem::take(&mut self.last[rank as usize]) {
            self.draft.join(cause, Item::Task(task));
        }
        Event::Done(task)
    }

    /// A collective of all ranks' groups, for which their next computation waits.
    fn blocking(&mut self, comm: Option<Comm>) -> Result<(), Finding> {
        for (rank, event) in self.collective(comm)? {
            self.last[rank as usize] = vec![event];
        }
        Ok(())
    }

    /// A collective beside the next computations, and the update of the weights after it.
    fn behind(&mut self, comm: Option<Comm>, update: u64) -> Result<(), Finding> {
        let done = self.collective(comm)?;
        let time = possible(update)?;
        for (rank, event) in done {
            let kept = std::mem::replace(&mut self.last[rank as usize], vec![event]);
            let updated = self.task(rank, Work::Free { time }, Role::Compute, self.update);
            self.last[rank as usize] = kept;
            self.open[rank as usize].push(updated);
        }
        Ok(())
    }

    /// The groups of a kind.
    fn groups_of(&self, group: Group) -> Vec<Vec<u32>> {
        let header = &self.step.header;
        let (tp, ep, world) = (header.tp as u32, header.ep as u32, self.world);
        let stage = world / header.pp as u32;
        let (size, step) = match (self.step.shape, group) {
            (Shape::Data, Group::Dp) | (Shape::Model, Group::Tp) | (Shape::Micro, _) => (world, 1),
            (Shape::Data, Group::Tp) | (Shape::Model, Group::Dp) => (1, 1),
            (_, Group::Tp) => (tp, 1),
            (_, Group::Dp) => (stage / tp, tp),
            (_, Group::Ep) => (ep, tp),
            (_, Group::DpEp) => (stage / tp / ep, tp * ep),
        };
        let starts = (0..world).filter(|rank| rank / step % size == 0);
        starts.map(|first| (0..size).map(|i| first + i * step).collect()).collect()
    }

    /// A collective of all groups of its kind; returns when each rank has left it.
    fn collective(&mut self, comm: Option<Comm>) -> Result<Vec<(u32, Event)>, Finding> {
        let Some(Comm { kind, group, bytes }) = comm else { return Ok(Vec::new()) };
        if bytes > 1 << 50 {
            return Err(code::CONTENT.at("file", format!("a collective has at most 1 PiB, found {bytes} B")));
        }
        let mut done = Vec::new();
        for ranks in self.groups_of(group) {
            if ranks.len() < 2 {
                continue;
            }
            let left = self.one(kind, group, bytes, &ranks)?;
            done.extend(ranks.into_iter().zip(left));
        }
        Ok(done)
    }

    fn one(&mut self, kind: Kind, group: Group, bytes: u64, ranks: &[u32]) -> Result<Vec<Event>, Finding> {
        let (name, Dimension { algorithm, tuning }) = match group {
            Group::Tp => ("tp", &self.settings.tp),
            Group::Dp | Group::Ep | Group::DpEp => ("dp", &self.settings.dp),
        };
        let within = |error: Finding| error.within(name);
        let call = tuning.call(self.draft, kind, bytes, ranks).map_err(|e| within(e.within("tuning")))?;
        let in_switch = group == Group::Tp && call.nvlink && call.servers.len() == 1;
        let in_switch = in_switch && Algorithm::Nvls.kinds().contains(&kind);
        let usual = if in_switch { Algorithm::Nvls } else { self.draft.usual_algorithm(kind) };
        let algorithm = algorithm.filter(|a| a.kinds().contains(&kind)).unwrap_or(usual);
        let planned = self.schedules.of(self.draft.memory, algorithm, &call).map_err(within)?;
        let next = self.groups.len() as u32;
        let number = *self.groups.entry((group, ranks[0])).or_insert(next);
        let pairs = if number == next { ranks.len() as u64 * 64 } else { 0 };
        let steps = planned.steps;
        self.draft.expect(steps, pairs.min(steps), "file")?;
        let communicator = tuning.communicator(kind, ranks.to_vec(), number as usize, number);
        let dimension = match group {
            Group::Tp => "tp",
            Group::Dp | Group::DpEp => "dp",
            Group::Ep => "ep",
        };
        let causes: Vec<Vec<Event>> = ranks.iter().map(|&rank| self.last[rank as usize].clone()).collect();
        let operation = Operation { dimension, ..Operation::default() };
        self.draft.collective(communicator, &planned, operation, causes)
    }

    /// The messages between the stages of a pipeline. SimAI adds the time of 2 x vpp x ga of them to that of the step, as if they
    /// went one after another. So every rank sends a message to the next stage, then one to the stage before, and so on. It goes
    /// on when its message is acknowledged, and that of its neighbour has arrived.
    fn pipeline(&mut self) -> Result<(), Finding> {
        let header = &self.step.header;
        if header.pp < 2 || header.pp_comm == 0 {
            return Ok(());
        }
        let times = header.vpp.saturating_mul(header.ga);
        let (world, stage) = (u64::from(self.world), self.world / header.pp as u32);
        let messages = times.saturating_mul(2 * (world - u64::from(stage)));
        self.draft.reserve(messages, world * 2, "file")?;
        // A message has an entry and two exits.
        self.draft.reserve_tasks(messages.saturating_mul(3), "file")?;
        for (rank, open) in self.open.iter_mut().enumerate() {
            self.last[rank].append(open);
        }
        let group = self.groups.len();
        for _ in 0..times {
            for forward in [true, false] {
                let before = self.last.clone();
                for rank in 0..self.world {
                    let peer = if forward { rank.checked_add(stage) } else { rank.checked_sub(stage) };
                    let Some(peer) = peer.filter(|peer| *peer < self.world) else { continue };
                    self.hop(rank, peer, group, &before[rank as usize]);
                }
            }
        }
        self.groups.insert((Group::Tp, u32::MAX), group as u32);
        Ok(())
    }

    /// A message from a rank to its neighbour in the pipeline, after these events. What the two do next waits for it.
    fn hop(&mut self, rank: u32, peer: u32, group: usize, causes: &[Event]) {
        let communicator = Communicator {
            ranks: vec![rank, peer],
            group,
            lane: group as u32,
            nic: Nic::Own,
            ports: Ports::Hash,
            cost: None,
        };
        let bytes = self.step.header.pp_comm;
        let (name, dimension) = ("send", "pp");
        let operation = Operation { name, dimension, bytes, ranks: 2, bus: (1, 1), ..Operation::default() };
        let operation = self.draft.operation(operation);
        let (arrived, sent) = self.draft.transfer(communicator, bytes, operation, causes.to_vec());
        for (end, event) in [(rank, sent), (peer, arrived)] {
            self.last[end as usize].push(event);
            let left = self.task(end, Work::Free { time: Time::ZERO }, Role::Leave, operation);
            self.last[end as usize] = vec![left];
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Checked, Source, check};
    use std::path::Path;

    /// Checks a workload on one server of four GPUs without NVLink.
    fn checked(folder: &Path, text: &str, settings: &str) -> Result<Checked, String> {
        std::fs::write(folder.join("s.txt"), text).unwrap();
        let scenario = format!(
            "[server]\ngpus = 1\n[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n[[workload]]\n\
             simai = {{ file = \"s.txt\"{settings} }}\n"
        );
        let source = Source::new(folder.join("s.toml").display().to_string(), scenario);
        let folder = folder.display().to_string() + "/";
        check(&source, &[]).map_err(|e| e.located().replace(&folder, ""))
    }

    const STEP: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 \
                        checkpoints: 0 checkpoint_initiates: 0\n2\n\
                        attn -1 1000 ALLREDUCE 4096 900 ALLREDUCE 4096 800 NONE 0 100\n\
                        grads -1 1 NONE 0 1 NONE 0 1 REDUCESCATTER 8192 100\n";

    #[test]
    fn two_all_reduces_and_a_reduce_scatter_send_49152_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let step = checked(folder.path(), STEP, "").unwrap();
        assert_eq!(step.warnings(), [""; 0]);
        let sent: u64 = step.plan.messages.iter().map(|message| message.bytes).sum();
        assert_eq!(sent, 49_152);
        // Tensor parallelism joins neighbours, data parallelism every second rank.
        let pairs: std::collections::BTreeSet<(u32, u32)> =
            step.plan.qps.iter().map(|qp| (qp.from.0, qp.to.0)).collect();
        assert_eq!(pairs, [(0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2)].into());
    }

    #[test]
    fn a_pipeline_sends_between_its_stages() {
        let folder = tempfile::tempdir().unwrap();
        let text = STEP
            .replace("pp: 1 vpp: 1 ga: 1", "pp: 2 vpp: 1 ga: 3")
            .replace("initiates: 0", "initiates: 0 pp_comm 50000");
        let step = checked(folder.path(), &text, "").unwrap();
        let between: Vec<u64> = step
            .plan
            .messages
            .iter()
            .filter(|message| {
                let qp = &step.plan.qps[message.qp.index()];
                qp.from.0 / 2 != qp.to.0 / 2
            })
            .map(|message| message.bytes)
            .collect();
        // Three times, two ranks of each stage send to the other stage; a stage is one data-parallel group of one.
        assert_eq!(between, [50_000; 12]);
    }

    #[test]
    fn workloads_that_do_not_fit_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let wrong = |text: &str| checked(folder.path(), text, "").unwrap_err();
        let more = wrong(&STEP.replace("all_gpus: 4", "all_gpus: 8"));
        assert!(more.contains("s.txt runs on 8 GPUs; the fabric has 4"), "{more}");
        let odd = wrong(&STEP.replace("group: 2", "group: 3"));
        assert!(odd.contains("groups of tp 3, pp 1 and ep 1 do not divide 4 GPUs"), "{odd}");
        let long = wrong(&STEP.replace(" 1000 ", " 18446744073709551 "));
        assert!(long.contains("longer than"), "{long}");
        let place = wrong(&STEP.replace("attn", "attn attn"));
        assert!(place.starts_with("s.txt:3:11: expected"), "{place}");
        let changed = checked(folder.path(), STEP, ", digest = \"0\"").map(|_| ()).unwrap_err();
        assert!(changed.contains("s.txt has changed"), "{changed}");
    }

    #[test]
    fn a_microbenchmark_runs_one_collective_after_the_other_over_all_gpus() {
        let folder = tempfile::tempdir().unwrap();
        let text = "MICRO\n2\nmicro -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4096 1\nmicro -1 1 NONE 0 1 NONE 0 1 ALLTOALL 8192 1\n";
        let step = checked(folder.path(), text, "").unwrap();
        let sent: u64 = step.plan.messages.iter().map(|message| message.bytes).sum();
        assert_eq!(sent, 4 * (6 * 1024 + 3 * 2048));
    }
}
