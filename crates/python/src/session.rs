//! Runs that a program drives.

use crate::asked::{self, Asked};
use crate::errors::failure;
use crate::own::Trouble;
use crate::results::Results;
use crate::watch::CHECK_EVERY;
use lab::clock::Stopwatch;
use lab::session::{Bytes, Event, Next, Time};
use lab::{Failure, RECORD_EVERYTHING};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// An event as Python has it: time in ps, rank, kind, id.
type Told = (u64, u32, &'static str, u64);

/// What the last call of `next` or `advance` found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// More events may come.
    Running,
    /// No event comes unless the program sends more.
    Idle,
    /// The run has ended early.
    Ended,
    /// The program has finished or closed the session.
    Closed,
}

/// A run that a program drives.
#[pyclass(module = "ropewalk._native")]
pub(crate) struct Session {
    /// The run until `finish` or `close`. The mutex only lets Python pass the session between threads.
    session: Option<Mutex<lab::Session>>,
    state: State,
    /// The exception of a signal's handler, which has ended the run.
    raised: Arc<Mutex<Option<PyErr>>>,
    /// The exception of a scheme in Python, which has ended the run, too.
    trouble: Arc<Trouble>,
    /// Name of the scenario.
    #[pyo3(get)]
    name: String,
    /// Number of ranks.
    #[pyo3(get)]
    ranks: u32,
    /// Time of the last event, or the time up to which the run has gone without any, ps.
    #[pyo3(get)]
    now: u64,
}

#[pymethods]
impl Session {
    /// Opens a scenario. `warn` is called with each warning.
    #[new]
    fn open(
        py: Python<'_>,
        scenario: String,
        is_dict: bool,
        sets: &str,
        record: bool,
        warn: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let source = Asked::new(scenario, is_dict)?.scenario()?;
        let mut sets = asked::sets(sets)?;
        if record {
            sets.splice(..0, RECORD_EVERYTHING.map(str::to_owned));
        }
        let trouble = Trouble::watch(asked::has_classes(&source, &sets));
        let mut session = py.detach(|| lab::Session::open_source(&source, &sets)).map_err(failure)?;
        for warning in session.checked().warnings() {
            warn.call1((warning,))?;
        }
        let raised = Arc::default();
        session.stop_if(interrupted(&raised, &trouble));
        let (name, ranks) = (session.checked().name.clone(), session.ranks());
        Ok(Session {
            session: Some(Mutex::new(session)),
            state: State::Running,
            raised,
            trouble,
            name,
            ranks,
            now: 0,
        })
    }

    /// True if the last call found that no event is left, and the program has posted nothing since.
    #[getter]
    fn idle(&self) -> bool {
        matches!(self.state, State::Idle | State::Ended)
    }

    /// True if the run has ended early.
    #[getter]
    fn ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Sends a message at `at`, or now.
    fn send(&mut self, id: u64, pair: (u32, u32), bytes: u64, tag: u32, at: Option<u64>) -> PyResult<()> {
        let now = self.now;
        let session = self.session()?;
        let sent = match at.filter(|at| *at != now) {
            Some(at) => session.send_at(Time::from_ps(at), id, pair, bytes, tag),
            None => session.send(id, pair, bytes, tag),
        };
        sent.map_err(failure)?;
        self.state = State::Running;
        Ok(())
    }

    /// Gives a name to the ranks of an instance.
    fn instance(&mut self, name: &str, ranks: Vec<u32>) -> PyResult<()> {
        self.session()?.name_instance(name, &ranks).map_err(failure)
    }

    /// The ranks of an instance.
    fn ranks_of(&mut self, name: &str) -> PyResult<Vec<u32>> {
        Ok(self.session()?.instance(name).map_err(failure)?.to_vec())
    }

    /// Sends bytes from the ranks of one instance to those of another.
    fn transfer(&mut self, id: u64, from: Vec<u32>, to: Vec<u32>, bytes: u64) -> PyResult<()> {
        self.session()?.transfer(id, (&from, &to), bytes).map_err(failure)?;
        self.state = State::Running;
        Ok(())
    }

    /// Sets a timer of a rank.
    fn timer(&mut self, id: u64, rank: u32, after: u64) -> PyResult<()> {
        self.session()?.timer(id, rank, Time::from_ps(after)).map_err(failure)?;
        self.state = State::Running;
        Ok(())
    }

