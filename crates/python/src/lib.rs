//! What `import ropewalk` calls: the library, as a Python module. The classes that people use are Python's
//! (`python/ropewalk`); this is thin. Scenarios and settings come as JSON, so that one serde reads everything.
//!
//! | file | what |
//! |---|---|
//! | `asked` | what Python asks for: scenarios, sweeps, settings |
//! | `watch` | a simulation without Python's lock, with progress and Ctrl-C |
//! | `errors` | failures as Python's exceptions |
//! | `table` | tables by the Arrow PyCapsule interface |
//! | `results` | runs and their results, comparisons, reports |
//! | `work` | sweeps |

mod asked;
mod errors;
mod results;
mod table;
mod watch;
mod work;

use pyo3::prelude::*;

/// The native part of the package `ropewalk`.
#[pymodule(name = "_native")]
mod module {
    use super::*;

    #[pymodule_export]
    use super::results::{Experiment, Results, check, compare, page, read, reproduce, run};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::work::{Work, check_sweep, read_table, run_point, sweep_page};
    #[pymodule_export]
    use super::{cli, experiments, metrics, scenarios, schema};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// The command `ropewalk`; the first word is its name. Gives the exit code.
#[pyfunction]
fn cli(py: Python<'_>, words: Vec<String>) -> u8 {
    use clap::Parser;
    use std::io::Write;
    let code = py.detach(|| match ropewalk::cli::Cli::try_parse_from(words) {
        Ok(cli) => ropewalk::commands::answer(cli),
        Err(said) => {
            drop(said.print());
            u8::try_from(said.exit_code()).unwrap_or(2)
        }
    });
    // Python ends the process without Rust's farewell.
    drop(std::io::stdout().flush());
    code
}

/// The JSON Schema of scenarios, or of sweeps.
#[pyfunction]
fn schema(sweeps: bool) -> String {
    if sweeps { scenario::sweep_schema().to_string() } else { scenario::schema().to_string() }
}

/// Names of the built-in scenarios, with what each is and its text.
#[pyfunction]
fn scenarios() -> Vec<(&'static str, &'static str, &'static str)> {
    scenario::builtin::ALL.iter().map(|b| (b.name, b.about(), b.text)).collect()
}

/// Names of the papers' experiments, with their sources and what each shows.
#[pyfunction]
fn experiments() -> Vec<(&'static str, &'static str, &'static str)> {
    papers::ALL.iter().map(|e| (e.name, e.source, e.about)).collect()
}

/// The table of metrics.
#[pyfunction]
fn metrics() -> table::Table {
    table::Table(::results::metrics::table())
}
