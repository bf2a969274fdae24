//! Connection matrices of htsim.

use super::digest;
use super::draft::Draft;
use super::laid::Item;
use super::outline::Event;
use super::{Generate, QpUse};
use finding::{Finding, code};
use formats::htsim::{self, Flow, Matrix, Start, Trigger};
use formats::order::order;
use formats::read_text;
use model::{HostId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A connection matrix of htsim: flows that start at times, or when triggers fire. Host i of the file is NIC port i of the fabric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Htsim {
    /// The file (`.cm`): a path relative to the scenario's file. No default.
    pub file: String,
    /// Whether to refuse triggers that start a flow at another host than the one where they fire. Such a trigger goes
    /// there as a message of 1 B. Default false (our choice).
    #[serde(default)]
    pub strict: bool,
    /// Unit of `start` in lines with `msg`: `"ps"`, or `"us"` (uet-htsim with `-conn_reuse`). Default `"ps"` (our choice,
    /// as in all other lines).
    #[serde(default)]
    pub msg_start: Unit,
    /// Digest of the file, which the results record. A scenario with a digest refuses a file that has changed. Default: the digest of
    /// the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The matrix, once the file is read.
    #[serde(skip)]
    matrix: Option<Arc<Matrix>>,
}

/// Unit of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Picoseconds.
    #[default]
    Ps,
    /// Microseconds.
    Us,
}

impl Generate for Htsim {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let Some(matrix) = &self.matrix else {
            return Err(code::FILE.at("file", format!("{} was not read", self.file)));
        };
        let hosts = draft.fabric.hosts();
        if matrix.nodes as usize > hosts {
            let text = format!("{} has {} nodes; the fabric has {hosts} NIC ports", self.file, matrix.nodes);
            return Err(code::FIT.at("file", text));
        }
        if matrix.flows.is_empty() {
            return Err(code::CONTENT.at("file", format!("{} has no flows", self.file)));
        }
        let starts = self.starts(matrix)?;
        self.refuse_cycles(matrix, &starts)?;
        self.warn(matrix, draft);
        let flows = matrix.flows.len() as u64;
        let signals = starts.iter().filter(|start| !start.is_local(matrix)).count() as u64;
        draft.reserve(flows + signals, flows + signals, "file")?;
        self.lay(matrix, &starts, draft)
    }

    fn read_files(&mut self, folder: &Path) -> Result<(), Finding> {
        let path = folder.join(&self.file);
        let name = path.display().to_string();
        let text = read_text("htsim", &path, &name)?;
        let matrix = htsim::read(&name, &text)?;
        digest::keep(&mut self.digest, &self.file, digest::of(&text))?;
        self.matrix = Some(Arc::new(matrix));
        Ok(())
    }

    /// A queue pair for every flow, as in htsim; lines with `msg` share those of their ids.
    fn usual_qp(&self) -> QpUse {
        QpUse::PerMessage
    }
}

/// A flow that starts another flow.
#[derive(Clone, Copy, Debug)]
struct Cause {
    flow: usize,
    /// True for the event at the receiver.
    received: bool,
    effect: usize,
}

impl Cause {
    /// The host at which the cause ends.
    fn host(self, matrix: &Matrix) -> u32 {
        let Flow { from, to, .. } = matrix.flows[self.flow];
        if self.received { to } else { from }
    }

    fn is_local(self, matrix: &Matrix) -> bool {
        self.host(matrix) == matrix.flows[self.effect].from
    }
}

impl Htsim {
    /// Who starts whom.
    fn starts(&self, matrix: &Matrix) -> Result<Vec<Cause>, Finding> {
        let mut causes: BTreeMap<u64, Vec<(usize, bool)>> = BTreeMap::new();
        let mut effects: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (i, flow) in matrix.flows.iter().enumerate() {
            for (trigger, received) in [(flow.send_done, false), (flow.recv_done, true)] {
                if let Some(trigger) = trigger {
                    causes.entry(trigger).or_default().push((i, received));
                }
            }
            if let Start::On(trigger) = flow.start {
                effects.entry(trigger).or_default().push(i);
            }
        }
        let mut starts = Vec::new();
        for (id, effects) in effects {
            let causes = causes.remove(&id).unwrap_or_default();
            let wrong = |text: String| {
                let line = matrix.flows[effects[0]].line;
                let at = format!("{}: trigger {id}, which starts the flow of line {line}", self.file);
                Err(code::CONTENT.at("file", format!("{at}, {text}")))
            };
            let number = causes.len();
            let needed = match matrix.triggers[&id] {
                Trigger::Oneshot => 1,
                Trigger::Barrier(count) => count,
                Trigger::Multishot => effects.len() as u64,
            };
            if (number as u64) < needed {
                return wrong(format!("needs {needed} activations and gets {number}, so flows never start"));
            }
            if matrix.triggers[&id] == Trigger::Multishot {
                let pairs = causes.iter().zip(&effects);
                starts.extend(pairs.map(|(&(flow, received), &effect)| Cause { flow, received, effect }));
                continue;
            }
            if number as u64 > needed {
                return wrong(format!("gets {number} activations and allows {needed}"));
            }
            for &effect in &effects {
                starts.extend(causes.iter().map(|&(flow, received)| Cause { flow, received, effect }));
            }
        }
        if let Some(far) = starts.iter().find(|start| self.strict && !start.is_local(matrix)) {
            let (cause, effect) = (&matrix.flows[far.flow], &matrix.flows[far.effect]);
            let text = format!(
                "{}: the flow of line {} ends at host {}, and starts the flow of line {} at host {}",
                self.file,
                cause.line,
                far.host(matrix),
                effect.line,
                effect.from
            );
            return Err(code::CONTENT
                .at("file", text)
                .with_help("with `strict = false`, a message of 1 B starts it"));
        }
        Ok(starts)
    }