    /// The next event up to `until`, if there is one.
    fn next(&mut self, py: Python<'_>, until: Option<u64>) -> PyResult<Option<Told>> {
        let mut found = None;
        self.play(py, until, |event| {
            found = Some(event);
            false
        })?;
        Ok(found)
    }

    /// All events up to `until`.
    fn advance(&mut self, py: Python<'_>, until: u64) -> PyResult<Vec<Told>> {
        let mut found = Vec::new();
        self.play(py, Some(until), |event| {
            found.push(event);
            true
        })?;
        Ok(found)
    }

    /// Plays everything sent to its end.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Results> {
        let Some(session) = self.session.take() else { return Err(over(self.state, self.now)) };
        let session = session.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.state = State::Closed;
        let results = py.detach(|| Results::of(session.finish(), Vec::new()));
        self.check()?;
        Ok(results)
    }

    /// Drops the run.
    fn close(&mut self) {
        (self.session, self.state) = (None, State::Closed);
    }
}

impl Session {
    /// The run, unless it has ended.
    fn session(&mut self) -> PyResult<&mut lab::Session> {
        let (state, now) = (self.state, self.now);
        let going = self.session.as_mut().filter(|_| state != State::Ended);
        let session = going.ok_or_else(|| over(state, now))?;
        Ok(session.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Hands out events up to `until` while `take` returns true.
    fn play(
        &mut self,
        py: Python<'_>,
        until: Option<u64>,
        mut take: impl FnMut(Told) -> bool + Send,
    ) -> PyResult<()> {
        if self.state == State::Ended {
            return Ok(());
        }
        let until = until.map(Time::from_ps);
        let session = self.session()?;
        let state: Result<State, Failure> = py.detach(|| {
            loop {
                match session.next(until)? {
                    Next::Event(Event { at, rank, kind, id }) => {
                        if !take((at.ps(), rank, kind.name(), id)) {
                            return Ok(State::Running);
                        }
                    }
                    Next::Until => return Ok(State::Running),
                    Next::Idle => return Ok(State::Idle),
                    Next::Ended => return Ok(State::Ended),
                }
            }
        });
        let state = state.map_err(failure)?;
        self.now = session.now().ps();
        self.state = state;
        self.check()
    }

    /// Raises the exception of a signal's handler, which has ended the run.
    fn check(&mut self) -> PyResult<()> {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        let raised = self.trouble.take().or(raised);
        raised.map_or(Ok(()), |error| {
            self.close();
            Err(error)
        })
    }
}

/// The exception for calls after the end.
fn over(state: State, now: u64) -> PyErr {
    failure(Failure::Asked(match state {
        State::Ended => format!("the run has ended early, at {}", Time::from_ps(now)),
        _ => "the session is finished or closed".to_owned(),
    }))
}

/// A function that handles signals now and then, and returns true if a handler or a scheme has raised an exception.
fn interrupted(
    raised: &Arc<Mutex<Option<PyErr>>>,
    trouble: &Arc<Trouble>,
) -> impl FnMut() -> bool + Send + use<> {
    let (raised, trouble, mut since) = (Arc::clone(raised), Arc::clone(trouble), Stopwatch::start());
    move || {
        if trouble.is_told() {
            return true;
        }
        if since.wall_s() < CHECK_EVERY.as_secs_f64() {
            return false;
        }
        since = Stopwatch::start();
        let error = Python::attach(|py| py.check_signals()).err();
        let stops = error.is_some();
        *raised.lock().unwrap_or_else(PoisonError::into_inner) = error;
        stops
    }
}

/// Reads a time such as `1us`, in ps.
#[pyfunction]
pub(crate) fn picoseconds(text: &str) -> PyResult<u64> {
    let time: Time = text.parse().map_err(|e| PyValueError::new_err(format!("{e}")))?;
    Ok(time.ps())
}

/// Reads a size such as `64MB`, in bytes.
#[pyfunction]
pub(crate) fn size(text: &str) -> PyResult<u64> {
    let bytes: Bytes = text.parse().map_err(|e| PyValueError::new_err(format!("{e}")))?;
    Ok(bytes.0)
}
