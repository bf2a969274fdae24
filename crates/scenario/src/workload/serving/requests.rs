//! Requests: from a trace, or at random times.

use crate::rounded::exponential;
use crate::values::LATEST;
use crate::workload::cdf::Cdf;
use crate::workload::digest;
use files::file::{self, Reading};
use finding::{Finding, code};
use formats::requests::{self, BLOCK, Format};
use model::draw::{Key, scaled};
use model::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serving::spec::Request;
use std::path::Path;
use std::sync::Arc;

/// Requests from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Trace {
    /// The file: a path relative to the scenario's file. No default.
    pub file: String,
    /// Its format: `"mooncake"` (lines of JSON), `"azure"` (CSV, 2023 and 2024) or `"burstgpt"` (CSV). No default.
    pub format: TraceFormat,
    /// Part of the trace, from its first request on: `["0s", "300s"]`; the second time is outside. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<[Time; 2]>,
    /// Factor of the rate of requests: 2 halves all times between them. Default 1 (our choice).
    #[serde(default = "one")]
    pub rate: f64,
    /// Every request comes up to so much later than the file says, by a draw of the seed, before `rate` counts. Default: the usual step
    /// between times, if most requests of the file share their time with another one, else 0 (our choice: a trace that rounds its times
    /// makes bursts that never were).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Time>,
    /// Digest of the file, which the results record. A scenario with a digest refuses a file that has changed. Default: the digest of
    /// the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The requests, once the file is read.
    #[serde(skip)]
    read: Option<Arc<requests::Trace>>,
}

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// Mooncake's traces.
    Mooncake,
    /// Azure's traces.
    Azure,
    /// BurstGPT.
    Burstgpt,
}

/// Requests that come at random times, independently of one another (a Poisson process).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Arrivals {
    /// Requests per second. No default.
    pub rate: f64,
    /// Number of requests. No default.
    pub count: u64,
    /// Tokens of a prompt: a number, `{ min, max }`, or rows of a number and the percentage of prompts that are at most that long, such as
    /// `[[100, 0], [8000, 90], [32000, 100]]`. No default.
    pub input: Tokens,
    /// Tokens of an answer, as for `input`. No default.
    pub output: Tokens,
}

/// Numbers of tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Tokens {
    /// Always the same.
    Fixed(u64),
    /// Spread evenly between two limits.
    Between(Span),
    /// Rows of a number and a percentage, linear between rows.
    Points(Vec<(u64, f64)>),
}

/// Limits of a number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Span {
    /// Smallest. No default.
    pub min: u64,
    /// Largest. No default.
    pub max: u64,
}

fn one() -> f64 {
    1.0
}

/// Most requests of a run (our choice: each takes less than a kilobyte).
const MOST: u64 = 10_000_000;
/// Most tokens of a request (our choice).
const MOST_TOKENS: u64 = 100_000_000;

/// Requests as they are served, and what was doubtful.
pub(super) struct Coming {
    pub(super) requests: Vec<Request>,
    pub(super) prefix_block: u64,
    pub(super) findings: Vec<Finding>,
}

impl Trace {
    pub(super) fn read(&mut self, folder: &Path) -> Result<(), Finding> {
        let path = folder.join(&self.file);
        let name = path.display().to_string();
        let text =
            file::read(&path, Reading::import(8)).map_err(|e| code::FILE.at("file", e.about(&name)))?;
        let format = match self.format {
            TraceFormat::Mooncake => Format::Mooncake,
            TraceFormat::Azure => Format::Azure,
            TraceFormat::Burstgpt => Format::BurstGpt,
        };
        let trace = requests::read(format, &name, &text)?;
        digest::keep(&mut self.digest, &self.file, digest::of(&text))?;
        self.read = Some(Arc::new(trace));
        Ok(())
    }

    /// Whether its prompts have ids of blocks.
    pub(super) fn has_blocks(&self) -> bool {
        self.read.as_ref().is_some_and(|trace| trace.has_blocks())
    }

