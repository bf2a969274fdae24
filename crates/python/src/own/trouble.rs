//! Exceptions of classes while a run goes on. An engine knows no exceptions, so the run is stopped, and its caller raises.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The first exception of a class during a run.
#[derive(Default)]
pub(crate) struct Trouble {
    /// Stops the run. An exception sets it before the class's run goes on, so no run ends as if its scheme had decided all.
    pub(crate) stop: AtomicBool,
    told: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

/// The runs with classes that go on. A class does not know which of them it serves, so all of them learn of its exception: in a program
/// that makes several runs at once, none of them may pass off a stopped scheme as the scheme.
static GOING: Mutex<Vec<Weak<Trouble>>> = Mutex::new(Vec::new());

impl Trouble {
    /// For a run that begins. It ends when this is dropped. A run without classes learns of no exception.
    pub(crate) fn watch(has_classes: bool) -> Arc<Trouble> {
        let trouble = Arc::<Trouble>::default();
        if !has_classes {
            return trouble;
        }
        let mut going = GOING.lock().unwrap_or_else(PoisonError::into_inner);
        going.retain(|other| other.strong_count() > 0);
        going.push(Arc::downgrade(&trouble));
        trouble
    }

    /// True if a class has raised.
    pub(crate) fn is_told(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }

    /// The exception, once.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Tells all runs of an exception.
pub(crate) fn tell(py: Python<'_>, error: PyErr) {
    let going = GOING.lock().unwrap_or_else(PoisonError::into_inner);
    for trouble in going.iter().filter_map(Weak::upgrade) {
        let mut first = trouble.error.lock().unwrap_or_else(PoisonError::into_inner);
        if !trouble.is_told() {
            *first = Some(error.clone_ref(py));
        }
        trouble.told.store(true, Ordering::Release);
        trouble.stop.store(true, Ordering::Release);
    }
}
