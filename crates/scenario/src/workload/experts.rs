//! Expert parallelism alone: the layers of decoding or prefill steps.

use super::Generate;
use super::collective::Tuning;
use super::draft::Draft;
use super::laid::{Item, part};
use super::outline::Event;
use super::planned::Planned;
use super::ranks::Stream;
use super::routing::{Routing, Sent};
use super::training::{ModelChoice, Moe};
use crate::values::LATEST;
use collective::{Call, Kind};
use finding::{Finding, code};
use model::plan::{Operation, Role, Work};
use model::{HostId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// Layers of a model whose experts are divided among all GPUs of the job: in each layer, tokens go to their experts (dispatch) and come
/// back (combine).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Experts {
    /// The model: `"deepseek-v3"`, `"mixtral-8x7b"`, or its sizes. No default.
    pub model: ModelChoice,
    /// Tokens of each GPU in a step. No default.
    pub tokens: u64,
    /// Number of layers with experts. Default 1 (our choice).
    #[serde(default = "one")]
    pub layers: u32,
    /// Number of steps, one after another. Default 1 (our choice).
    #[serde(default = "one")]
    pub steps: u32,
    /// Number of parts of a GPU's tokens that go through the layers independently, so that one computes while another is on the network;
    /// a GPU computes for one at a time. Default 1 (our choice; DeepSeek-V3 decodes with 2).
    #[serde(default = "one")]
    pub micro_batches: u32,
    /// Times of computations of a micro-batch in a layer.
    #[serde(default)]
    pub compute: Computation,
    /// Routing of tokens to experts, and the kernels that send them.
    #[serde(default)]
    pub routing: Routing,
    /// Messages, NICs, ports and costs. Without a kernel, `nic = "own"` sends from the NIC of the sender to that of the receiver.
    #[serde(default)]
    pub tuning: Tuning,
}

/// Times of computations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Computation {
    /// From the combine of the layer before to the dispatch. Default 0 (our choice: exchanges alone).
    pub attention: Time,
    /// From the dispatch to the combine. Default 0 (our choice).
    pub experts: Time,
}

fn one() -> u32 {
    1
}

/// Most layers, steps or micro-batches. Our choice.
const MOST: u32 = 100_000;

impl Generate for Experts {
    fn read_files(&mut self, folder: &Path) -> Result<(), Finding> {
        self.routing.read(folder).map_err(|error| error.within("routing"))
    }

    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let (hidden, moe) = self.checked(draft.ranks.count())?;
        let compute = draft.operation(Operation { name: "compute", ..Operation::default() });
        let n = draft.ranks.count();
        let last = vec![vec![Vec::new(); n]; self.micro_batches as usize];
        let sizes = ((n as u32, moe.experts), (self.tokens, moe.top_k));
        let measured = self.routing.measured(sizes.0, sizes.1).map_err(|error| error.within("routing"))?;
        let measured = measured.unwrap_or_default();
        if self.routing.file.is_some() && self.layers as usize > measured.len() {
            let text = format!(
                "expected at most {}, the layers of `routing.file`, found {}",
                measured.len(),
                self.layers
            );
            return Err(code::FIT.at("layers", text));
        }
        let known = BTreeMap::new();
        let mut layer =
            Layer { experts: self, hidden, moe, draft, compute, last, known, measured, dropped: 0 };
        // On queue pairs that micro-batches share, messages keep this order; one computation at a time makes it theirs, too.
        for (step, number) in
            (0..self.steps).flat_map(|step| (0..self.layers).map(move |layer| (step, layer)))
        {
            for back in [false, true] {
                for micro in 0..self.micro_batches {
                    layer.half(
                        Operation { step, layer: number, micro_batch: micro, ..Operation::default() },
                        back,
                    )?;
                }
            }
        }
        let dropped = layer.dropped;
        draft.warnings.extend(self.routing.doubts(draft.fabric.uplink(HostId(0)).rate));
        if dropped > 0 {
            let text = format!("`routing.capacity` drops {dropped} tokens of each GPU, summed over layers");
            draft.warnings.push(code::DROPPED_TOKENS.at("routing.capacity", text));
        }
        Ok(1)
    }
}

impl Experts {
    /// Width and experts of the model.
    fn checked(&self, ranks: usize) -> Result<(u64, Moe), Finding> {
        let model = self.model.model();
        let Some(moe) = model.moe else {
            return Err(code::NEEDS.at("model", "the model has no experts to divide"));
        };
        if ranks < 2 || !moe.experts.is_multiple_of(ranks as u64) {
            let text = format!("the {} experts cannot be divided among {ranks} GPUs", moe.experts);
            return Err(code::FIT
                .at("model", text)
                .with_help("`servers` and `gpus` choose the GPUs of the job"));
        }
        for (key, number) in
            [("layers", self.layers), ("steps", self.steps), ("micro-batches", self.micro_batches)]
        {
            if !(1..=MOST).contains(&number) {
                return Err(code::RANGE.at(key, format!("expected 1 to {MOST}, found {number}")));
            }
        }
        if !(u64::from(self.micro_batches)..=1 << 24).contains(&self.tokens) {
            let text = format!("expected {} to 2^24, found {}", self.micro_batches, self.tokens);
            return Err(code::RANGE.at("tokens", text));
        }
        for (key, time) in [("attention", self.compute.attention), ("experts", self.compute.experts)] {
            if time > LATEST {
                return Err(code::RANGE
                    .at(key, format!("expected at most {LATEST}, found {time}"))
                    .within("compute"));
            }
        }
        self.routing.check(Some(moe), ranks as u32).map_err(|error| error.within("routing"))?;
        Ok((model.hidden, moe))
    }
}

