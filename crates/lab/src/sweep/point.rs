//! A point as text for other machines, and its result.

use crate::failure::Failure;
use crate::fast::{Leave, Ready, own_code};
use crate::progress::Progress;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use results::Summary;
use results::table::Column;
use results::tables::flows;
use scenario::{Resolved, Source};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use xxhash_rust::xxh3::Xxh3;

/// The version that makes the results.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A point of a sweep with everything that its run needs on any machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Id of the run; equal ids mean equal results.
    pub id: String,
    /// Version of ropewalk that made the point; other versions refuse to run it.
    pub ropewalk: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Short description of the point for people.
    pub label: String,
    /// True if the sweep also keeps the flows.
    pub flows: bool,
    /// How much a fast run may leave out; left out to send everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast: Option<Leave>,
    /// The code of parts of one's own, as far as the program can tell; empty for a point without such parts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own: String,
    /// The resolved configuration, TOML.
    pub config: String,
}

impl Point {
    /// The point of a resolved scenario.
    pub fn new(resolved: &Resolved, flows: bool, fast: Option<Leave>) -> Self {
        let mut point = Point {
            id: String::new(),
            ropewalk: VERSION.to_owned(),
            scenario: resolved.name.clone(),
            label: String::new(),
            flows,
            fast,
            own: own_code(resolved),
            config: resolved.to_toml(),
        };
        point.id = point.hash();
        point
    }

    fn hash(&self) -> String {
        let flows = if self.flows { "flows" } else { "" };
        let fast = self.fast.as_ref().map_or_else(String::new, |leave| format!("fast {}", leave.tolerance));
        let mut of = vec![&*self.ropewalk, &self.scenario, flows, &self.config];
        of.extend(self.fast.is_some().then_some(&*fast));
        let own = format!("own{}", self.own);
        of.extend((!self.own.is_empty()).then_some(&*own));
        hash(&of)
    }

    /// The point as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the JSON of a point.
    ///
    /// # Errors
    /// If the text is no point, was changed after it was sent, or comes from another version.
    pub fn from_json(text: &str) -> Result<Self, Failure> {
        let point: Point = serde_json::from_str(text)
            .map_err(|e| Failure::Asked(format!("this is no point of a sweep: {e}")))?;
        if point.ropewalk != VERSION {
            return Err(Failure::Asked(format!(
                "point {} comes from ropewalk {}, but this is ropewalk {VERSION}: both ends need the same version",
                point.id, point.ropewalk
            )));
        }
        if point.hash() != point.id {
            return Err(Failure::Asked(format!(
                "point {} was changed after it was sent: its content does not match its id",
                point.id
            )));
        }
        Ok(point)
    }
}

/// 16 hexadecimal digits for a list of texts.
pub(super) fn hash(texts: &[&str]) -> String {
    let mut hash = Xxh3::new();
    for text in texts {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    format!("{:016x}", hash.digest())
}

/// The result of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointResult {
    /// The point's id.
    pub id: String,
    /// Version of ropewalk that ran the point.
    pub ropewalk: String,
    /// The reason why the simulation failed (exit code 3 of a run); empty if it did not fail.
    pub failure: String,
    /// `summary.json` of the run.
    pub summary: Summary,
    /// `flows.parquet` of the run with the column `id`, in base 64, if the sweep keeps flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<String>,
}

/// A result with a checksum.
#[derive(Serialize, Deserialize)]
struct Sealed {
    #[serde(flatten)]
    result: PointResult,
    checksum: String,
}

impl PointResult {
    /// XXH3 of the result's JSON.
    fn checksum(&self) -> String {
        hash(&[&serde_json::to_string(self).unwrap_or_default()])
    }

    /// The result as one line of JSON with a checksum.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_value(self).unwrap_or_default();
        text["checksum"] = self.checksum().into();
        text.to_string()
    }

    /// Reads the JSON of a result.
    ///
    /// # Errors
    /// The reason why the text is not the complete result of a point of this version.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let sealed: Sealed =
            serde_json::from_str(text).map_err(|e| format!("it is cut short or broken: {e}"))?;
        if sealed.result.checksum() != sealed.checksum {
            return Err("it is broken: its checksum does not fit".into());
        }
        if sealed.result.ropewalk != VERSION {
            return Err(format!("ropewalk {} made it, and this is {VERSION}", sealed.result.ropewalk));
        }
        Ok(sealed.result)
    }

    /// The Parquet file of its flows.
    pub(super) fn flows_file(&self) -> Option<Vec<u8>> {
        BASE64_STANDARD.decode(self.flows.as_ref()?).ok()
    }
}

/// Runs a point on `threads` threads. A failed simulation is a result, too.
///
/// # Errors
/// If the point cannot run on this machine, for example for lack of memory; [`Failure::Memory`]; [`Failure::Interrupted`].
pub fn run_point(
    point: &Point,
    threads: NonZeroUsize,
    progress: &Progress<'_>,
) -> Result<PointResult, Failure> {
    let file = match point.label.as_str() {
        "" => point.scenario.clone(),
        label => format!("{} at {label}", point.scenario),
    };
    let source = Source { name: point.scenario.clone(), ..Source::new(file, point.config.clone()) };
    let run = Ready::of(Resolved::of(&source, &[])?, point.fast.as_ref())?.run(Some(threads), progress)?;
    run.ran_to_its_end()?;
    // A part of one's own that fails near the end stops the run too late.
    if progress.stopped() {
        return Err(Failure::Interrupted);
    }
    let flows = match point.flows {
        true => {
            let table = flows::table(run.data());
            let id = std::iter::repeat_n(point.id.clone(), table.rows());
            let about = "id of the point, see points.parquet";
            Some(
                BASE64_STANDARD
                    .encode(table.with(Column::text("id", about, id)).to_parquet(&run.summary.digest)?),
            )
        }
        false => None,
    };
    Ok(PointResult {
        id: point.id.clone(),
        ropewalk: VERSION.to_owned(),
        failure: run.faults().join("; "),
        summary: run.summary,
        flows,
    })
}

/// Runs a point from its [`Point::to_json`] on one thread and returns [`PointResult::to_json`]. Schedulers send this call to
/// other processes and machines.
///
/// # Errors
/// If the text is no point of this version, or the point cannot run on this machine.
pub fn run_point_json(point: &str) -> Result<String, Failure> {
    let never = AtomicBool::new(false);
    Ok(run_point(&Point::from_json(point)?, NonZeroUsize::MIN, &Progress::silent(&never))?.to_json())
}
