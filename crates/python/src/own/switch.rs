//! Schemes in switches.

use super::{Class, trouble};
use model::fabric::Detours;
use model::scheme::Arrived;
use model::{Cx, Interest, PortIndex, Scheme, Verdict};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a scheme sees of its switch while it decides.
#[pyclass(frozen, module = "ropewalk")]
pub(crate) struct Switch {
    /// Name of the switch.
    #[pyo3(get)]
    name: String,
    seen: Mutex<Option<Seen>>,
}

/// The arrival of a packet.
struct Seen {
    arrived: Arrived,
    draws: u64,
    queued: Vec<u32>,
}

impl Switch {
    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of<T>(&self, ask: impl FnOnce(&mut Seen) -> PyResult<T>) -> PyResult<T> {
        match &mut *self.seen() {
            Some(seen) => ask(seen),
            None => Err(PyValueError::new_err("no packet has arrived yet")),
        }
    }
}

#[pymethods]
impl Switch {
    /// Present time, ps.
    #[getter]
    fn now(&self) -> PyResult<u64> {
        self.of(|seen| Ok(seen.arrived.now.ps()))
    }

    /// Port at which the packet came in.
    #[getter]
    fn ingress(&self) -> PyResult<u32> {
        self.of(|seen| Ok(seen.arrived.ingress.0.into()))
    }

    /// True if the packet came from a host of this switch.
    #[getter(from_host)]
    fn is_from_host(&self) -> PyResult<bool> {
        self.of(|seen| Ok(seen.arrived.from_host))
    }

    /// A uniform number below `n`, a new one at every call: a function of seed, switch, port and time.
    fn pick(&self, n: usize) -> PyResult<usize> {
        self.of(|seen| match n {
            0 => Err(PyValueError::new_err("there is no number below 0 to pick")),
            _ => {
                seen.draws += 1;
                Ok(seen.arrived.pick_nth(seen.draws, n))
            }
        })
    }

    /// The hash of the packet's flow, reduced to numbers below `n`.
    fn hash(&self, n: usize) -> PyResult<usize> {
        self.of(|seen| match n {
            0 => Err(PyValueError::new_err("there is no number below 0")),
            _ => Ok(seen.arrived.hash(n)),
        })
    }

    /// Bytes that wait at a port.
    fn queue(&self, port: usize) -> PyResult<u32> {
        self.of(|seen| match seen.queued.get(port) {
            Some(bytes) => Ok(*bytes),
            None if seen.queued.is_empty() => {
                Err(PyTypeError::new_err("only a class with `queues = True` sees queues"))
            }
            None => Err(PyIndexError::new_err(format!("the switch has no port {port}"))),
        })
    }

    fn __repr__(&self) -> String {
        format!("<switch {}>", self.name)
    }
}

/// A data packet.
#[pyclass(frozen, module = "ropewalk")]
pub(crate) struct Packet {
    /// Number of its queue pair.
    #[pyo3(get)]
    qp: u32,
    /// Its PSN.
    #[pyo3(get)]
    psn: u32,
    /// Number of the host to which it goes.
    #[pyo3(get)]
    to: u32,
    /// Length of its frame, bytes.
    #[pyo3(get)]
    frame: u32,
    /// True for the last packet of a message.
    #[pyo3(get)]
    last: bool,
    /// True for a retransmission.
    #[pyo3(get)]
    again: bool,
}

#[pymethods]
impl Packet {
    fn __repr__(&self) -> String {
        format!("<packet {} of queue pair {}, {} B>", self.psn, self.qp, self.frame)
    }
}

/// A scheme in Python in one switch.
pub(super) struct InSwitch {
    class: Arc<Class>,
    /// The class's object and its method, until it raises.
    decides: Option<Py<PyAny>>,
    switch: Option<Py<Switch>>,
    name: String,
    /// The ports that lead to a destination, as Python has them.
    tuples: BTreeMap<Box<[PortIndex]>, Py<PyTuple>>,
}

impl InSwitch {
    pub(super) fn new(class: Arc<Class>, object: Option<Py<PyAny>>, name: String) -> Self {
        let (decides, switch) = Python::attach(|py| {
            let decides = object.and_then(|object| object.getattr(py, intern!(py, "on_packet")).ok());
            let switch = Py::new(py, Switch { name: name.clone(), seen: Mutex::new(None) });
            (decides, switch.ok())
        });
        InSwitch { class, decides, switch, name, tuples: BTreeMap::new() }
    }

    fn ask(
        &mut self,
        py: Python<'_>,
        cx: &Cx<'_>,
        pkt: &model::Packet,
        ports: &[PortIndex],
    ) -> PyResult<Option<PortIndex>> {
        let (Some(decides), Some(switch)) = (&self.decides, &self.switch) else { return Ok(None) };
        {
            let mut seen = switch.get().seen();
            let seen =
                seen.get_or_insert_with(|| Seen { arrived: cx.arrived(pkt), draws: 0, queued: Vec::new() });
            (seen.arrived, seen.draws) = (cx.arrived(pkt), 0);
            if self.class.queues {
                seen.queued.clear();
                seen.queued.extend_from_slice(cx.queued);
            }
        }
        let packet = Packet {
            qp: pkt.qp().0,
            psn: pkt.psn().value(),
            to: pkt.to().0,
            frame: pkt.frame(),
            last: pkt.last(),
            again: pkt.retransmission(),
        };
        if !self.tuples.contains_key(ports) {
            let tuple = PyTuple::new(py, ports.iter().map(|port| port.0))?.unbind();
            self.tuples.insert(ports.into(), tuple);
        }
        let Some(tuple) = self.tuples.get(ports) else { return Ok(None) };
        let answer = decides.bind(py).call1((switch, packet, tuple))?;
        let port = answer
            .extract::<u64>()
            .ok()
            .and_then(|port| ports.iter().find(|known| u64::from(known.0) == port));
        match port {
            Some(port) => Ok(Some(*port)),
            None => Err(PyValueError::new_err(format!(
                "it returned {}, and not one of the ports {}",
                answer.repr()?,
                tuple.bind(py).repr()?
            ))),
        }
    }
}

impl Scheme for InSwitch {
    fn interest(&self) -> Interest {
        Interest { queues: self.class.queues, plain_replies: true, ..Interest::default() }
    }

    fn reads_queues(&self, pkt: &model::Packet, ports: &[PortIndex], _: &Detours<'_>) -> bool {
        pkt.is_data() && ports.len() > 1
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut model::Packet, ports: &[PortIndex]) -> Verdict {
        let base = cx.base_path(pkt, ports);
        if !pkt.is_data() || ports.len() == 1 || self.decides.is_none() {
            return Verdict::Forward(base);
        }
        let port = Python::attach(|py| match self.ask(py, cx, pkt, ports) {
            Ok(port) => port,
            Err(error) => {
                let (packet, qp) = (pkt.psn().value(), pkt.qp().0);
                let us = cx.now.ps() as f64 / 1e6;
                let place = format!("in {} at {us} us, for packet {packet} of queue pair {qp}", self.name);
                trouble::tell(py, self.class.raised(py, "on_packet", &place, error));
                self.decides = None;
                None
            }
        });
        Verdict::Forward(port.unwrap_or(base))
    }
}