    /// The requests of a job that starts at a time, by draws of its key.
    pub(super) fn coming(&self, key: Key, start: Time) -> Result<Coming, Finding> {
        let Some(trace) = &self.read else {
            return Err(code::FILE.at("file", format!("{} was not read", self.file)));
        };
        let rate = above_0(self.rate, "rate")?;
        let mut findings = Vec::new();
        let shared = trace.step_of_shared_times();
        let spread = self.spread.unwrap_or(Time(shared.unwrap_or(0)));
        if let (Some(step), None) = (shared, self.spread) {
            let text = format!(
                "{} requests of {} have only {} different times, so each is moved by up to {}, the usual step between them",
                trace.requests.len(),
                self.file,
                trace.times(),
                Time(step)
            );
            findings.push(
                code::READ_AS
                    .at("file", text)
                    .with_help("set `spread` to choose, and to \"0s\" to play bursts"),
            );
        }
        if trace.failed > 0 {
            let all = trace.requests.len() as u64 + trace.failed;
            let text = format!(
                "of {all} requests of {}, {} without tokens in or out are left out",
                self.file, trace.failed
            );
            findings.push(code::LEFT_OUT.at("file", text));
        }
        let [from, to] = self.window.unwrap_or([Time::ZERO, Time::NEVER]);
        if from >= to {
            return Err(
                code::RANGE.at("window", format!("expected a start before the end, found {from} to {to}"))
            );
        }
        let mut requests = Vec::new();
        let late = later(&trace.requests, key, spread);
        for (request, late) in trace.requests.iter().zip(late) {
            if request.at < from.ps() || request.at >= to.ps() {
                continue;
            }
            let after = (request.at - from.ps()).saturating_add(late);
            let at = at(start, after as f64 / rate, "rate")?;
            let (input, output, blocks) = (request.input, request.output, request.blocks.clone());
            requests.push(Request { at, input, output, blocks });
        }
        if requests.is_empty() {
            return Err(match self.window {
                Some(_) => {
                    let text = format!("{} has no requests from {from} to {to}", self.file);
                    code::CONTENT.at("window", text)
                }
                None => code::CONTENT.at("file", format!("{} has no requests", self.file)),
            });
        }
        requests.sort_by_key(|request| request.at);
        Ok(Coming { requests, prefix_block: BLOCK, findings })
    }
}

impl Arrivals {
    pub(super) fn coming(&self, key: Key, start: Time) -> Result<Coming, Finding> {
        let rate = above_0(self.rate, "rate")?;
        if !(1..=MOST).contains(&self.count) {
            return Err(code::RANGE.at("count", format!("expected 1 to {MOST}, found {}", self.count)));
        }
        let (input, output) = (self.input.cdf("input")?, self.output.cdf("output")?);
        let mut after = 0.0;
        let request = |i: u64| {
            after += exponential(key.draw2(i, 0)) / rate * 1e12;
            let (input, output) = (input.size(key.draw2(i, 1)), output.size(key.draw2(i, 2)));
            Ok(Request { at: at(start, after, "rate")?, input, output, blocks: Vec::new() })
        };
        let requests = (0..self.count).map(request).collect::<Result<_, Finding>>()?;
        Ok(Coming { requests, prefix_block: BLOCK, findings: Vec::new() })
    }
}

impl Tokens {
    fn cdf(&self, key: &str) -> Result<Cdf, Finding> {
        let points: Vec<(Bytes, f64)> = match self {
            Tokens::Fixed(tokens) => vec![(Bytes(*tokens), 100.0)],
            Tokens::Between(Span { min, max }) => vec![(Bytes(*min), 0.0), (Bytes(*max), 100.0)],
            Tokens::Points(points) => points.iter().map(|(tokens, share)| (Bytes(*tokens), *share)).collect(),
        };
        if let Some((tokens, _)) =
            points.iter().find(|(tokens, _)| !(1..=MOST_TOKENS).contains(&tokens.get()))
        {
            let text = format!("expected 1 to {MOST_TOKENS} tokens, found {}", tokens.get());
            return Err(code::RANGE.at(key, text));
        }
        // The text of such an error speaks of bytes.
        let wrong = |_| {
            let text = "expected numbers of tokens and percentages that never decrease, up to 100";
            code::RANGE.at(key, text)
        };
        Cdf::new(&points).map_err(wrong)
    }
}

/// How much later each request comes. Requests that share their time keep their order, because a prompt may continue another one.
fn later(requests: &[requests::Request], key: Key, spread: Time) -> Vec<u64> {
    let mut all: Vec<u64> =
        (0..requests.len() as u64).map(|i| scaled(key.draw(i), spread.ps().saturating_add(1))).collect();
    let mut rest = &mut all[..];
    for shared in requests.chunk_by(|a, b| a.at == b.at) {
        let (mine, others) = rest.split_at_mut(shared.len());
        mine.sort_unstable();
        rest = others;
    }
    all
}

fn above_0(number: f64, key: &str) -> Result<f64, Finding> {
    match number > 0.0 && number.is_finite() {
        true => Ok(number),
        false => Err(code::RANGE.at(key, format!("expected a number above 0, found {number}"))),
    }
}

/// The time so many picoseconds after a start.
fn at(start: Time, after: f64, key: &str) -> Result<Time, Finding> {
    let at = start.ps() as f64 + after;
    match at < LATEST.ps() as f64 {
        true => Ok(Time(at as u64)),
        false => Err(code::RANGE.at(key, format!("expected requests before {LATEST}, found one after"))),
    }
}
