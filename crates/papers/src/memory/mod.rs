//! Switch memory by the papers' formulas, one file per scheme with a formula.

pub mod flowcut;
pub mod themis;

pub use flowcut::{FlowcutInputs, FlowcutMemory};
pub use themis::{ThemisInputs, ThemisMemory, of_plan};

/// The parts of a `KEY=VALUE`.
struct Assignment<'a> {
    key: &'a str,
    value: &'a str,
}

impl<'a> Assignment<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or(format!("`{text}` is not KEY=VALUE"))?;
        Ok(Assignment { key: key.trim(), value: value.trim().trim_matches('"') })
    }

    fn wrong(&self, why: impl std::fmt::Display) -> String {
        format!("{} = {}: {why}", self.key, self.value)
    }

    /// A whole number above 0.
    fn whole(&self) -> Result<u64, String> {
        match self.value.parse::<u64>() {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(self.wrong("a whole number above 0 is expected")),
        }
    }

    /// A quantity with its unit.
    fn quantity<T: std::str::FromStr<Err: std::fmt::Display>>(&self) -> Result<T, String> {
        self.value.parse().map_err(|e| self.wrong(e))
    }
}
