//! Collectives as they are done, which many groups share.

use crate::footprint::MemoryBudget;
use collective::{After, Algorithm, Call, Protocol, Schedule, Step};
use finding::{Finding, code};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A collective as it is done.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Its algorithm, which is not `nccl`.
    pub(crate) algorithm: Algorithm,
    /// The call, with NCCL's choices.
    pub(crate) call: Call,
    /// NCCL's second choice, and by how many per cent it takes longer, if that is 10 at most.
    pub(crate) near_tie: Option<(Algorithm, Protocol, u8)>,
    /// Number of its steps.
    pub(crate) steps: u64,
    /// True if every step is one over the NVSwitch of a single server, for which all members must have entered.
    pub(crate) gated: bool,
    /// True if its steps can be made by sender, and are too many to be made without need.
    pub(crate) by_sender: bool,
    /// True if no algorithm makes its schedule, so that it has no closed form.
    pub(crate) own: bool,
    schedule: OnceCell<Schedule>,
    distinct: OnceCell<Vec<(Step, u64)>>,
}

/// Most steps of a schedule that stays in memory before it is laid out. Our choice.
const FEW_STEPS: usize = 10_000;

impl Planned {
    /// A collective whose algorithm makes this schedule.
    fn new(
        algorithm: Algorithm,
        call: Call,
        schedule: Schedule,
        near_tie: Option<(Algorithm, Protocol, u8)>,
    ) -> Self {
        let few = schedule.steps.len() <= FEW_STEPS;
        let mut planned = Self::with(algorithm, call, schedule);
        (planned.near_tie, planned.own) = (near_tie, false);
        if !few {
            planned.schedule = OnceCell::new();
        }
        planned
    }

    /// A collective with a schedule of its own.
    pub(crate) fn with(algorithm: Algorithm, call: Call, schedule: Schedule) -> Self {
        let entered = |after: &After| matches!(after, After::Entered(_));
        let single = call.servers.len() == 1 && schedule.steps.len() == call.ranks() as usize;
        let gated =
            single && schedule.steps.iter().all(|step| step.over_switch() && step.after.iter().all(entered));
        let (steps, distinct) = (schedule.steps.len() as u64, OnceCell::from(distinct(&schedule)));
        Planned {
            algorithm,
            call,
            near_tie: None,
            steps,
            gated,
            by_sender: false,
            own: true,
            schedule: OnceCell::from(schedule),
            distinct,
        }
    }

    /// A collective of so many steps, which are made when they are needed.
    fn later(
        algorithm: Algorithm,
        call: Call,
        steps: u64,
        near_tie: Option<(Algorithm, Protocol, u8)>,
    ) -> Self {
        let (schedule, distinct) = (OnceCell::new(), OnceCell::new());
        Planned {
            algorithm,
            call,
            near_tie,
            steps,
            gated: false,
            by_sender: true,
            own: false,
            schedule,
            distinct,
        }
    }

    /// All its steps.
    pub(crate) fn schedule(&self) -> &Schedule {
        // The algorithm has made this schedule before, so there is no error here.
        self.schedule.get_or_init(|| self.algorithm.schedule(&self.call).unwrap_or_default())
    }

    /// Its steps that differ by more than what they wait for, each with the number of its like.
    pub(crate) fn distinct(&self) -> &[(Step, u64)] {
        self.distinct.get_or_init(|| distinct(&self.algorithm.schedule(&self.call).unwrap_or_default()))
    }

    /// [`Planned::distinct`] of the members that send, if it is [`Planned::by_sender`].
    pub(crate) fn distinct_of(&self, sends: impl Fn(u32) -> bool) -> Vec<(Step, u64)> {
        self.algorithm.schedule_of(&self.call, sends).map_or_else(Vec::new, |made| distinct(&made))
    }
}

fn distinct(schedule: &Schedule) -> Vec<(Step, u64)> {
    let mut places = BTreeMap::new();
    let mut distinct: Vec<(Step, u64)> = Vec::new();
    for step in &schedule.steps {
        let own = step.data.end - step.data.start;
        let key = (step.from, step.to, step.channel, step.way as u8, own, step.bytes());
        let place = *places.entry(key).or_insert_with(|| {
            distinct.push((Step { after: Vec::new(), ..step.clone() }, 0));
            distinct.len() - 1
        });
        distinct[place].1 += 1;
    }
    distinct
}

/// The collectives so far, by algorithm and call.
#[derive(Debug, Default)]
pub(crate) struct Schedules(BTreeMap<(Algorithm, Call), Rc<Planned>>);

impl Schedules {
    /// The collective of a call; errors point at the key `algorithm`.
    pub(crate) fn of(
        &mut self,
        memory: &MemoryBudget,
        algorithm: Algorithm,
        call: &Call,
    ) -> Result<Rc<Planned>, Finding> {
        self.at("algorithm", memory, algorithm, call)
    }

    /// [`Schedules::of`] with errors that point at another key: the algorithm cannot do the collective, or it does not fit into
    /// memory.
    pub(crate) fn at(
        &mut self,
        key: &str,
        memory: &MemoryBudget,
        algorithm: Algorithm,
        call: &Call,
    ) -> Result<Rc<Planned>, Finding> {
        if let Some(planned) = self.0.get(&(algorithm, call.clone())) {
            return Ok(Rc::clone(planned));
        }
        let made = scheduled(memory, algorithm, call).map_err(|text| code::RANGE.at(key, text))?;
        let made = Rc::new(made);
        self.0.insert((algorithm, call.clone()), Rc::clone(&made));
        Ok(made)
    }
}

fn scheduled(memory: &MemoryBudget, algorithm: Algorithm, call: &Call) -> Result<Planned, String> {
    let near_tie = (algorithm == Algorithm::Nccl).then(|| collective::near_tie(call)).flatten();
    let (algorithm, call) = algorithm.resolve(call)?;
    memory.steps_fit(algorithm.least_steps(&call))?;
    if let Some(steps) = algorithm.steps(&call).filter(|steps| *steps > FEW_STEPS as u64) {
        memory.steps_fit(steps)?;
        return Ok(Planned::later(algorithm, call, steps, near_tie));
    }
    let schedule = algorithm.schedule(&call)?;
    Ok(Planned::new(algorithm, call, schedule, near_tie))
}
