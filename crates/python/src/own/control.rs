//! Congestion controls in Python. A class keeps its window, and its pace if it has one, as attributes, which are read after each event.

use super::{Class, InPython, Makes, trouble};
use crate::errors::named;
use finding::Finding;
use model::{Allowance, Congestion, Pace, Rate, Time};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use rnic::notification::CnpScope;
use rnic::own::{ControlEntry, ControlParts};
use rnic::{Advised, AnyCongestion, ControlFacts, Evidence, Path, Variation};
use std::sync::Arc;

/// The path of a queue pair, as a control in Python gets it.
#[pyclass(frozen, module = "ropewalk", get_all)]
pub(crate) struct QueuePair {
    /// Rate of the NIC's port, bit/s.
    line_rate: u64,
    /// Time from the start of a full packet to its ACK on an idle fabric, ps.
    round_trip: u64,
    /// Full packets that line rate sends in this time, rounded up.
    bdp: u32,
}

impl ControlParts for InPython {
    fn trials(&self) -> &'static [&'static str] {
        &[""]
    }

    fn decisive(&self) -> &'static [&'static str] {
        &[]
    }

    fn variations(&self) -> &'static [Variation] {
        &[]
    }

    fn facts(&self) -> ControlFacts {
        let evidence = if self.class.marks { Evidence::Marks } else { Evidence::Cnps };
        ControlFacts { needs_feedback: false, ..ControlFacts::of(evidence) }
    }

    /// The class judges its settings by raising.
    fn validate(&self) -> Result<(), Finding> {
        self.class.judge(&self.settings)
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> AnyCongestion {
        let path = Path::or_guess(path, line_rate);
        let path = QueuePair { line_rate: line_rate.bps(), round_trip: path.base_rtt.ps(), bdp: path.bdp };
        AnyCongestion::Custom(Box::new(InNic::new(self, path)))
    }

    fn longest_gap(&self, _: u64, _: Time) -> Time {
        Time::ZERO
    }

    fn advised(&self) -> Advised {
        Advised::default()
    }

    fn cnp_scope(&self) -> CnpScope {
        CnpScope::Port
    }

    fn heeds_penalties(&self) -> bool {
        false
    }

    fn warning(&self, _: &[Rate]) -> Option<Finding> {
        None
    }
}

/// A control in Python for one queue pair.
struct InNic {
    class: Arc<Class>,
    /// The class's object, until it raises.
    object: Option<Py<PyAny>>,
    line_rate: u64,
    window: u64,
    pace: Pace,
}

impl InNic {
    fn new(of: &InPython, path: QueuePair) -> Self {
        let line_rate = path.line_rate;
        let (class, pace) = (of.class.clone(), Pace::from_bps(line_rate as f64));
        let mut control = InNic { class, object: None, line_rate, window: 1, pace };
        Python::attach(|py| match of.class.object(py, &of.settings) {
            Ok(object) => {
                control.object = Some(object);
                control
                    .call(py, "start", Time::ZERO, |object| object.call_method1("start", (path,)).map(drop));
            }
            Err(error) => trouble::tell(py, of.class.raised(py, "__init__", "when the run begins", error)),
        });
        control
    }

    /// Calls the class, and reads what it allows then.
    fn call(
        &mut self,
        py: Python<'_>,
        method: &str,
        now: Time,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>,
    ) {
        let Some(object) = &self.object else { return };
        let object = object.bind(py).clone();
        if let Err(error) = call(&object).and_then(|()| self.allow(py, &object)) {
            let place = format!("at {} us", now.ps() as f64 / 1e6);
            trouble::tell(py, self.class.raised(py, method, &place, error));
            self.object = None;
        }
    }

    fn allow(&mut self, py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let window: f64 = object.getattr(intern!(py, "window"))?.extract()?;
        if window.is_nan() || window < 1.0 {
            let text = format!("its window is {window}, and below one packet nothing is sent again");
            return Err(PyValueError::new_err(text));
        }
        self.window = window as u64;
        if self.class.paces {
            let rate: f64 = object.getattr(intern!(py, "rate"))?.extract()?;
            if !(rate > 0.0 && rate <= self.line_rate as f64) {
                let text = format!("its rate is {rate} bit/s, and must be above 0 and at most line rate");
                return Err(PyValueError::new_err(text));
            }
            self.pace = Pace::from_bps(rate);
        }
        Ok(())
    }

    /// Tells the class of an event, if it has a method for that.
    fn tell(&mut self, method: &str, now: Time) {
        if self.class.methods.iter().any(|known| known == method) {
            Python::attach(|py| {
                self.call(py, method, now, |object| object.call_method1(method, (now.ps(),)).map(drop));
            });
        }
    }
}

impl Congestion for InNic {
    fn allowance(&mut self, _: Time) -> Allowance {
        Allowance { window: self.window, pace: self.pace, not_before: Time::ZERO }
    }

    fn is_still(&self) -> bool {
        true
    }

    fn on_ack(&mut self, now: Time, packets: u64, echo: bool) {
        Python::attach(|py| {
            self.call(py, "on_ack", now, |object| {
                object.call_method1(intern!(py, "on_ack"), (now.ps(), packets, echo)).map(drop)
            });
        });
    }

    fn on_cnp(&mut self, now: Time) {
        self.tell("on_cnp", now);
    }

    fn on_nack(&mut self, now: Time) {
        self.tell("on_nack", now);
    }

    fn on_timeout(&mut self, now: Time) {
        self.tell("on_timeout", now);
    }
}

/// Makes a congestion control of a class, in the place of one that a class has made before. Settings come as JSON: an object of defaults.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "what `_own.py` reads of a class")]
pub(crate) fn register_control(
    class: Py<PyAny>,
    title: String,
    name: String,
    about: String,
    defaults: &str,
    marks: bool,
    paces: bool,
    methods: Vec<String>,
    code: u64,
) -> PyResult<()> {
    let wrong = |text: String| named("RequestError", (text,));
    let defaults = serde_json::from_str(defaults).map_err(|error| wrong(error.to_string()))?;
    let class = Arc::new(Class { marks, paces, methods, ..Class::new(class, title, defaults, code) });
    let maker = Box::leak(Box::new(Makes::<dyn ControlParts>(class, |control| Arc::new(control))));
    ControlEntry::of(String::leak(name), String::leak(about), maker).replace().map_err(wrong)
}
