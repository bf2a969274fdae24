//! Classes of the queue pairs of a NIC.

use finding::{Finding, code};
use model::Rate;
use model::plan::{Classes, Service};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A class of queue pairs at each port of a NIC.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct NicClass {
    /// Traffic classes (`[class.NAME]`, `"foreground"`, `"background"`) whose queue pairs belong to the class. Default: those that no
    /// other class names; exactly one class takes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// Weight of the class, with the meaning of a weight in `switch.classes`. Default: none, and the class leaves before all classes
    /// below it and before all classes with a weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Most that the class sends, preamble and gap included, whatever the link has left. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

impl NicClass {
    /// Order of its packets among those of other classes.
    pub fn service(&self) -> Service {
        self.weight.map_or(Service::Strict, Service::Weighted)
    }

    /// Checks the classes of a NIC.
    pub(crate) fn validate(table: &[NicClass]) -> Result<(), Finding> {
        let most = Classes::MOST;
        if table.len() > most {
            let text = format!("expected at most {most} classes, found {}", table.len());
            return Err(code::RANGE.at("classes", text));
        }
        let mut named: Vec<&str> = Vec::new();
        for (i, class) in table.iter().enumerate() {
            let wrong = |key: &str, text: &str| Err(code::RANGE.at(&format!("classes.{i}.{key}"), text));
            for (n, name) in class.of.iter().enumerate() {
                if named.contains(&name.as_str()) {
                    return wrong(&format!("of.{n}"), "a class has this traffic class already");
                }
                named.push(name);
            }
            if class.weight.is_some_and(|weight| !(1..=Service::MOST_WEIGHT).contains(&weight)) {
                let text = format!("expected a weight from 1 to {}", Service::MOST_WEIGHT);
                return wrong("weight", &text);
            }
            if class.rate == Some(Rate(0)) {
                return wrong("rate", "must be above 0");
            }
        }
        match table.iter().filter(|class| class.of.is_empty()).count() {
            0 if !table.is_empty() => Err(code::MISSING.at("classes", "no class is without `of`")),
            0 | 1 => Ok(()),
            _ => Err(code::CONFLICT.at("classes", "two classes are without `of`")),
        }
    }
}
