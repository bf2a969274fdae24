//! What the page asks for.

use scenario::{Checked, Finding, Source, builtin};
use serde::Deserialize;
use serde_json::{Value, json};

/// A run that the page asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Name of a built-in scenario, or of the text.
    pub scenario: String,
    /// The scenario's text; none for a built-in one.
    #[serde(default)]
    pub text: Option<String>,
    /// Changes as in `--set KEY=VALUE`.
    #[serde(default)]
    pub set: Vec<String>,
}

impl Asked {
    /// Reads the page's JSON.
    ///
    /// # Errors
    /// If the page asks in another form.
    pub fn read(json: &str) -> Result<Asked, Finding> {
        serde_json::from_str(json)
            .map_err(|error| scenario::code::OPTION.plain(format!("the page asked wrongly: {error}")))
    }

    /// The scenario's text.
    ///
    /// # Errors
    /// If there is no such built-in scenario.
    pub fn source(&self) -> Result<Source, Finding> {
        match &self.text {
            Some(text) => Ok(Source::new(format!("{}.toml", self.scenario), text.as_str())),
            None => match builtin::find(&self.scenario) {
                Some(found) => Ok(Source::new(found.name, found.text)),
                None => scenario::find(&self.scenario),
            },
        }
    }

    /// The checked scenario.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self) -> Result<Checked, Finding> {
        let checked = scenario::check(&self.source()?, &self.set)?;
        if checked.plan.posted.is_some() {
            let text = "inference serving needs a program beside the engine, which a browser does not have";
            return Err(scenario::code::PROGRAM.plain(text).with_help("`ropewalk run` serves"));
        }
        Ok(checked)
    }
}

/// A mistake for the page.
pub(crate) fn mistake(error: &Finding) -> Value {
    let place = error
        .place
        .as_ref()
        .map(|place| json!({ "file": place.file, "line": place.line, "column": place.column }));
    json!({ "error": { "message": error.text, "help": error.help, "place": place } })
}
