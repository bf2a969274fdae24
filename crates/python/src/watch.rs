//! Simulations without Python's lock, with progress and Ctrl-C.

use crate::own::Trouble;
use lab::Progress;
use lab::progress::Reporter;
use pyo3::prelude::*;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Time between two checks for Ctrl-C. Our choice: too short to notice.
pub(crate) const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Reports the end of a thread's work when dropped, even after a panic.
struct Ended<'a>(&'a Mutex<bool>, &'a Condvar);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_all();
    }
}

/// Does `work` on another thread; `has_classes` says that classes of Python may take part. Meanwhile this thread checks for signals and
/// calls `listener(fraction, text)` with the progress; it holds Python's lock only for that.
///
/// # Errors
/// `KeyboardInterrupt`, or the exception that `listener` or a scheme in Python raises. In all cases the work has been stopped before.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    runs: usize,
    has_classes: bool,
    listener: Option<Py<PyAny>>,
    work: impl FnOnce(&Progress<'_>) -> T + Send,
) -> PyResult<T> {
    let trouble = Trouble::watch(has_classes);
    let stop = &trouble.stop;
    let latest: Mutex<Option<(f64, String)>> = Mutex::new(None);
    let note =
        |fraction, text| *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some((fraction, text));
    let progress = match listener {
        Some(_) => Progress::new(runs, stop, Some(Reporter { every_s: 0.1, show: Box::new(note) })),
        None => Progress::new(runs, stop, None),
    };
    let (ended, bell) = (Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            let _ended = Ended(&ended, &bell);
            // Python knows this thread from here on, so that schemes in Python are called sooner.
            Python::attach(|py| py.detach(|| work(&progress)))
        })?;
        let wait = || {
            let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            let (ended, _) = bell
                .wait_timeout_while(ended, CHECK_EVERY, |ended| !*ended)
                .unwrap_or_else(PoisonError::into_inner);
            *ended
        };
        let mut wrong = None;
        while !py.detach(wait) {
            let checked = py.check_signals().and_then(|()| {
                let latest = latest.lock().unwrap_or_else(PoisonError::into_inner).take();
                match (&listener, latest) {
                    (Some(listener), Some((fraction, text))) => {
                        listener.call1(py, (fraction, text)).map(drop)
                    }
                    _ => Ok(()),
                }
            });
            if let Err(error) = checked {
                stop.store(true, Ordering::Relaxed);
                wrong.get_or_insert(error);
            }
        }
        let result = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match trouble.take().or(wrong) {
            Some(error) => Err(error),
            None => Ok(result),
        }
    })
}
