//! Speed of computation: formulas with rates, or tables of measured times.

use crate::values::{ByteRate, Flops};
use files::file::{self, Reading};
use finding::{Finding, code};
use formats::requests::times::{self, Timed};
use model::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serving::compute::{Curve, Decode, Prefill, Step};
use serving::kv::Kv;
use serving::models::Model;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Speed of prefills: either `flops` or `table`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PrefillCompute {
    /// Operations per second that a GPU attains, such as `"400TFLOPS"`. A prompt of n tokens, p of them cached, has `2 P (n - p) + 2 L d
    /// (n^2 - p^2)` operations for P active parameters, L layers and width d. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<Flops>,
    /// File of measured times of an instance, a path relative to the scenario's file: CSV with `tokens`, `cached` (0) and `ms`. Times are
    /// linear between rows, and beyond the last two as between them; a known start of a prompt saves its own time. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    #[serde(skip)]
    read: Option<Arc<Vec<Timed>>>,
}

/// Speed of decoding: either `hbm` or `table`. By `hbm`, a step reads the weights that a token uses, and the KV of all its requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DecodeCompute {
    /// Bandwidth of a GPU's memory, such as `"3.35TB/s"`. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hbm: Option<ByteRate>,
    /// Share of this bandwidth that decoding attains, above 0 and at most 1. Default 0.6 (assumed).
    #[serde(default = "share")]
    pub share: f64,
    /// Bytes of a parameter. Default 2 B (BF16).
    #[serde(default = "two")]
    pub weight: Bytes,
    /// File of measured steps of an instance: CSV with `batch` (requests of the step), `context` (their mean tokens) and `ms`. Times are
    /// linear in the context between rows of one batch, then in the batch, and beyond the last two as between them. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Least time of a step, for launches and communication inside the server. Default 0 (our choice).
    #[serde(default)]
    pub floor: Time,
    #[serde(skip)]
    read: Option<Arc<Vec<Timed>>>,
}

fn share() -> f64 {
    0.6
}

fn two() -> Bytes {
    Bytes(2)
}

/// The rows of a table.
fn rows(
    folder: &Path,
    table: &str,
    read: fn(&str, &str) -> Result<Vec<Timed>, Finding>,
) -> Result<Arc<Vec<Timed>>, Finding> {
    let path = folder.join(table);
    let name = path.display().to_string();
    let text = file::read(&path, Reading::import(8)).map_err(|e| code::FILE.at("table", e.about(&name)))?;
    read(&name, &text).map(Arc::new)
}

/// Refuses both or neither of two keys.
fn one_of(keys: [(&str, bool); 2]) -> Result<(), Finding> {
    let [(one, has_one), (other, has_other)] = keys;
    match (has_one, has_other) {
        (true, true) => Err(code::CONFLICT.at(other, format!("set either `{one}` or `{other}`, not both"))),
        (false, false) => Err(code::MISSING.at("", format!("expected `{one}` or `{other}`, found neither"))),
        _ => Ok(()),
    }
}

impl PrefillCompute {
    pub(super) fn read(&mut self, folder: &Path) -> Result<(), Finding> {
        if let Some(table) = &self.table {
            self.read = Some(rows(folder, table, times::prefills)?);
        }
        Ok(())
    }

    /// Whether times are measured.
    pub(super) fn is_measured(&self) -> bool {
        self.table.is_some()
    }

    /// The compute model of an instance of `tp` GPUs.
    pub(super) fn model(&self, model: &Model, tp: u64) -> Result<Prefill, Finding> {
        one_of([("flops", self.flops.is_some()), ("table", self.table.is_some())])?;
        let Some(flops) = self.flops else {
            let rows = self.read.as_ref().map_or(&[][..], |rows| rows);
            if rows.iter().any(|row| row.1 > 0) {
                let text = "expected rows with `cached` 0; a known start saves the time of its own tokens";
                return Err(code::CONTENT.at("table", text));
            }
            return Ok(Prefill::Table(Curve::new(rows.iter().map(|row| (row.0, Time(row.2))))));
        };
        Ok(Prefill::Formula(*model, flops.0.saturating_mul(u128::from(tp))))
    }
}

impl DecodeCompute {
    pub(super) fn read(&mut self, folder: &Path) -> Result<(), Finding> {
        if let Some(table) = &self.table {
            self.read = Some(rows(folder, table, times::steps)?);
        }
        Ok(())
    }

    /// The compute model of an instance of `tp` GPUs.
    pub(super) fn model(&self, model: &Model, kv: &Kv, tp: u64) -> Result<Decode, Finding> {
        one_of([("hbm", self.hbm.is_some()), ("table", self.table.is_some())])?;
        if !(self.share > 0.0 && self.share <= 1.0) {
            let text = format!("expected a share above 0 and at most 1, found {}", self.share);
            return Err(code::RANGE.at("share", text));
        }
        let step = match self.hbm {
            Some(hbm) => Step::Formula {
                weights: model.active.saturating_mul(self.weight.get()),
                token: kv.token(tp),
                bandwidth: (hbm.0.saturating_mul(u128::from(tp)) as f64 * self.share) as u128,
            },
            None => {
                let mut curves: BTreeMap<u64, Vec<(u64, Time)>> = BTreeMap::new();
                for &(batch, context, ps) in self.read.as_ref().map_or(&[][..], |rows| rows) {
                    curves.entry(batch).or_default().push((context, Time(ps)));
                }
                Step::Table(curves.into_iter().map(|(batch, points)| (batch, Curve::new(points))).collect())
            }
        };
        Ok(Decode { step, floor: self.floor })
    }

    /// Whether times are measured.
    pub(super) fn is_measured(&self) -> bool {
        self.table.is_some()
    }
}
