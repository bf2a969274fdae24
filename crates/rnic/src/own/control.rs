//! Congestion controls of one's own.

use super::{Entry, List, Maker, Settings, Written, schema_of};
use crate::notification::CnpScope;
use crate::{Advised, AnyCongestion, CongestionConfig, Control, ControlFacts, Path, Variation};
use finding::Finding;
use model::{Rate, Time};
use schemars::Schema;
use serde_json::Value;
use std::marker::PhantomData;
use std::sync::Arc;

pub(crate) static CONTROLS: List<dyn ControlParts> = List::new("congestion control", CongestionConfig::NAMES);

/// Adds the settings of the program's own controls to the JSON Schema of [`CongestionConfig`].
pub(crate) fn listed(schema: &mut Schema) {
    CONTROLS.listed(schema);
}

/// A congestion control that a program adds to the list.
#[derive(Clone, Copy, Debug)]
pub struct ControlEntry(pub(super) Entry<dyn ControlParts>);

impl ControlEntry {
    /// A control: its name as a scenario spells it, and a sentence that tells what it is.
    pub const fn new<C>(name: &'static str, about: &'static str) -> Self
    where
        C: Control<State: Send + 'static> + Settings,
    {
        ControlEntry(Entry { name, about, maker: &Of::<C>(PhantomData) })
    }

    /// A control whose settings `maker` makes.
    pub const fn of(
        name: &'static str,
        about: &'static str,
        maker: &'static dyn Maker<dyn ControlParts>,
    ) -> Self {
        ControlEntry(Entry { name, about, maker })
    }

    /// Adds the control to the list, in the place of an added one of the same name. Scenarios that have been read keep theirs.
    ///
    /// # Errors
    /// If a control of this crate has the name, or if it is no name.
    pub fn replace(self) -> Result<(), String> {
        CONTROLS.replace(self.0)
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.0.name
    }
}

/// Makes settings of one type.
struct Of<C>(PhantomData<fn() -> C>);

impl<C: Control<State: Send + 'static> + Settings> Maker<dyn ControlParts> for Of<C> {
    fn default(&self) -> Arc<dyn ControlParts> {
        let mut config = C::default();
        config.resolve();
        Arc::new(Config(config))
    }

    fn read(&self, settings: Value) -> Result<Arc<dyn ControlParts>, String> {
        let mut config: C = serde_json::from_value(settings).map_err(|error| error.to_string())?;
        config.resolve();
        Ok(Arc::new(Config(config)))
    }

    fn schema(&self) -> Schema {
        schema_of::<C>()
    }
}

/// [`Control`] behind a pointer.
pub trait ControlParts: Written {
    /// See [`Control::TRIALS`].
    fn trials(&self) -> &'static [&'static str];
    /// See [`Control::DECISIVE`].
    fn decisive(&self) -> &'static [&'static str];
    /// See [`Control::VARIATIONS`].
    fn variations(&self) -> &'static [Variation];
    /// See [`Control::facts`].
    fn facts(&self) -> ControlFacts;
    /// See [`Control::validate`].
    ///
    /// # Errors
    /// The first impossible value.
    fn validate(&self) -> Result<(), Finding>;
    /// See [`Control::control`].
    fn control(&self, line_rate: Rate, path: Option<&Path>) -> AnyCongestion;
    /// See [`Control::longest_gap`].
    fn longest_gap(&self, bytes: u64, rtt: Time) -> Time;
    /// See [`Control::advised`].
    fn advised(&self) -> Advised;
    /// See [`Control::cnp_scope`].
    fn cnp_scope(&self) -> CnpScope;
    /// See [`Control::heeds_penalties`].
    fn heeds_penalties(&self) -> bool;
    /// See [`Control::warning`].
    fn warning(&self, rates: &[Rate]) -> Option<Finding>;
}

#[derive(Debug)]
struct Config<C>(C);

impl<C: Settings> Written for Config<C> {
    fn written(&self) -> Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }
}

impl<C: Control<State: Send + 'static> + Settings> ControlParts for Config<C> {
    fn trials(&self) -> &'static [&'static str] {
        C::TRIALS
    }

    fn decisive(&self) -> &'static [&'static str] {
        C::DECISIVE
    }

    fn variations(&self) -> &'static [Variation] {
        C::VARIATIONS
    }

    fn facts(&self) -> ControlFacts {
        self.0.facts()
    }

    fn validate(&self) -> Result<(), Finding> {
        self.0.validate()
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> AnyCongestion {
        AnyCongestion::Custom(Box::new(self.0.control(line_rate, path)))
    }

    fn longest_gap(&self, bytes: u64, rtt: Time) -> Time {
        self.0.longest_gap(bytes, rtt)
    }

    fn advised(&self) -> Advised {
        self.0.advised()
    }

    fn cnp_scope(&self) -> CnpScope {
        self.0.cnp_scope()
    }

    fn heeds_penalties(&self) -> bool {
        self.0.heeds_penalties()
    }

    fn warning(&self, rates: &[Rate]) -> Option<Finding> {
        self.0.warning(rates)
    }
}
