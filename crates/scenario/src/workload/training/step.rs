//! The tasks and collectives of training steps.
//!
//! A rank does one thing after another: computations, and the collectives of tensor, context and expert parallelism, for which it
//! waits. Activations go to the next stage and gradients to the stage before while the rank goes on. Gradients are exchanged in
//! buckets, one after another, from the end of the last backward pass of their layers on.

use super::pipeline::Pass;
use super::{ByFlops, ByLayer, ByTime, Compute, Dimension, Optimizer, Overlap, Sizes, Training, VALUE};
use crate::workload::communicator::{Communicator, Nic, Ports};
use crate::workload::draft::Draft;
use crate::workload::laid::{Cells, Item};
use crate::workload::outline::Event;
use crate::workload::planned::{Planned, Schedules};
use crate::workload::ranks::Stream;
use crate::workload::routing::{Kernel, Sent, TokenMessage};
use collective::{Algorithm, Call, Kind};
use finding::{Finding, code};
use model::Time;
use model::plan::{Operation, Role, Work};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::rc::Rc;

/// Bytes of a task in an outline. Our estimate from the sizes of the types.
const TASK: u64 = 110;

/// Adds all steps to the draft; returns the number of groups.
pub(super) fn lay(training: &Training, sizes: &Sizes, draft: &mut Draft<'_>) -> Result<usize, Finding> {
    let world = draft.ranks.count();
    draft.outline.cells = cells(sizes, draft);
    let mut layer = Layer {
        training,
        sizes,
        draft,
        schedules: Schedules::default(),
        routed: BTreeMap::new(),
        grouped: BTreeMap::new(),
        groups: BTreeMap::new(),
        count: 0,
        last: vec![Vec::new(); world],
        forward: BTreeMap::new(),
        backward: BTreeMap::new(),
        exchanged: BTreeMap::new(),
        ready: BTreeMap::new(),
        hidden: BTreeMap::new(),
        pending: Time::ZERO,
        dropped: 0,
        micro: 0,
        step: 0,
        first: 0,
        of_stage: 1,
    };
    layer.reserve()?;
    for step in 0..training.steps {
        layer.step = step;
        layer.step()?;
    }
    let (dropped, groups) = (layer.dropped, layer.count);
    if groups > u32::from(u16::MAX) {
        let text = format!("expected at most {} groups of ranks, found {groups}", u16::MAX);
        return Err(code::RANGE.at("parallel", text));
    }
    if dropped > 0 {
        let text = format!(
            "`routing.capacity` drops tokens: {dropped} of each rank, summed over layers and micro-batches"
        );
        draft.warnings.push(code::DROPPED_TOKENS.at("routing.capacity", text));
    }
    Ok(groups as usize)
}

/// The cells of a step: as few replicas as fill whole servers and have all experts.
fn cells(sizes: &Sizes, draft: &Draft<'_>) -> Cells {
    let Sizes { tp, cp, dp, ep, .. } = *sizes;
    let (replica, server) = (tp * cp, draft.ranks.per_server() as u32);
    let fills = (1..=dp)
        .find(|n| dp.is_multiple_of(*n) && n.is_multiple_of(ep) && (n * replica).is_multiple_of(server));
    match fills.filter(|_| draft.ranks.are_alike(draft.fabric)) {
        Some(replicas) => Cells { count: dp / replicas, stride: replicas * replica },
        None => Cells { count: 1, stride: dp * replica },
    }
}

/// An exchange of tokens: its call, the tokens to each expert of each rank, and whether they come back.
type Routed = (Call, Sent, bool);

/// Kinds of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Dim {
    Tp,
    Cp,
    /// Neighbouring stages.
    Pp,
    Dp,
    Ep,
    /// Replicas of the same experts.
    ExpertDp,
    /// First and last stage, which share the embedding.
    Embedding,
}

impl Dim {
    /// Whether its groups have ranks in all cells.
    const fn spans(self) -> bool {
        matches!(self, Dim::Dp | Dim::ExpertDp)
    }

    const fn name(self) -> &'static str {
        match self {
            Dim::Tp => "tp",
            Dim::Cp => "cp",
            Dim::Pp | Dim::Embedding => "pp",
            Dim::Dp | Dim::ExpertDp => "dp",
            Dim::Ep => "ep",
        }
    }
}

/// Places of a rank in all kinds of parallelism.
#[derive(Clone, Copy)]
struct Place {
    tp: u32,
    cp: u32,
    dp: u32,
    pp: u32,
}

impl Sizes {
    fn place(&self, rank: u32) -> Place {
        let Sizes { tp, cp, dp, .. } = *self;
        Place { tp: rank % tp, cp: rank / tp % cp, dp: rank / (tp * cp) % dp, pp: rank / (tp * cp * dp) }
    }

