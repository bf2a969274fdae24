//! Schemes and congestion controls in Python: a class becomes a part that scenarios name. `python/ropewalk/_own.py` reads the class.

mod control;
mod sender;
mod switch;
mod trouble;

pub(crate) use control::{QueuePair, register_control};
pub(crate) use sender::{Reply, Sender, Sent};
pub(crate) use switch::{Packet, Switch};
pub(crate) use trouble::Trouble;

use crate::errors::named;
use finding::{Finding, code};
use model::annex::NoticeRules;
use model::{Plan, QpSite, Site};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rnic::NicConfig;
use rnic::own::{Maker, Written};
use schemars::Schema;
use schemes::entropies::{Entropies, Mapping};
use schemes::look::Look;
use schemes::own::{Config, Entry};
use schemes::{AnyScheme, AnySteering, Facts, Golden};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A class, and what `_own.py` has read of it.
struct Class {
    class: Py<PyAny>,
    /// Its name in Python, for messages.
    title: String,
    /// Settings and their defaults.
    defaults: Map<String, Value>,
    /// Of schemes: whether it sprays, reads queues, and sits in the sending NIC.
    sprays: bool,
    queues: bool,
    sends: bool,
    /// Of controls: whether it needs marks on replies, whether it has a rate, and the methods that it has.
    marks: bool,
    paces: bool,
    methods: Vec<String>,
    /// A number that no other class has had: its code may be anything.
    code: u64,
}

impl Class {
    fn new(class: Py<PyAny>, title: String, defaults: Map<String, Value>, code: u64) -> Self {
        let (sprays, queues, sends, marks, paces) = Default::default();
        Class { class, title, defaults, sprays, queues, sends, marks, paces, methods: Vec::new(), code }
    }

    /// Settings that these keys say, and defaults for the others.
    fn read(&self, settings: Value) -> Result<Map<String, Value>, String> {
        let mut all = self.defaults.clone();
        let Value::Object(given) = settings else {
            return Err(format!("invalid type: {settings}, expected a table"));
        };
        for (key, value) in given {
            let Some(default) = all.get_mut(&key) else {
                let known: Vec<String> = all.keys().map(|key| format!("`{key}`")).collect();
                return Err(format!("unknown field `{key}`, expected one of {}", known.join(", ")));
            };
            *default = fitted(value, default)?;
        }
        Ok(all)
    }

    /// The JSON Schema of the settings.
    fn schema(&self) -> Schema {
        let key = |(key, default): (&String, &Value)| {
            let about = format!("Default {default} (class {}).", self.title);
            (key.clone(), json!({ "type": kind(default).0, "default": default, "description": about }))
        };
        let keys: Map<String, Value> = self.defaults.iter().map(key).collect();
        let table = json!({ "type": "object", "properties": keys, "additionalProperties": false });
        Schema::try_from(table).unwrap_or_default()
    }

    /// The class judges its settings by raising.
    fn judge(&self, settings: &Map<String, Value>) -> Result<(), Finding> {
        Python::attach(|py| match self.object(py, settings) {
            Ok(_) => Ok(()),
            Err(error) => Err(code::RANGE.at("", format!("{} refuses these settings: {error}", self.title))),
        })
    }

    /// An object with these settings.
    fn object(&self, py: Python<'_>, settings: &Map<String, Value>) -> PyResult<Py<PyAny>> {
        let words = PyDict::new(py);
        for (name, value) in settings {
            let name = name.replace('-', "_");
            match value {
                Value::Bool(value) => words.set_item(name, value)?,
                Value::String(value) => words.set_item(name, value)?,
                Value::Number(value) => match value.as_i64() {
                    Some(value) => words.set_item(name, value)?,
                    None => words.set_item(name, value.as_f64())?,
                },
                _ => {}
            }
        }
        self.class.call(py, (), Some(&words))
    }

    /// What the class has raised in `method`, as one exception with the class's own as its cause.
    /// KeyboardInterrupt, SystemExit and the like are not the class's, and stay as they are.
    fn raised(&self, py: Python<'_>, method: &str, place: &str, error: PyErr) -> PyErr {
        if !error.is_instance_of::<PyException>(py) {
            return error;
        }
        let text = format!("{}.{method} {place}: {error}", self.title);
        let all = named("SchemeError", (text,));
        all.set_cause(py, Some(error));
        all
    }
}

/// A part in Python: a class with its settings.
#[derive(Debug)]
struct InPython {
    class: Arc<Class>,
    settings: Map<String, Value>,
}