/// Lays the layers.
struct Layer<'l, 'd> {
    experts: &'l Experts,
    hidden: u64,
    moe: Moe,
    draft: &'l mut Draft<'d>,
    /// The operation of computations.
    compute: u32,
    /// By micro-batch and rank: what the next thing waits for.
    last: Vec<Vec<Vec<Event>>>,
    /// Exchanges so far.
    known: BTreeMap<(Call, Sent, bool), Rc<Planned>>,
    /// What ranks send in each layer, where that is measured.
    measured: Vec<Sent>,
    /// Tokens of a rank that experts had no room for.
    dropped: u64,
}

impl Layer<'_, '_> {
    /// A half of a layer of a micro-batch: attention and dispatch, or experts and combine.
    fn half(&mut self, operation: Operation, back: bool) -> Result<(), Finding> {
        let Experts { tokens, micro_batches, routing, compute, .. } = self.experts;
        let Operation { step, layer, micro_batch: micro, .. } = operation;
        let parts = (*micro_batches as usize, micro as usize);
        let mine = part(*tokens, parts.0, parts.1);
        let sent = match self.measured.get(layer as usize) {
            Some(sent) => sent.part(parts),
            None => {
                let (ranks, key) =
                    (self.draft.ranks.count() as u32, routing.key(self.draft.key, step, layer));
                let (sent, dropped) = routing.sent(self.moe, mine, ranks, key);
                self.dropped += if back { 0 } else { dropped };
                sent
            }
        };
        self.compute(if back { compute.experts } else { compute.attention }, micro)?;
        let name = if back { "combine" } else { "dispatch" };
        self.exchange(&sent, mine, back, Operation { name, dimension: "ep", ..operation })
    }

    /// Every GPU computes.
    fn compute(&mut self, time: Time, micro: u32) -> Result<(), Finding> {
        if time == Time::ZERO {
            return Ok(());
        }
        self.draft.reserve_tasks(self.draft.ranks.count() as u64, "layers")?;
        for rank in 0..self.draft.ranks.count() as u32 {
            let stream = self.draft.ranks.stream(rank, Stream::Compute);
            let number = self.draft.task(self.draft.ranks.node(rank), Work::On { stream, time });
            let made = &mut self.draft.outline.tasks[number as usize];
            (made.rank, made.role, made.operation) = (rank, Role::Compute, self.compute);
            let last = &mut self.last[micro as usize][rank as usize];
            for cause in std::mem::replace(last, vec![Event::Done(number)]) {
                self.draft.join(cause, Item::Task(number));
            }
        }
        Ok(())
    }

    /// Tokens go to their experts, or come back.
    fn exchange(&mut self, sent: &Sent, mine: u64, back: bool, operation: Operation) -> Result<(), Finding> {
        let Experts { routing, tuning, .. } = self.experts;
        let micro = operation.micro_batch as usize;
        let token = routing.token(self.hidden, back);
        let tuning = routing.tuning(tuning, token, back);
        let ranks: Vec<u32> = (0..self.draft.ranks.count() as u32).collect();
        let call = tuning.call(self.draft, Kind::AllToAll, sent.mean() * token, &ranks);
        let key = (call.map_err(|error| error.within("tuning"))?, sent.clone(), back);
        let planned = match self.known.get(&key) {
            Some(planned) => Rc::clone(planned),
            None => {
                let (call, path) = (key.0.clone(), self.draft.scene.path("routing"));
                let (memory, sizes) = (&mut *self.draft.memory, (token, mine, back));
                let planned = routing.planned(memory, &path, call, sent, sizes, self.moe);
                let planned = Rc::new(planned.map_err(|error| error.within("routing"))?);
                Rc::clone(self.known.entry(key).or_insert(planned))
            }
        };
        let pairs = planned.steps.min(self.moe.experts * ranks.len() as u64);
        self.draft.expect(planned.steps, pairs, "tokens")?;
        let communicator = tuning.communicator(Kind::AllToAll, ranks, 0, 0);
        let causes = std::mem::take(&mut self.last[micro]);
        let left = self.draft.collective(communicator, &planned, operation, causes)?;
        self.last[micro] = left.into_iter().map(|event| vec![event]).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
