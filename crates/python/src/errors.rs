//! Failures as Python's exceptions, which `python/ropewalk/_errors.py` defines.

use lab::Failure;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// Converts a failure to an exception.
pub(crate) fn failure(failure: Failure) -> PyErr {
    match failure {
        Failure::Interrupted => PyKeyboardInterrupt::new_err(()),
        Failure::Scenario(ref error) => {
            let place = error.place.as_ref().map(|place| (place.file.clone(), place.line, place.column));
            let (file, line, column) = match place {
                Some((file, line, column)) => (Some(file), Some(line), Some(column)),
                None => (None, None, None),
            };
            let (message, help) = (error.text.clone(), error.help.clone());
            named("ScenarioError", (failure.text(), message, file, line, column, help))
        }
        Failure::Results(_) => named("ResultsError", (failure.text(),)),
        Failure::Asked(_) | Failure::Output(_) | Failure::Told => named("RequestError", (failure.text(),)),
        Failure::Simulation | Failure::Memory(_) => named("SimulationError", (failure.text(),)),
    }
}

/// Converts an error of a scenario to an exception.
pub(crate) fn scenario(error: scenario::Finding) -> PyErr {
    failure(error.into())
}

/// Makes an exception of the package, given its name.
pub(crate) fn named(name: &str, arguments: impl for<'py> PyCallArgs<'py>) -> PyErr {
    Python::attach(|py| {
        let kind = py.import("ropewalk._errors").and_then(|module| module.getattr(name));
        kind.and_then(|kind| kind.call1(arguments)).map_or_else(|e| e, PyErr::from_value)
    })
}