    /// Refuses flows that wait for each other, by triggers or by the order of a connection.
    fn refuse_cycles(&self, matrix: &Matrix, starts: &[Cause]) -> Result<(), Finding> {
        let mut edges: Vec<(u32, u32)> = starts.iter().map(|s| (s.flow as u32, s.effect as u32)).collect();
        let mut last: BTreeMap<u64, u32> = BTreeMap::new();
        for (i, flow) in (0..).zip(&matrix.flows).filter(|(_, flow)| flow.message) {
            edges.extend(last.insert(flow.id.unwrap_or(0), i).map(|before| (before, i)));
        }
        let Err(cycle) = order(matrix.flows.len(), &edges) else { return Ok(()) };
        let first = cycle.first().map(|&e| edges[e].0);
        let flows = cycle.iter().map(|&e| edges[e].0).chain(first);
        let lines = flows.map(|i| format!("line {}", matrix.flows[i as usize].line)).collect();
        let text = format!("flows of {} wait for each other: {}", self.file, formats::goal::chain(lines));
        Err(code::CYCLE.at("file", text))
    }

    fn warn(&self, matrix: &Matrix, draft: &mut Draft<'_>) {
        let file = &self.file;
        for (key, number) in &matrix.ignored {
            let text = format!("`{key}` has no effect on the flows of {file}: {number}");
            draft.warnings.push(code::NO_EFFECT.at("file", text));
        }
        if matrix.failures > 0 {
            let number = matrix.failures;
            let text = format!("failures of {file} that are left out: {number}; `[[failure]]` states them");
            draft.warnings.push(code::LEFT_OUT.at("file", text));
        }
        if self.msg_start == Unit::Ps && matrix.flows.iter().any(|f| f.message && f.start != Start::At(0)) {
            let text = format!(
                "`start` counts picoseconds in the `msg` lines of {file}; uet-htsim with `-conn_reuse` reads microseconds, as \
                 `msg-start = \"us\"` does"
            );
            draft.warnings.push(code::READ_AS.at("msg-start", text));
        }
        let uses = |id: &u64| matrix.flows.iter().filter(|flow| flow.start == Start::On(*id)).count();
        let many = matrix.triggers.iter().filter(|(_, t)| **t == Trigger::Multishot);
        if let Some((id, _)) = many.into_iter().find(|(id, _)| uses(id) > 1) {
            let text = format!(
                "multishot triggers of {file}, such as {id}: the n-th flow that fires a trigger starts its n-th flow, both in the \
                 order of the file, which may differ from the order of time"
            );
            draft.warnings.push(code::READ_AS.at("file", text));
        }
    }

    fn lay(&self, matrix: &Matrix, starts: &[Cause], draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let mut messages = Vec::with_capacity(matrix.flows.len());
        let mut connections: BTreeMap<Option<u64>, u32> = BTreeMap::new();
        let mut begun: BTreeMap<(u32, u64), u64> = BTreeMap::new();
        for flow in &matrix.flows {
            if flow.size > 1 << 50 {
                let text = format!(
                    "{}: line {}: expected at most 1 PiB, found {} B",
                    self.file, flow.line, flow.size
                );
                return Err(code::CONTENT.at("file", text));
            }
            let start = match flow.start {
                Start::At(us) if flow.message && self.msg_start == Unit::Us => us.saturating_mul(1_000_000),
                Start::At(ps) => ps,
                Start::On(_) => 0,
            };
            // A host begins its flows in the order of the file, as htsim does: a picosecond lies between two.
            let before = begun.entry((flow.from, start)).or_insert(0_u64);
            let start = start.saturating_add(if matches!(flow.start, Start::At(_)) { *before } else { 0 });
            *before += 1;
            let message = draft.send_at(0, HostId(flow.from), HostId(flow.to), flow.size, Time(start));
            if flow.message {
                let next = connections.len() as u32 + 1;
                let made = &mut draft.outline.messages[message as usize];
                (made.fresh_qp, made.lane) = (false, *connections.entry(flow.id).or_insert(next));
            }
            messages.push(message);
        }
        let mut signals: BTreeMap<(usize, bool, u32), u32> = BTreeMap::new();
        for start in starts {
            let cause = match start.received {
                true => Event::Received(messages[start.flow]),
                false => Event::Acked(messages[start.flow]),
            };
            let effect = Item::Message(messages[start.effect]);
            if start.is_local(matrix) {
                draft.join(cause, effect);
                continue;
            }
            let host = matrix.flows[start.effect].from;
            let key = (start.flow, start.received, host);
            let signal = match signals.get(&key) {
                Some(&signal) => signal,
                None => {
                    let signal = draft.send(0, HostId(start.host(matrix)), HostId(host), 1);
                    draft.join(cause, Item::Message(signal));
                    signals.insert(key, signal);
                    signal
                }
            };
            draft.join(Event::Received(signal), effect);
        }
        if !signals.is_empty() {
            let text = format!(
                "triggers of {} that fire at another host than the one that they start: {}; a message of 1 B goes from host to \
                 host for each, and counts as a flow",
                self.file,
                signals.len()
            );
            draft.warnings.push(code::READ_AS.at("file", text));
        }
        Ok(1)
    }
}
