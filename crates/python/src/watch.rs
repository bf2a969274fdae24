//! A simulation without Python's lock, with progress and Ctrl-C.

use lab::Progress;
use lab::progress::Reporter;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long Ctrl-C may go unheard. Our choice: nobody notices.
const HEARD_EVERY: Duration = Duration::from_millis(50);

/// Says that something has ended, in whichever way it did.
struct Ended<'a>(&'a Mutex<bool>, &'a Condvar);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_all();
    }
}

/// Does `work` on a thread of its own, so that this one hears signals, tells `ear(fraction, text)` how far it is, and has
/// Python's lock only for that.
///
/// # Errors
/// `KeyboardInterrupt`, and what `ear` raises: then the work was told to stop, and has stopped.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    runs: usize,
    ear: Option<Py<PyAny>>,
    work: impl FnOnce(&Progress<'_>) -> T + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let said: Mutex<Option<(f64, String)>> = Mutex::new(None);
    let hear = |fraction, text| *said.lock().unwrap_or_else(PoisonError::into_inner) = Some((fraction, text));
    let progress = match ear {
        Some(_) => Progress::new(runs, &stop, Some(Reporter { every_s: 0.1, show: Box::new(hear) })),
        None => Progress::new(runs, &stop, None),
    };
    let (ended, bell) = (Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            let _ended = Ended(&ended, &bell);
            work(&progress)
        })?;
        let wait = || {
            let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            let (ended, _) = bell
                .wait_timeout_while(ended, HEARD_EVERY, |ended| !*ended)
                .unwrap_or_else(PoisonError::into_inner);
            *ended
        };
        let mut wrong = None;
        while !py.detach(wait) {
            let heard = py.check_signals().and_then(|()| {
                let said = said.lock().unwrap_or_else(PoisonError::into_inner).take();
                match (&ear, said) {
                    (Some(ear), Some((fraction, text))) => ear.call1(py, (fraction, text)).map(drop),
                    _ => Ok(()),
                }
            });
            if let Err(error) = heard {
                stop.store(true, Ordering::Relaxed);
                wrong.get_or_insert(error);
            }
        }
        let result = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match wrong {
            Some(error) => Err(error),
            None => Ok(result),
        }
    })
}