    fn rank(&self, Place { tp, cp, dp, pp }: Place) -> u32 {
        tp + self.tp * (cp + self.cp * (dp + self.dp * pp))
    }

    /// Ranks of a stage.
    fn per_stage(&self) -> u32 {
        self.tp * self.cp * self.dp
    }

    /// The layers of a part of a stage, counted in the model.
    fn layers_of(&self, stage: u32, part: u32) -> Range<u32> {
        let slot = (part * self.pp + stage) as usize;
        let first = self.layers[..slot].iter().sum();
        first..first + self.layers[slot]
    }

    /// The layers of a stage in the order of the backward pass, counted in the model.
    fn backwards(&self, stage: u32, parts: u32) -> Vec<u32> {
        (0..parts).rev().flat_map(|part| self.layers_of(stage, part).rev()).collect()
    }

    /// The ranks of a rank's group, in ascending order.
    fn group(&self, rank: u32, dim: Dim) -> Vec<u32> {
        let place = self.place(rank);
        let (cps, ep, dp) = (self.cp, self.ep, place.dp);
        let all = |count: u32, at: &dyn Fn(u32) -> Place| (0..count).map(|i| self.rank(at(i))).collect();
        match dim {
            Dim::Tp => all(self.tp, &|tp| Place { tp, ..place }),
            Dim::Cp => all(cps, &|cp| Place { cp, ..place }),
            Dim::Pp => vec![rank],
            // Ranks of context parallelism have the same parameters, too.
            Dim::Dp => all(self.dp * cps, &|i| Place { cp: i % cps, dp: i / cps, ..place }),
            Dim::Ep => all(ep, &|i| Place { dp: dp / ep * ep + i, ..place }),
            Dim::ExpertDp => {
                all(self.dp / ep * cps, &|i| Place { cp: i % cps, dp: dp % ep + ep * (i / cps), ..place })
            }
            Dim::Embedding => {
                [0, self.pp - 1].into_iter().map(|pp| self.rank(Place { pp, ..place })).collect()
            }
        }
    }

    /// The groups of a kind among some ranks.
    fn groups(&self, ranks: Range<u32>, dim: Dim) -> Vec<Vec<u32>> {
        let groups = ranks.map(|rank| (rank, self.group(rank, dim)));
        groups.filter(|(rank, group)| group.first() == Some(rank)).map(|(_, group)| group).collect()
    }
}

struct Layer<'l, 'd> {
    training: &'l Training,
    sizes: &'l Sizes,
    draft: &'l mut Draft<'d>,
    schedules: Schedules,
    /// Exchanges of tokens so far.
    routed: BTreeMap<Routed, Rc<Planned>>,
    /// Groups by kind and by first rank of the stage.
    grouped: BTreeMap<(Dim, u32), Rc<Vec<Vec<u32>>>>,
    /// By first rank: the number of a group in the first cell, and the numbers from a cell to the next one.
    groups: BTreeMap<(Dim, u32), (u32, Option<u32>)>,
    /// Number of groups in all cells.
    count: u32,
    /// What every rank did last: its next thing waits for these events.
    last: Vec<Vec<Event>>,
    /// Arrivals of activations and gradients, by rank, micro-batch and part.
    forward: BTreeMap<(u32, u32, u32), Arrival>,
    backward: BTreeMap<(u32, u32, u32), Arrival>,
    /// By rank: the last collective of data parallelism, if parameters are divided.
    exchanged: BTreeMap<u32, Event>,
    /// By rank: ends of the last backward passes of layers, in the order of gradients.
    ready: BTreeMap<u32, Vec<Event>>,
    /// By rank, if collectives of tensor parallelism hide behind computation: the collectives that the next computation waits for,
    /// and those that the one after it waits for.
    hidden: BTreeMap<u32, [Vec<Event>; 2]>,
    /// Time that all ranks of the stage compute next.
    pending: Time,
    /// Tokens that experts had no room for, on one rank of each group.
    dropped: u64,
    micro: u32,
    step: u32,
    /// The first layer of the part that passes now, counted in the model.
    first: u32,
    /// Layers of its stage.
    of_stage: u32,
}

/// An activation or gradient on its way.
#[derive(Clone, Copy)]
struct Arrival {
    event: Event,
    operation: u32,
}

