//! Counts of trials.

use crate::draft::Draft;
use crate::trial::Fault;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Counts of trials, and the rules that were broken.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// Scenarios that ran on all engines, with all rules kept.
    pub scenarios: u64,
    /// Scenarios whose runs were too long and were given up.
    pub too_long: u64,
    /// Scenarios refused with an error that names its place.
    pub refused: u64,
    /// Scenarios with mistakes in their text.
    pub damaged: u64,
    /// Files of other tools with mistakes.
    pub imports: u64,
    /// Trials of the program: signals, little memory, damaged results.
    pub commands: u64,
    /// Parts and how many scenarios ran with each: the table of the part, then its name. Under `events`, how many scenarios
    /// had such an event.
    pub parts: BTreeMap<String, BTreeMap<String, u64>>,
    /// Broken rules.
    pub broken: Vec<Broken>,
}

/// A broken rule, with the first trial that broke it.
#[derive(Clone, Debug, Serialize)]
pub struct Broken {
    /// The rule.
    pub rule: String,
    /// What was found.
    pub detail: String,
    /// Number of the trial.
    pub trial: u64,
    /// Number of trials that broke the rule.
    pub times: u64,
    /// The smallest scenario that breaks the rule, or the steps of the trial.
    pub text: String,
    /// True if the text is a scenario, which `ropewalk-workshop fuzz FILE` runs again.
    pub is_scenario: bool,
}

/// Tables with one part each.
const PARTS: [&str; 5] = ["topology", "scheme", "feedback", "nic.transport", "nic.congestion"];

impl Tally {
    /// Counts a scenario that ran, and the kinds of events in it.
    pub(crate) fn ran(&mut self, draft: &Draft, events: &[&str]) {
        self.scenarios += 1;
        let mut count = |table: &str, name: &str| {
            *self.parts.entry(table.to_owned()).or_default().entry(name.to_owned()).or_default() += 1;
        };
        for table in PARTS {
            let mut keys = table.split('.');
            let first = keys.next().and_then(|key| draft.0.get(key));
            let value = keys.fold(first, |value, key| value?.get(key));
            value.and_then(Json::as_object).into_iter().flatten().for_each(|(name, _)| count(table, name));
        }
        events.iter().for_each(|event| count("events", event));
        for job in draft.0.get("workload").and_then(Json::as_array).into_iter().flatten() {
            let kinds = job.as_object().into_iter().flatten().filter(|(_, value)| value.is_object());
            kinds.for_each(|(name, _)| count("workload", name));
        }
        for table in ["failure", "links", "record", "switch", "class", "switch-role", "compat"] {
            if draft.0.get(table).is_some_and(|value| value.as_object().is_none_or(|keys| !keys.is_empty())) {
                count("other", table);
            }
        }
    }

    /// The entry of a rule, if a trial has broken it.
    pub(crate) fn known(&mut self, fault: &Fault) -> Option<&mut Broken> {
        self.broken.iter_mut().find(|broken| broken.rule == fault.rule)
    }

    /// Number of all trials.
    pub fn trials(&self) -> u64 {
        self.scenarios + self.too_long + self.damaged + self.imports + self.commands
    }
}