impl std::fmt::Debug for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.title)
    }
}

/// Makes the part of a class, behind what a list asks of it.
struct Makes<T: ?Sized>(Arc<Class>, fn(InPython) -> Arc<T>);

impl<T: ?Sized + 'static> Maker<T> for Makes<T> {
    fn default(&self) -> Arc<T> {
        self.1(InPython { class: self.0.clone(), settings: self.0.defaults.clone() })
    }

    fn read(&self, settings: Value) -> Result<Arc<T>, String> {
        let settings = self.0.read(settings)?;
        Ok(self.1(InPython { class: self.0.clone(), settings }))
    }

    fn schema(&self) -> Schema {
        self.0.schema()
    }
}

/// The kind of a value: in JSON Schema, and in words.
fn kind(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Bool(_) => ("boolean", "true or false"),
        Value::Number(number) if number.is_f64() => ("number", "a number"),
        Value::Number(_) => ("integer", "a whole number"),
        _ => ("string", "a string"),
    }
}

/// A value of the kind of its default.
fn fitted(value: Value, default: &Value) -> Result<Value, String> {
    match (default, &value) {
        (Value::Number(wanted), Value::Number(found)) if wanted.is_f64() => Ok(json!(found.as_f64())),
        (Value::Number(_), Value::Number(found)) if !found.is_f64() => Ok(value),
        (Value::Bool(_), Value::Bool(_)) | (Value::String(_), Value::String(_)) => Ok(value),
        _ => Err(format!("invalid type: {value}, expected {}", kind(default).1)),
    }
}

impl Written for InPython {
    fn written(&self) -> Value {
        Value::Object(self.settings.clone())
    }

    fn code(&self) -> Option<u64> {
        Some(self.class.code)
    }
}

impl InPython {
    /// An object for one switch or queue pair; `None` if the class raises, which the run then tells.
    fn object(&self) -> Option<Py<PyAny>> {
        Python::attach(|py| match self.class.object(py, &self.settings) {
            Ok(object) => Some(object),
            Err(error) => {
                trouble::tell(py, self.class.raised(py, "__init__", "when the run begins", error));
                None
            }
        })
    }
}

impl Config for InPython {
    fn look(&self) -> Option<Look> {
        None
    }

    fn trials(&self) -> &'static [&'static str] {
        &[""]
    }

    fn golden(&self) -> Golden {
        Golden::None
    }

    fn facts(&self) -> Facts {
        Facts::plain(self.class.sprays)
    }

    fn validate(&self, _: &Plan) -> Result<Vec<Finding>, Finding> {
        self.class.judge(&self.settings).map(|()| Vec::new())
    }

    fn validate_nic(&self, _: &NicConfig, _: &Plan) -> Result<Vec<Finding>, Finding> {
        Ok(Vec::new())
    }

    fn build(&self, site: Site<'_>) -> AnyScheme {
        if self.class.sends {
            return AnyScheme::Entropies(Entropies::new(Mapping::Hash, site));
        }
        let name = site.fabric().name(site.node).to_owned();
        AnyScheme::Custom(Box::new(switch::InSwitch::new(self.class.clone(), self.object(), name)))
    }

    fn steer(&self, site: QpSite<'_>) -> AnySteering {
        match self.class.sends {
            true => {
                AnySteering::Custom(Box::new(sender::InSender::new(self.class.clone(), self.object(), site)))
            }
            false => AnySteering::None(schemes::Unsteered),
        }
    }

    fn notices(&self, _: &Plan) -> Option<NoticeRules> {
        None
    }

    fn writes(&self) -> bool {
        self.class.sends
    }
}

/// Makes a scheme of a class, in the place of one that a class has made before. Settings come as JSON: an object of defaults.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "what `_own.py` reads of a class")]
pub(crate) fn register_scheme(
    class: Py<PyAny>,
    title: String,
    name: String,
    about: String,
    defaults: &str,
    sprays: bool,
    queues: bool,
    sends: bool,
    code: u64,
) -> PyResult<()> {
    let wrong = |text: String| named("RequestError", (text,));
    let defaults = serde_json::from_str(defaults).map_err(|error| wrong(error.to_string()))?;
    let class = Arc::new(Class { sprays, queues, sends, ..Class::new(class, title, defaults, code) });
    // A scheme lives as long as the program, as those of Rust do. A notebook makes few.
    let maker = Box::leak(Box::new(Makes::<dyn Config>(class, |scheme| Arc::new(scheme))));
    Entry::of(String::leak(name), String::leak(about), maker).replace().map_err(wrong)
}