impl<'l> Layer<'l, '_> {
    /// The groups of a kind among the ranks of a stage.
    fn groups_of(&mut self, ranks: &Range<u32>, dim: Dim) -> Rc<Vec<Vec<u32>>> {
        let known = self.grouped.entry((dim, ranks.start));
        Rc::clone(known.or_insert_with(|| Rc::new(self.sizes.groups(ranks.clone(), dim))))
    }

    /// The ranks of a stage in the first cell.
    fn stage(&self, stage: u32) -> Range<u32> {
        let first = stage * self.sizes.per_stage();
        first..first + self.draft.outline.cells.stride
    }

    /// Refuses a step that does not fit into memory.
    fn reserve(&mut self) -> Result<(), Finding> {
        let Sizes { dp, cp, micros, .. } = *self.sizes;
        let layers = self.sizes.layers.iter().max().copied().unwrap_or(1);
        let world = self.draft.ranks.count() as u64;
        let passes = u64::from(layers * self.training.schedule.parts()) * u64::from(micros) * 2;
        let bytes = u64::from(layers) * self.dense(0) * self.training.gradient.get();
        let buckets = bytes.div_ceil(self.training.bucket.get()) * 2;
        let sends = u64::from(micros) * 2 + buckets * 2 * u64::from((dp * cp).saturating_sub(1)).max(1);
        let steps = u64::from(self.training.steps);
        // Where experts have queue pairs of their own, each rank sends to those of all others.
        let experts =
            self.sizes.model.moe.map_or(0, |moe| moe.experts - moe.experts / u64::from(self.sizes.ep));
        let experts = if self.training.routing.message() == TokenMessage::Pair { 0 } else { experts };
        self.draft.expect(world * sends * steps, world * (8 + experts), "model")?;
        let tasks = world * passes * 6 * steps;
        let cell = tasks / u64::from(self.draft.outline.cells.count) * TASK;
        self.draft.memory.outline(cell, &self.draft.scene.path("model"))?;
        self.draft.expect_tasks(tasks, "model")
    }

    /// Parameters of a layer of the model on a rank, without experts.
    fn dense(&self, layer: u32) -> u64 {
        self.sizes.model.layer_of_rank(self.sizes.tp.into(), layer)
    }

    /// One training step.
    fn step(&mut self) -> Result<(), Finding> {
        let Sizes { pp, micros, .. } = *self.sizes;
        let schedule = self.training.schedule;
        let orders: Vec<Vec<Pass>> = (0..pp).map(|stage| schedule.passes(stage, pp, micros)).collect();
        // Passes are laid out in an order in which everything that a pass waits for exists.
        let mut next = vec![0usize; pp as usize];
        let mut idle = false;
        while !std::mem::replace(&mut idle, true) {
            for stage in 0..pp {
                while let Some(&pass) = orders[stage as usize].get(next[stage as usize]) {
                    if self.input(stage, pass).is_some_and(|arrived| !arrived) {
                        break;
                    }
                    self.pass(stage, pass)?;
                    next[stage as usize] += 1;
                    idle = false;
                }
            }
        }
        match (0..pp as usize).find(|&stage| next[stage] < orders[stage].len()) {
            Some(stage) => {
                Err(code::CYCLE.at("schedule", format!("the passes of stage {stage} wait for each other")))
            }
            None => self.exchange(),
        }
    }

    /// Whether the input of a pass exists; `None` if it needs none.
    fn input(&self, stage: u32, pass: Pass) -> Option<bool> {
        let parts = self.training.schedule.parts();
        let (needs, inputs) = match pass.forward {
            true => (stage > 0 || pass.part > 0, &self.forward),
            false => (stage + 1 < self.sizes.pp || pass.part + 1 < parts, &self.backward),
        };
        let key = (self.stage(stage).start, pass.micro, pass.part);
        needs.then(|| inputs.contains_key(&key))
    }

    /// One pass of a micro-batch on all ranks of a stage.
    fn pass(&mut self, stage: u32, pass: Pass) -> Result<(), Finding> {
        let Sizes { pp, tokens, tp, .. } = *self.sizes;
        let parts = self.training.schedule.parts();
        let ranks = self.stage(stage);
        self.micro = pass.micro;
        let range = self.sizes.layers_of(stage, pass.part);
        let layers = range.len() as u32;
        self.first = range.start;
        self.of_stage = (0..parts).map(|part| self.sizes.layers_of(stage, part).len() as u32).sum();
        if self.input(stage, pass).is_some() {
            self.receive(&ranks, pass);
        }
        let (first, last) = (stage == 0 && pass.part == 0, stage + 1 == pp && pass.part + 1 == parts);
        let activation = VALUE * tokens * self.sizes.model.hidden;
        let tp_sum =
            if self.training.parallel.sequence_parallel { Kind::ReduceScatter } else { Kind::AllReduce };
        if pass.forward && first && tp > 1 {
            self.collect(&ranks, Dim::Tp, tp_sum, activation, 0)?;
        }
        if !pass.forward && last {
            self.head(pass.forward);
        }
        let sharded = self.training.optimizer == Optimizer::Zero3 && self.sizes.dp * self.sizes.cp > 1;
        let nth = |i: u32| if pass.forward { i } else { layers - 1 - i };
        if sharded {
            self.gather(&ranks, nth(0), 0)?;
        }
        for i in 0..layers {
            let layer = nth(i);
            if sharded {
                // A layer waits for its parameters; those of the next layer come while it computes.
                self.compute(&ranks, pass, layer);
                for rank in ranks.clone() {
                    let gathered = self.exchanged.get(&rank).copied();
                    self.last[rank as usize].extend(gathered);
                }
                if i + 1 < layers {
                    self.gather(&ranks, nth(i + 1), layer)?;
                }
            }
            let blocks = if pass.forward { [true, false] } else { [false, true] };
            for attention in blocks {
                self.block(&ranks, pass, layer, attention)?;
            }
            if sharded && !pass.forward {
                self.compute(&ranks, pass, layer);
                let bytes = self.dense(self.first + layer) * self.training.gradient.get();
                self.in_background(&ranks, Kind::ReduceScatter, bytes, layer)?;
            }
            if !pass.forward && pass.micro + 1 == self.sizes.micros {
                self.compute(&ranks, pass, layer);
                for rank in ranks.clone() {
                    let last = self.last[rank as usize].clone();
                    self.ready.entry(rank).or_default().extend(last);
                }
            }
        }
        if pass.forward && last {
            self.head(pass.forward);
            self.compute(&ranks, pass, layers);
            if tp > 1 {
                for _ in 0..3 {
                    self.collect(&ranks, Dim::Tp, Kind::AllReduce, 4 * tokens, layers)?;
                }
            }
        }
        self.compute(&ranks, pass, layers);
        self.uncover(&ranks);
        self.send(stage, pass, activation);
        Ok(())
    }

    /// Gathers the parameters of the layer `next` of the part, while `layer` computes.
    fn gather(&mut self, ranks: &Range<u32>, next: u32, layer: u32) -> Result<(), Finding> {
        self.in_background(ranks, Kind::AllGather, self.dense(self.first + next) * VALUE, layer)
    }

    /// A collective of data parallelism that starts after what the ranks have done so far, and after the collective before it; the
    /// ranks go on.
    fn in_background(
        &mut self,
        ranks: &Range<u32>,
        kind: Kind,
        bytes: u64,
        layer: u32,
    ) -> Result<(), Finding> {
        self.draft.outline.next_run();
        for group in self.groups_of(ranks, Dim::Dp).iter() {
            let causes = |rank: &u32| {
                let before = self.exchanged.get(rank).copied();
                self.last[*rank as usize].iter().copied().chain(before).collect()
            };
            let causes: Vec<Vec<Event>> = self.own(group).iter().map(causes).collect();
            let left = self.collective(group, Dim::Dp, kind, bytes, layer, &causes)?;
            self.exchanged.extend(group.iter().copied().zip(left));
        }
        Ok(())
    }

    /// Waits for the input of a pass.
    fn receive(&mut self, ranks: &Range<u32>, pass: Pass) {
        for rank in ranks.clone() {
            let inputs = if pass.forward { &mut self.forward } else { &mut self.backward };
            let Some(arrival) = inputs.remove(&(rank, pass.micro, pass.part)) else { continue };
            let task = self.draft.task(self.draft.ranks.node(rank), Work::Free { time: Time::ZERO });
            let made = &mut self.draft.outline.tasks[task as usize];
            (made.role, made.rank, made.operation) = (Role::Leave, rank, arrival.operation);
            for cause in std::mem::take(&mut self.last[rank as usize]).into_iter().chain([arrival.event]) {
                self.draft.join(cause, Item::Task(task));
            }
            self.last[rank as usize] = vec![Event::Done(task)];
        }
    }

    /// Sends the output of a pass to the stage that needs it.
    fn send(&mut self, stage: u32, pass: Pass, activation: u64) {
        let (pp, parts) = (self.sizes.pp, self.training.schedule.parts());
        let (to, part) = match pass.forward {
            true if stage + 1 < pp => (stage + 1, pass.part),
            true if pass.part + 1 < parts => (0, pass.part + 1),
            false if stage > 0 => (stage - 1, pass.part),
            false if pass.part > 0 => (pp - 1, pass.part - 1),
            _ => return,
        };
        let bytes = match self.training.parallel.sequence_parallel {
            true => activation.div_ceil(self.sizes.tp.into()),
            false => activation,
        };
        let operation = self.operation("send", Dim::Pp, pass.part);
        let operation = self.draft.operation(Operation { bytes, ranks: 2, bus: (1, 1), ..operation });
        self.draft.outline.next_run();
        for rank in self.stage(stage) {
            let (number, stride) = self.number(Dim::Pp, rank);
            let peer = rank - stage * self.sizes.per_stage() + to * self.sizes.per_stage();
            let communicator = Communicator {
                ranks: vec![rank, peer],
                group: number as usize,
                lane: number,
                nic: Nic::Own,
                ports: Ports::Hash,
                cost: None,
            };
            let causes = self.last[rank as usize].clone();
            let (event, _) = self.draft.transfer_in_cells(communicator, stride, bytes, operation, causes);
            let outputs = if pass.forward { &mut self.forward } else { &mut self.backward };
            outputs.insert((peer, pass.micro, part), Arrival { event, operation });
        }
    }

    /// Attention, or the feed-forward part, of one layer, with the communication around it.
    fn block(&mut self, ranks: &Range<u32>, pass: Pass, layer: u32, attention: bool) -> Result<(), Finding> {
        let Sizes { ref model, tp, cp, ep, tokens, .. } = *self.sizes;
        let activation = VALUE * tokens * model.hidden;
        let split = self.training.parallel.sequence_parallel && tp > 1;
        if split {
            self.collect_after(ranks, pass, Dim::Tp, Kind::AllGather, activation, layer)?;
        }
        if attention && cp > 1 {
            // Keys and values go around the ring; backwards, their gradients go with them.
            let each = VALUE * tokens * model.kv_width() / u64::from(tp);
            let bytes = u64::from(cp) * each * if pass.forward { 1 } else { 2 };
            self.collect_after(ranks, pass, Dim::Cp, Kind::AllGather, bytes, layer)?;
        }
        // A token goes to `top-k` experts; its way back is the same, the other way round.
        let routed = !attention && ep > 1 && model.moe_of(self.first + layer).is_some();
        if routed {
            self.compute(ranks, pass, layer);
            self.route(ranks, layer, false)?;
        }
        self.pending = Time(
            self.pending.ps().saturating_add(self.time(pass.forward, attention, self.first + layer).ps()),
        );
        if routed {
            self.compute(ranks, pass, layer);
            self.route(ranks, layer, true)?;
        }
        match (split, tp > 1) {
            (true, _) => self.collect_after(ranks, pass, Dim::Tp, Kind::ReduceScatter, activation, layer),
            (false, true) => self.collect_after(ranks, pass, Dim::Tp, Kind::AllReduce, activation, layer),
            (false, false) => Ok(()),
        }
    }

    /// Time of a block of one layer, which is counted in the model.
    fn time(&self, forward: bool, attention: bool, layer: u32) -> Time {
        let Sizes { ref model, tp, tokens, .. } = *self.sizes;
        let of = |times: &ByTime| if forward { times.forward } else { times.backward };
        match &self.training.compute {
            Compute::Flops(ByFlops { flops }) => {
                let operations = match attention {
                    true => model.attention_flops(tokens, self.training.batch.sequence),
                    false => model.ffn_flops(tokens, layer),
                };
                flops.time(operations * if forward { 1 } else { 2 } / u128::from(tp))
            }
            Compute::Times(times) => Time(of(times).ps() / (2 * u64::from(self.of_stage))),
            Compute::Layers(ByLayer { per_layer }) => {
                let times = per_layer.get(layer as usize).or(per_layer.first());
                Time(times.map_or(0, |times| of(times).ps()) / 2)
            }
        }
    }

    /// The head of the model and the loss, on the last stage.
    fn head(&mut self, forward: bool) {
        if let Compute::Flops(ByFlops { flops }) = self.training.compute {
            let operations = self.sizes.model.head_flops(self.sizes.tokens) * if forward { 1 } else { 2 };
            let time = flops.time(operations / u128::from(self.sizes.tp));
            self.pending = Time(self.pending.ps().saturating_add(time.ps()));
        }
    }

    /// Adds the computation that is pending on all ranks of a stage.
    fn compute(&mut self, ranks: &Range<u32>, pass: Pass, layer: u32) {
        let time = std::mem::replace(&mut self.pending, Time::ZERO);
        if time == Time::ZERO {
            return;
        }
        let name = if pass.forward { "forward" } else { "backward" };
        let (step, micro_batch) = (self.step, self.micro);
        let operation =
            self.draft.operation(Operation { name, step, micro_batch, layer, ..Operation::default() });
        for rank in ranks.clone() {
            let stream = self.draft.ranks.stream(rank, Stream::Compute);
            let task = self.draft.task(self.draft.ranks.node(rank), Work::On { stream, time });
            let made = &mut self.draft.outline.tasks[task as usize];
            (made.role, made.rank, made.operation) = (Role::Compute, rank, operation);
            let due = self.hidden.get_mut(&rank);
            let due = due.map_or_else(Vec::new, |[due, later]| std::mem::replace(due, std::mem::take(later)));
            let last = std::mem::replace(&mut self.last[rank as usize], vec![Event::Done(task)]);
            for cause in last.into_iter().chain(due) {
                self.draft.join(cause, Item::Task(task));
            }
        }
    }

    /// A collective after the pending computation.
    fn collect_after(
        &mut self,
        ranks: &Range<u32>,
        pass: Pass,
        dim: Dim,
        kind: Kind,
        bytes: u64,
        layer: u32,
    ) -> Result<(), Finding> {
        self.compute(ranks, pass, layer);
        self.collect(ranks, dim, kind, bytes, layer)
    }

    /// A collective of all groups of a kind among the ranks of a stage, for which the ranks wait.
    fn collect(
        &mut self,
        ranks: &Range<u32>,
        dim: Dim,
        kind: Kind,
        bytes: u64,
        layer: u32,
    ) -> Result<(), Finding> {
        if dim == Dim::Tp && self.training.overlap == Overlap::Tp {
            return self.collect_hidden(ranks, kind, bytes, layer);
        }
        self.uncover(ranks);
        self.draft.outline.next_run();
        for group in self.groups_of(ranks, dim).iter() {
            let causes =
                group.iter().map(|&rank| std::mem::take(&mut self.last[rank as usize])).collect::<Vec<_>>();
            let left = self.collective(group, dim, kind, bytes, layer, &causes)?;
            for (&rank, event) in group.iter().zip(left) {
                self.last[rank as usize] = vec![event];
            }
        }
        Ok(())
    }

    /// A collective of tensor parallelism that hides behind the next computation: only the one after it waits.
    fn collect_hidden(
        &mut self,
        ranks: &Range<u32>,
        kind: Kind,
        bytes: u64,
        layer: u32,
    ) -> Result<(), Finding> {
        self.draft.outline.next_run();
        for group in self.groups_of(ranks, Dim::Tp).iter() {
            let causes = |rank: &u32| {
                let before = self.hidden.get(rank).map_or(&[][..], |[_, later]| later.as_slice());
                self.last[*rank as usize].iter().chain(before).copied().collect()
            };
            let causes: Vec<Vec<Event>> = group.iter().map(causes).collect();
            let left = self.collective(group, Dim::Tp, kind, bytes, layer, &causes)?;
            for (&rank, event) in group.iter().zip(left) {
                self.hidden.entry(rank).or_default()[1] = vec![event];
            }
        }
        Ok(())
    }

    /// Lets what comes next wait for all hidden collectives.
    fn uncover(&mut self, ranks: &Range<u32>) {
        for rank in ranks.clone() {
            if let Some(hidden) = self.hidden.remove(&rank) {
                self.last[rank as usize].extend(hidden.into_iter().flatten());
            }
        }
    }

    /// Tokens go to their experts, or come back.
    fn route(&mut self, ranks: &Range<u32>, layer: u32, back: bool) -> Result<(), Finding> {
        let Sizes { ref model, tp, ep, tokens, .. } = *self.sizes;
        let (routing, Some(moe)) = (&self.training.routing, model.moe) else { return Ok(()) };
        let token = routing.token(model.hidden, back);
        let mine = (tokens / u64::from(tp)).max(1);
        let even = routing.is_even() && routing.kernel == Kernel::None;
        if even && !routing.once_per_server() && routing.message() == TokenMessage::Pair {
            return self.collect(ranks, Dim::Ep, Kind::AllToAll, token * mine * moe.top_k, layer);
        }
        let load = routing.load(moe, mine, routing.key(self.draft.key, self.step, layer));
        self.dropped += if back { 0 } else { load.dropped };
        let sent = Sent::alike(load.tokens, ep);
        let (key, Dimension { tuning, .. }) = self.settings_of(Dim::Ep);
        let tuning = routing.tuning(tuning, token, back);
        self.draft.outline.next_run();
        for group in self.groups_of(ranks, Dim::Ep).iter() {
            let call = tuning
                .call(self.draft, Kind::AllToAll, sent.mean() * token, group)
                .map_err(|error| error.within("tuning").within(key).within("collectives"))?;
            let planned = match self.routed.entry((call, sent.clone(), back)) {
                Entry::Occupied(known) => Rc::clone(known.get()),
                Entry::Vacant(new) => {
                    let (call, path) = (new.key().0.clone(), self.draft.scene.path("routing"));
                    let planned =
                        routing.planned(self.draft.memory, &path, call, &sent, (token, mine, back), moe);
                    Rc::clone(new.insert(Rc::new(planned.map_err(|error| error.within("routing"))?)))
                }
            };
            let causes =
                group.iter().map(|&rank| std::mem::take(&mut self.last[rank as usize])).collect::<Vec<_>>();
            let (number, stride) = self.number(Dim::Ep, group[0]);
            let communicator = tuning.communicator(Kind::AllToAll, group.clone(), number as usize, number);
            let operation = Operation { layer, ..self.operation(Kind::AllToAll.name(), Dim::Ep, 0) };
            let left = self.draft.collective_in_cells(communicator, stride, &planned, operation, causes)?;
            for (&rank, event) in group.iter().zip(left) {
                self.last[rank as usize] = vec![event];
            }
        }
        Ok(())
    }

    /// The settings of a kind of parallelism, and the key under which they stand.
    fn settings_of(&self, dim: Dim) -> (&'static str, &'l Dimension) {
        let training = self.training;
        let all = &training.collectives;
        match dim {
            Dim::Tp => all.of("tp", &all.tp),
            Dim::Ep => all.of("ep", &all.ep),
            Dim::Cp => all.of("cp", &all.cp),
            Dim::Dp | Dim::ExpertDp | Dim::Pp | Dim::Embedding => all.of("dp", &all.dp),
        }
    }

    /// Adds a collective of one group; returns the event at which each rank has left it.
    fn collective(
        &mut self,
        group: &[u32],
        dim: Dim,
        kind: Kind,
        bytes: u64,
        layer: u32,
        causes: &[Vec<Event>],
    ) -> Result<Vec<Event>, Finding> {
        let (key, Dimension { algorithm, tuning }) = self.settings_of(dim);
        let within = |error: Finding| error.within(key).within("collectives");
        let call = tuning.call(self.draft, kind, bytes, group).map_err(|e| within(e.within("tuning")))?;
        let in_switch = dim == Dim::Tp && call.nvlink && call.servers.len() == 1;
        let usual = if in_switch { Algorithm::Nvls } else { self.draft.usual_algorithm(kind) };
        // An algorithm that cannot do one of the collectives leaves it to the usual one.
        let algorithm = algorithm.filter(|a| a.kinds().contains(&kind)).unwrap_or(usual);
        let planned = self.schedules.of(self.draft.memory, algorithm, &call).map_err(within)?;
        let (number, stride) = self.number(dim, group[0]);
        let communicator = tuning.communicator(kind, group.to_vec(), number as usize, number);
        let operation = Operation { dimension: dim.name(), layer, ..self.operation(kind.name(), dim, 0) };
        self.draft.collective_in_cells(communicator, stride, &planned, operation, causes.to_vec())
    }

    /// The ranks of a group of data parallelism in the first cell, which are its first ones.
    fn own<'g>(&self, group: &'g [u32]) -> &'g [u32] {
        &group[..group.len() / self.draft.outline.cells.count as usize]
    }

    fn operation(&self, name: &'static str, dim: Dim, part: u32) -> Operation {
        let (step, micro_batch) = (self.step, self.micro);
        Operation { name, dimension: dim.name(), step, micro_batch, layer: part, ..Operation::default() }
    }

    /// The number of a group, and the numbers from a cell to the next one if the group stands in a cell. It keeps the group's connections
    /// apart. Groups of a kind and a stage follow each other, cell by cell.
    fn number(&mut self, dim: Dim, first: u32) -> (u32, Option<u32>) {
        if let Some(known) = self.groups.get(&(dim, first)) {
            return *known;
        }
        let stage = self.stage(self.sizes.place(first).pp);
        let groups = self.groups_of(&stage, dim);
        let (each, cells) = (groups.len() as u32, self.draft.outline.cells.count);
        let (stride, all) = if dim.spans() { (None, each) } else { (Some(each), each * cells) };
        let numbered =
            (self.count..).zip(groups.iter()).map(|(number, group)| ((dim, group[0]), (number, stride)));
        self.groups.extend(numbered);
        self.count += all;
        self.groups[&(dim, first)]
    }

    /// Exchanges gradients and parameters; the ranks' next step waits for it.
    fn exchange(&mut self) -> Result<(), Finding> {
        let Sizes { ref model, tp, cp, dp, pp, ep, .. } = *self.sizes;
        let parts = self.training.schedule.parts();
        if pp > 1 && model.head() == 0 {
            let bytes = self.training.gradient.get() * model.embedding() / u64::from(tp);
            let ranks = self.stage(0);
            self.draft.outline.next_run();
            for group in self.groups_of(&ranks, Dim::Embedding).iter() {
                let causes = group.iter().map(|&rank| self.last[rank as usize].clone()).collect::<Vec<_>>();
                let left = self.collective(
                    group,
                    Dim::Embedding,
                    Kind::AllReduce,
                    bytes,
                    self.sizes.layers[0],
                    &causes,
                )?;
                for (&rank, event) in group.iter().zip(left) {
                    self.last[rank as usize] = vec![event];
                }
            }
        }
        for stage in 0..pp {
            let ranks = self.stage(stage);
            let layers = self.sizes.backwards(stage, parts);
            let dense: Vec<u64> = layers.iter().map(|&layer| self.dense(layer)).collect();
            let share = u64::from(ep) * u64::from(tp);
            let experts: Vec<u64> = layers.iter().map(|&layer| model.experts(layer) / share).collect();
            let mut each = dense.clone();
            // The embedding's gradients come last, the head's first.
            if let Some(last) = each.last_mut().filter(|_| stage == 0) {
                *last += model.embedding() / u64::from(tp);
            }
            if let Some(first) = each.first_mut().filter(|_| stage + 1 == pp) {
                *first += model.head() / u64::from(tp) + model.last_norm();
            }
            if self.training.optimizer == Optimizer::Zero3 {
                // Gradients of layers have been reduced; those of embedding and head are left.
                each = vec![each.iter().sum::<u64>() - dense.iter().sum::<u64>()];
            }
            if dp * cp > 1 && each.iter().any(|&parameters| parameters > 0) {
                self.buckets(&ranks, Dim::Dp, &each)?;
            }
            if experts.iter().any(|&parameters| parameters > 0) && dp / ep * cp > 1 {
                self.buckets(&ranks, Dim::ExpertDp, &experts)?;
            }
        }
        for (rank, event) in std::mem::take(&mut self.exchanged) {
            self.last[rank as usize].push(event);
        }
        self.ready.clear();
        Ok(())
    }

    /// Exchanges the gradients of layers with these numbers of parameters, in the order of the backward pass.
    fn buckets(&mut self, ranks: &Range<u32>, dim: Dim, parameters: &[u64]) -> Result<(), Finding> {
        let gradient = self.training.gradient.get();
        let all: u64 = parameters.iter().sum();
        let count = (all * gradient).div_ceil(self.training.bucket.get()).max(1);
        // By bucket: its parameters, and the layer that completes it.
        let mut buckets: Vec<(u64, usize)> = Vec::new();
        let (mut layer, mut end) = (0, parameters.first().copied().unwrap_or(0));
        for bucket in 0..count {
            let bounds =
                [bucket, bucket + 1].map(|i| (u128::from(all) * u128::from(i) / u128::from(count)) as u64);
            while end < bounds[1] && layer + 1 < parameters.len() {
                layer += 1;
                end += parameters[layer];
            }
            buckets.push((bounds[1] - bounds[0], layer));
        }
        let replicated = self.training.optimizer == Optimizer::Replicated;
        let kind = if replicated { Kind::AllReduce } else { Kind::ReduceScatter };
        self.draft.outline.next_run();
        for group in self.groups_of(ranks, dim).iter() {
            let own = self.own(group).to_vec();
            let mut before: Vec<Vec<Event>> = vec![Vec::new(); own.len()];
            for (number, &(parameters, layer)) in (0..).zip(&buckets) {
                let causes: Vec<Vec<Event>> = own
                    .iter()
                    .zip(&before)
                    .map(|(rank, before)| {
                        let ready =
                            self.ready.get(rank).and_then(|ready| ready.get(layer).or(ready.last())).copied();
                        let earlier = self.exchanged.get(rank).copied();
                        before.iter().copied().chain(ready).chain(earlier).collect()
                    })
                    .collect();
                let left = self.collective(group, dim, kind, parameters * gradient, number, &causes)?;
                before = left.into_iter().map(|event| vec![event]).collect();
            }
            if !replicated {
                // Parameters change when all gradients have arrived.
                for (number, &(parameters, _)) in (0..).zip(&buckets) {
                    let bytes = parameters * VALUE;
                    let left = self.collective(group, dim, Kind::AllGather, bytes, number, &before)?;
                    before = left.into_iter().map(|event| vec![event]).collect();
                }
            }
            for (&rank, left) in own.iter().zip(before) {
                self.last[rank as usize].extend(left);
            }
        }
        Ok(())
    }
}
