//! Order of the forward and backward passes of a pipeline stage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schedule of a pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// One forward, one backward.
    #[default]
    #[serde(rename = "1f1b")]
    OneForwardOneBackward,
    /// All forwards, then all backwards.
    Gpipe,
    /// One forward, one backward, with so many parts of the model on each stage.
    Interleaved(u32),
}

/// A pass of a micro-batch over a part of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) forward: bool,
    pub(super) micro: u32,
    /// Part of the model on the stage, counted from 0.
    pub(super) part: u32,
}

impl Schedule {
    /// Parts of the model on each stage.
    pub(super) fn parts(self) -> u32 {
        match self {
            Schedule::Interleaved(parts) => parts,
            _ => 1,
        }
    }

    /// The passes of stage `stage` of `stages`, in their order.
    pub(super) fn passes(self, stage: u32, stages: u32, micros: u32) -> Vec<Pass> {
        let parts = self.parts();
        let all = micros * parts;
        let warm = match self {
            Schedule::OneForwardOneBackward => stages - 1 - stage,
            Schedule::Gpipe => all,
            // Megatron-LM's order.
            Schedule::Interleaved(_) => 2 * (stages - stage - 1) + (parts - 1) * stages,
        };
        let warm = warm.min(all);
        let pass = |forward: bool, number: u32| {
            let (round, place) = (number / (stages * parts), number % (stages * parts));
            let part = place / stages;
            match self {
                Schedule::Interleaved(_) => Pass {
                    forward,
                    micro: round * stages + place % stages,
                    part: if forward { part } else { parts - 1 - part },
                },
                _ => Pass { forward, micro: number, part: 0 },
            }
        };
        let mut passes: Vec<Pass> = (0..warm).map(|i| pass(true, i)).collect();
        for i in 0..all - warm {
            passes.extend([pass(true, warm + i), pass(false, i)]);
        }
        passes.extend((all - warm..all).map(|i| pass(false, i)));
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schedule_has_each_pass_once_and_forwards_before_backwards() {
        for (schedule, micros) in
            [(Schedule::OneForwardOneBackward, 5), (Schedule::Gpipe, 5), (Schedule::Interleaved(3), 8)]
        {
            for stage in 0..4 {
                let passes = schedule.passes(stage, 4, micros);
                assert_eq!(passes.len() as u32, 2 * micros * schedule.parts());
                for micro in 0..micros {
                    for part in 0..schedule.parts() {
                        let at = |forward| {
                            passes.iter().position(|&p| p == Pass { forward, micro, part }).unwrap()
                        };
                        assert!(at(true) < at(false), "{schedule:?}, stage {stage}, micro-batch {micro}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_last_stage_alternates_from_the_start() {
        let passes = Schedule::OneForwardOneBackward.passes(3, 4, 3);
        assert!(passes.iter().map(|pass| pass.forward).eq([true, false, true, false, true, false]));
    }
}
