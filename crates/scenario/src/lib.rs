//! Scenarios: TOML in, a checked [`Plan`] out, with the schemes and NICs that it runs with.
//!
//! ```text
//! Source (text) + --set  ->  Scenario (1:1 with the TOML)  ->  Checked { plan, schemes, nics, ... }
//! ```
//!
//! The doc comment of every key states its meaning, unit, default and the source of the default; the JSON Schema and
//! [`Checked::annotated`] print it. A mistake is an [`Finding`] with file, line, column and the nearest right word.
//!
//! | file | content |
//! |---|---|
//! | `find`, `source`, [`builtin`] | scenarios from files and built-in ones |
//! | `document`, `overlay`, `arrays` | TOML with `--set` changes on top, and the position of every key |
//! | [`config`] | [`Scenario`]: the keys of a scenario |
//! | [`values`] | types of single values: `on`/`off` or settings, shares, probabilities |
//! | [`switch`] | `[switch]`: buffers, PFC, marking |
//! | [`hardware`] | `nic.model`, `nic.nccl`, `switch.model`: published figures of NICs and switches, with their sources |
//! | [`classes`] | `switch.classes`: the priority classes of every port |
//! | [`topology`] | `[topology.NAME]`: one file per topology |
//! | [`failure`] | `[[failure]]` and `[routing]`: links and switches that fail |
//! | [`loss`] | `[[links.lose]]`: packets lost on purpose |
//! | [`workload`] | `[[workload]]`: one file per kind |
//! | [`record`], [`tap`] | `[record]`: time series, packet events, captures |
//! | `resolve` | defaults that depend on other keys |
//! | [`placement`] | the servers of a job, and slow ones |
//! | `plan`, `wait` | the plan of a scenario; what its senders wait for |
//! | `rules` | what every plan must meet: one file per rule |
//! | [`program`] | ranks whose messages a program posts |
//! | `telemetry` | space for telemetry on the wire |
//! | `parts`, `own_nic` | the schemes and NICs of a plan |
//! | [`traffic`] | what workloads send, counted without a plan of every message |
//! | `footprint` | estimate of the memory that a run needs |
//! | [`ideal`] | completion time of a flow alone on the fabric |
//! | [`candidates`] | what NCCL compares for a collective on a described cluster, with times by closed form |
//! | `check` | all steps from a source to a [`Checked`] scenario |
//! | `show`, `schema` | a scenario as TOML with comments; JSON Schemas |
//! | [`sheet`] | tiers, thresholds and parts of a fabric |
//! | `sourced` | single settings with the sources of their values |
//! | [`mod@sweep`] | one scenario at many points: axes and seeds |
//! | [`import`] | scenarios from files of other tools |
//! | `table_file` | files of other commands, with the messages of scenarios |

pub mod builtin;
pub mod candidates;
mod cbfc;
mod check;
pub mod classes;
pub mod config;
mod document;
pub mod dscp;
mod dscp_classes;
pub mod failure;
mod find;
mod footprint;
pub mod hardware;
pub mod headroom;
pub mod ideal;
pub mod import;
#[cfg(test)]
mod ledger;
pub mod loss;
pub mod nccl;
mod nodes;
mod noise;
pub mod outlined;
mod overlay;
mod own_nic;
mod parts;
pub mod placement;
mod plan;
pub mod program;
pub mod reader;
mod receive;
mod record;
mod resolve;
pub mod rounded;
mod rules;
mod schema;
pub mod server;
pub mod sheet;
mod show;
pub mod sonic;
mod source;
mod sourced;
pub mod sweep;
pub mod switch;
mod table_file;
pub mod tap;
mod telemetry;
pub mod terminal;
mod toml_text;
pub mod topology;
pub mod traffic;
pub mod values;
mod vendor;
mod wait;
mod watchdog;
pub mod workload;

pub use check::{Checked, Resolved, Survey};
pub use config::Scenario;
pub use files::room::amount;
pub use files::{file, room};
pub use find::find;
pub use finding::{Code, Finding, Place, Severity, code, suggestion};
pub use footprint::Possible;
pub use model::Plan;
pub use overlay::setting;
pub use rules::invariants::plan_check;
pub use schema::{choices, keys, schema, schema_of};
pub use show::{explained, template};
pub use source::Source;
pub use sourced::{Evidence, Setting, no_control};
pub use sweep::schema as sweep_schema;
pub use table_file::TableFile;

/// Finds a scenario, as [`find`] does, and checks it, as [`check()`] does.
///
/// # Errors
/// The first mistake.
pub fn load(scenario: &str, set: &[String]) -> Result<Checked, Finding> {
    check(&find(scenario)?, set)
}

/// Finds a scenario, with a file of another tool in place of its workload if `workload` names one, checks it and counts its traffic.
/// If this machine cannot run it, its findings say so.
///
/// # Errors
/// The first mistake, as for [`load`].
pub fn survey(scenario: &str, workload: Option<&std::path::Path>, set: &[String]) -> Result<Survey, Finding> {
    let source = find(scenario)?;
    let Some(workload) = workload else { return Survey::new(&source, set) };
    let (name, replaced) = formats::in_place_of_workload(workload)?;
    Survey::new(&Source { name, ..source }, &[&[replaced], set].concat())
}

/// Finds a scenario, with a file of another tool in place of its workload if `workload` names one, and fills in its defaults.
///
/// # Errors
/// The first mistake, as for [`load`].
pub fn resolved(
    scenario: &str,
    workload: Option<&std::path::Path>,
    set: &[String],
) -> Result<Resolved, Finding> {
    let source = find(scenario)?;
    let Some(workload) = workload else { return Resolved::of(&source, set) };
    let (name, replaced) = formats::in_place_of_workload(workload)?;
    Resolved::of(&Source { name, ..source }, &[&[replaced], set].concat())
}

/// Finds the scenario `topology` and checks it with a file of another tool in place of its workload.
///
/// # Errors
/// The first mistake, as for [`load`].
pub fn load_on(topology: &str, workload: &std::path::Path, set: &[String]) -> Result<Checked, Finding> {
    let (name, replaced) = formats::in_place_of_workload(workload)?;
    let source = Source { name, ..find(topology)? };
    check(&source, &[&[replaced], set].concat())
}

/// The error about a file whose content has a format that ropewalk does not read; `None` for all other content.
pub fn unread(file: &str, content: &[u8]) -> Option<Finding> {
    formats::unread::of(content).map(|unread| unread.error(file))
}

/// Finds a scenario and checks it for a program that drives its run. Unless one of its workloads is `program`, such a workload
/// takes the place of all of them.
///
/// # Errors
/// The first mistake, as for [`load`].
pub fn load_program(scenario: &str, set: &[String]) -> Result<Checked, Finding> {
    check_program(&find(scenario)?, set)
}

/// Checks a scenario for a program that drives its run, as [`load_program`] does.
///
/// # Errors
/// The first mistake, as for [`check()`].
pub fn check_program(source: &Source, set: &[String]) -> Result<Checked, Finding> {
    Checked::for_program(source, set)
}

/// Name of the scheme of a scenario that chooses none.
pub fn usual_scheme() -> &'static str {
    schemes::SchemeConfig::default().name()
}

/// Reads a scenario with `--set` changes (`KEY=VALUE`) on top, checks it, and makes its plan.
///
/// # Errors
/// The first mistake, with its position in the text or in the `--set`.
pub fn check(source: &Source, set: &[String]) -> Result<Checked, Finding> {
    Checked::new(source, set)
}
