//! Schemes in sending NICs.

use super::{Class, trouble};
use model::draw::{Key, below};
use model::steering::{self, Room};
use model::{QpSite, Stamp, Steering, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a scheme in a NIC knows of its queue pair.
#[pyclass(frozen, module = "ropewalk")]
pub(crate) struct Sender {
    /// Number of the queue pair.
    #[pyo3(get)]
    qp: u32,
    key: Key,
    drawn: AtomicU64,
    now: AtomicU64,
}

#[pymethods]
impl Sender {
    /// Present time by the host's clock, ps.
    #[getter]
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// A uniform number below `n`, a new one at every call: a function of seed and queue pair.
    fn pick(&self, n: usize) -> PyResult<usize> {
        match n {
            0 => Err(PyValueError::new_err("there is no number below 0 to pick")),
            _ => Ok(below(self.key.draw(self.drawn.fetch_add(1, Ordering::Relaxed) + 1), n)),
        }
    }

    fn __repr__(&self) -> String {
        format!("<sender of queue pair {}>", self.qp)
    }
}

/// A packet that starts.
#[pyclass(frozen, module = "ropewalk", get_all)]
pub(crate) struct Sent {
    /// Number of the packet in its queue pair, from 0.
    seq: u64,
    /// Length of its frame, bytes.
    frame: u32,
    /// True for a retransmission.
    again: bool,
    /// Number of later packets in the same message.
    left: u64,
}

/// A reply.
#[pyclass(frozen, module = "ropewalk", get_all)]
pub(crate) struct Reply {
    /// All packets before this number are acknowledged.
    una: u64,
    /// Entropy of the packet that it answers.
    entropy: u16,
    /// True if that packet was marked.
    marked: bool,
    /// True if a switch has cut that packet.
    cut: bool,
}

/// A scheme in Python for one queue pair. Methods that the class lacks are `None`, and all are after it has raised.
pub(super) struct InSender {
    class: Arc<Class>,
    sender: Option<Py<Sender>>,
    qp: u32,
    on_send: Option<Py<PyAny>>,
    on_reply: Option<Py<PyAny>>,
    on_timeout: Option<Py<PyAny>>,
}

impl InSender {
    pub(super) fn new(class: Arc<Class>, object: Option<Py<PyAny>>, site: QpSite<'_>) -> Self {
        let (qp, key) = (site.qp.0, site.key());
        Python::attach(|py| {
            let method = |name: &str| object.as_ref().and_then(|object| object.getattr(py, name).ok());
            let sender = Sender { qp, key, drawn: AtomicU64::new(0), now: AtomicU64::new(0) };
            InSender {
                class,
                sender: Py::new(py, sender).ok(),
                qp,
                on_send: method("on_send"),
                on_reply: method("on_reply"),
                on_timeout: method("on_timeout"),
            }
        })
    }

    /// Calls a method, unless there is none; `None` if it raises.
    fn call<T>(
        &mut self,
        name: &str,
        now: Time,
        call: impl FnOnce(&Self, Python<'_>, &Py<Sender>) -> PyResult<T>,
    ) -> Option<T> {
        Python::attach(|py| {
            let sender = self.sender.as_ref()?;
            sender.get().now.store(now.ps(), Ordering::Relaxed);
            match call(self, py, sender) {
                Ok(value) => Some(value),
                Err(error) => {
                    let us = now.ps() as f64 / 1e6;
                    let place = format!("of queue pair {} at {us} us of its host's clock", self.qp);
                    trouble::tell(py, self.class.raised(py, name, &place, error));
                    (self.on_send, self.on_reply, self.on_timeout) = (None, None, None);
                    None
                }
            }
        })
    }
}

impl Steering for InSender {
    type Annex = Stamp;

    fn on_send(&mut self, now: Time, sent: steering::Sent) -> Stamp {
        if self.on_send.is_none() {
            return Stamp::new(0, now);
        }
        let entropy = self.call("on_send", now, |own, py, sender| {
            let Some(method) = &own.on_send else { return Ok(0) };
            let packet = Sent { seq: sent.seq, frame: sent.frame, again: sent.again, left: sent.left };
            let answer = method.bind(py).call1((sender, packet))?;
            answer.extract::<u16>().map_err(|_| {
                let found = answer.repr().map(|found| found.to_string()).unwrap_or_default();
                PyValueError::new_err(format!("it returned {found}, and not an entropy from 0 to 65535"))
            })
        });
        Stamp::new(entropy.unwrap_or(0), now)
    }

    fn on_reply(&mut self, now: Time, una: u64, annex: &Stamp, _: Room<'_>) -> u32 {
        if self.on_reply.is_some() {
            let reply =
                Reply { una, entropy: annex.entropy(), marked: annex.marked(), cut: annex.cut().is_some() };
            self.call("on_reply", now, |own, py, sender| match &own.on_reply {
                Some(method) => method.bind(py).call1((sender, reply)).map(drop),
                None => Ok(()),
            });
        }
        0
    }

    fn on_timeout(&mut self, now: Time) {
        if self.on_timeout.is_some() {
            self.call("on_timeout", now, |own, py, sender| match &own.on_timeout {
                Some(method) => method.bind(py).call1((sender,)).map(drop),
                None => Ok(()),
            });
        }
    }
}
