//! Single settings of a scenario, with their values and the sources of these values.

use crate::check::Checked;
use crate::{hardware, show};
use rnic::CongestionConfig;
use serde::Serialize;
use toml::Value;

/// What stands behind the value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Nobody has measured or published it.
    Assumed,
    /// Our choice.
    OurChoice,
    /// A paper, a standard, or another program.
    Published,
    /// The vendor.
    Vendor,
    /// A fit to measurements.
    Fitted,
    /// A measurement.
    Measured,
    /// The author of the scenario.
    Written,
}

impl Evidence {
    /// The evidence that the words of a source name.
    fn of(source: &str) -> Self {
        let first = |word: &str| source.to_lowercase().starts_with(word);
        match () {
            () if first("assumed") => Evidence::Assumed,
            () if first("our choice") => Evidence::OurChoice,
            () if first("vendor") => Evidence::Vendor,
            () if first("fitted") => Evidence::Fitted,
            () if first("measured") => Evidence::Measured,
            () => Evidence::Published,
        }
    }
}

/// A setting with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Dotted key.
    pub key: String,
    /// Value, as TOML without quotes around text.
    pub value: String,
    /// Source of the value, in words.
    pub source: String,
    /// What stands behind the value.
    pub evidence: Evidence,
}

impl Checked {
    /// The setting with this dotted key; `None` if the scenario has none.
    pub fn setting(&self, key: &str) -> Option<Setting> {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        let whole = show::table(&self.scenario);
        let value = path
            .iter()
            .try_fold(&Value::Table(whole.clone()), |at, part| match at {
                Value::Array(items) => items.get(part.parse::<usize>().ok()?),
                _ => at.get(part.as_str()),
            })?
            .clone();
        let text = match &value {
            Value::String(text) => text.clone(),
            other => crate::toml_text::inline(other),
        };
        let source = match self.writes(&path) {
            true => "the scenario".to_owned(),
            false => match hardware::source(&whole, &path, &value) {
                Some((model, source)) => format!("{model}: {source}"),
                None => of_default(&show::meaning(&self.scenario, &path)?).to_owned(),
            },
        };
        let evidence =
            match self.writes(&path) {
                true => Evidence::Written,
                false => Evidence::of(source.split_once(": ").map_or(&*source, |(model, rest)| {
                    if hardware::is_model(model) { rest } else { &source }
                })),
            };
        Some(Setting { key: key.to_owned(), value: text, source, evidence })
    }
}

/// Name of the congestion control that ignores congestion.
pub fn no_control() -> &'static str {
    let ignores = |control: &CongestionConfig| control.facts().evidence == rnic::Evidence::None;
    CongestionConfig::all().find(ignores).map_or("", |control| control.name())
}

/// The source in a description: what stands in the first parentheses behind the word `Default`.
fn of_default(about: &str) -> &str {
    let inside = || {
        let (_, rest) = about.split_once("Default")?;
        let (_, rest) = rest.split_once('(')?;
        let mut depth = 1;
        let end = rest.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        })?;
        Some(&rest[..end])
    };
    inside().unwrap_or("the program's default")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load;

    #[test]
    fn a_setting_tells_its_value_and_its_source() {
        let sets = ["switch.buffer=32MB".to_owned(), "nic.model=connectx-7".to_owned()];
        let checked = load("quickstart", &sets).unwrap();
        let of = |key: &str| checked.setting(key).unwrap();
        let least = of("nic.congestion.dcqcn.min-rate");
        assert_eq!((&*least.value, &*least.source), ("1Mbps", "vendor: DOCA"));
        assert_eq!(least.evidence, Evidence::Vendor);
        assert_eq!(of("switch.buffer").evidence, Evidence::Written);
        let timeout = of("nic.timeout");
        assert!(timeout.source.starts_with("connectx-7: assumed as measured"), "{timeout:?}");
        assert_eq!(timeout.evidence, Evidence::Assumed);
        assert_eq!(of("nic.clock-spread").evidence, Evidence::OurChoice);
        assert_eq!(of("switch.ecn.kmin").evidence, Evidence::Published);
        assert_eq!(checked.setting("nic.congestion.hpcc.eta"), None);
    }
}
