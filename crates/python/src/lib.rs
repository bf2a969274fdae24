//! The native module behind `import ropewalk`. It is thin: the classes that users see are in Python (`python/ropewalk`).
//! Scenarios and settings come as JSON, so that serde reads all of them.
//!
//! | file | what it holds |
//! |---|---|
//! | `asked` | arguments from Python: scenarios, sweeps, settings |
//! | `watch` | simulations without Python's lock, with progress and Ctrl-C |
//! | `errors` | failures as Python's exceptions |
//! | `own` | schemes and controls in Python |
//! | `table` | tables by the Arrow PyCapsule interface |
//! | `results` | runs and their results, comparisons, reports |
//! | `session` | runs that a program drives |
//! | `work` | sweeps |

mod asked;
mod errors;
mod own;
mod results;
mod session;
mod table;
mod watch;
mod work;

use pyo3::prelude::*;

/// The native part of the package `ropewalk`.
#[pymodule(name = "_native")]
mod module {
    use super::*;

    #[pymodule_export]
    use super::own::{Packet, QueuePair, Reply, Sender, Sent, Switch, register_control, register_scheme};
    #[pymodule_export]
    use super::results::{Experiment, Results, check, compare, comparison, page, read, reproduce, run};
    #[pymodule_export]
    use super::session::{Session, picoseconds, size};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::work::{Work, run_point, sweep_manifest, sweep_page, sweep_table};
    #[pymodule_export]
    use super::{busbw, cli, experiments, look, looks, metrics, scenarios, schema};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Runs the command `ropewalk` and returns its exit code. The first word is the name of the command.
#[pyfunction]
fn cli(py: Python<'_>, words: Vec<String>) -> u8 {
    use clap::Parser;
    use std::io::Write;
    let code = py.detach(|| match command_line::cli::Cli::try_parse_from(words) {
        Ok(cli) => command_line::commands::answer(cli),
        Err(error) => {
            drop(error.print());
            u8::try_from(error.exit_code()).unwrap_or(2)
        }
    });
    // Python ends the process without Rust's cleanup, so flush here.
    drop(std::io::stdout().flush());
    code
}

/// The answer of `ropewalk busbw` as JSON, as text and as a page.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the options of the command")]
fn busbw(
    py: Python<'_>,
    logs: Vec<String>,
    more: Vec<String>,
    cluster: Option<String>,
    fabric: Option<String>,
    collective: Option<String>,
    call: Option<(f64, f64)>,
    racks: Option<String>,
    simulate: bool,
) -> PyResult<(String, String, String)> {
    let answer = || {
        let read = |names: &[String]| {
            names.iter().map(|name| ::busbw::Input::read(name)).collect::<Result<Vec<_>, _>>()
        };
        let scenario = fabric.as_deref().map(|name| scenario::load(name, &[])).transpose()?;
        let scenario = scenario.as_ref().map(::busbw::cluster::Cluster::of_scenario);
        let (logs, more) = (read(&logs)?, read(&more)?);
        let request = ::busbw::Request { logs, more, cluster, scenario, collective, call, racks, simulate };
        ::busbw::answer(&request)
    };
    let answer = py.detach(answer).map_err(errors::scenario)?;
    let json = serde_json::to_string(&answer).unwrap_or_default();
    Ok((json, ::busbw::text(&answer), format!("{}{}", report::MARK, ::busbw::page(&answer))))
}

/// The JSON Schema of scenarios, or of sweeps.
#[pyfunction]
fn schema(sweeps: bool) -> String {
    if sweeps { scenario::sweep_schema().to_string() } else { scenario::schema().to_string() }
}

/// Names, descriptions and texts of the built-in scenarios.
#[pyfunction]
fn scenarios() -> Vec<(&'static str, &'static str, &'static str)> {
    scenario::builtin::ALL.iter().map(|b| (b.name, b.about(), b.text)).collect()
}

/// Names, sources and descriptions of the papers' experiments.
#[pyfunction]
fn experiments() -> Vec<(&'static str, &'static str, &'static str)> {
    papers::ALL.iter().map(|e| (e.name, e.source, e.about)).collect()
}

/// The table of metrics.
#[pyfunction]
fn metrics() -> table::Table {
    table::Table(::results::metrics::table())
}

/// Colours on a white background, dashes and markers of pictures.
#[pyfunction]
fn looks() -> (Vec<&'static str>, Vec<&'static str>, Vec<&'static str>) {
    use schemes::look::{DASHES, HUES, MARKERS};
    (HUES.iter().map(|hue| hue.light).collect(), DASHES.into(), MARKERS.into())
}

/// Numbers of colour, dash and marker of a scheme in [`looks`].
#[pyfunction]
fn look(scheme: &str) -> (usize, usize, usize) {
    let look = schemes::look::of(scheme);
    (look.hue, look.dash, look.marker)
}
