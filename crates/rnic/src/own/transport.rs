//! Recovery modes of one's own.

use super::{Entry, List, Maker, Own, Settings, Written, schema_of};
use crate::ack::Answers;
use crate::ends::Makes;
use crate::limits::PSN_LIMIT;
use crate::timeout::Timing;
use crate::{TransportConfig, TransportFacts};
use finding::Finding;
use model::{Receiver, Sender};
use schemars::Schema;
use serde_json::Value;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// A recovery mode of one's own with its settings.
pub(crate) type OwnTransport = Own<dyn TransportParts>;

pub(crate) static TRANSPORTS: List<dyn TransportParts> = List::new("recovery mode", TransportConfig::NAMES);

/// Adds the settings of the program's own recovery modes to the JSON Schema of [`TransportConfig`].
pub(crate) fn listed(schema: &mut Schema) {
    TRANSPORTS.listed(schema);
}

/// The settings of a recovery mode outside this crate: what its ends are, and what others must know of it.
///
/// An end may be a variant of a built-in one: [`TransportConfig::sender`] and [`TransportConfig::receiver`] make those.
pub trait Transport {
    /// The sending end of a queue pair.
    type Sender: Sender + Send + 'static;

    /// The receiving end.
    type Receiver: Receiver + Send + 'static;

    /// Settings with which tests run the mode: texts that follow the head of its table, and may open other tables. Small
    /// numbers make rare events happen in short runs. Default: its defaults.
    const TRIALS: &'static [&'static str] = &[""];

    /// Facts that others must know of the mode. [`TransportFacts::heeds_notices`] is taken for false.
    fn facts(&self) -> TransportFacts;

    /// Checks whether the values are possible.
    ///
    /// # Errors
    /// The first impossible value.
    fn validate(&self) -> Result<(), Finding> {
        Ok(())
    }

    /// Most packets that a sender has outstanding. Default: as many as 24-bit PSNs can tell apart.
    fn most_outstanding(&self) -> u32 {
        PSN_LIMIT
    }

    /// The sender of one queue pair, with this retransmission timer.
    fn sender(&self, timing: &Timing) -> Self::Sender;

    /// The receiver of one queue pair, whose NIC answers so.
    fn receiver(&self, answers: &Answers) -> Self::Receiver;
}

/// A recovery mode that a program adds to the list.
#[derive(Clone, Copy, Debug)]
pub struct TransportEntry(pub(super) Entry<dyn TransportParts>);

impl TransportEntry {
    /// A recovery mode: its name as a scenario spells it, and a sentence that tells what it is.
    pub const fn new<C: Transport + Settings>(name: &'static str, about: &'static str) -> Self {
        TransportEntry(Entry { name, about, maker: &Of::<C>(PhantomData) })
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.0.name
    }
}

/// Makes settings of one type.
struct Of<C>(PhantomData<fn() -> C>);

impl<C: Transport + Settings> Maker<dyn TransportParts> for Of<C> {
    fn default(&self) -> Arc<dyn TransportParts> {
        Arc::new(Config(C::default()))
    }

    fn read(&self, settings: Value) -> Result<Arc<dyn TransportParts>, String> {
        match serde_json::from_value::<C>(settings) {
            Ok(config) => Ok(Arc::new(Config(config))),
            Err(error) => Err(error.to_string()),
        }
    }

    fn schema(&self) -> Schema {
        schema_of::<C>()
    }
}

/// [`Transport`] behind a pointer.
pub trait TransportParts: Written {
    /// See [`Transport::TRIALS`].
    fn trials(&self) -> &'static [&'static str];
    /// See [`Transport::facts`].
    fn facts(&self) -> TransportFacts;
    /// See [`Transport::validate`].
    ///
    /// # Errors
    /// The first impossible value.
    fn validate(&self) -> Result<(), Finding>;
    /// See [`Transport::most_outstanding`].
    fn most_outstanding(&self) -> u32;
    /// See [`Transport::sender`].
    fn sender(&self, timing: &Timing) -> Box<dyn Sender + Send>;
    /// See [`Transport::receiver`].
    fn receiver(&self, answers: &Answers) -> Box<dyn Receiver + Send>;
}

#[derive(Debug)]
struct Config<C>(C);

impl<C: Settings> Written for Config<C> {
    fn written(&self) -> Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }
}

impl<C: Transport + Settings> TransportParts for Config<C> {
    fn trials(&self) -> &'static [&'static str] {
        C::TRIALS
    }

    fn facts(&self) -> TransportFacts {
        TransportFacts { heeds_notices: false, ..self.0.facts() }
    }

    fn validate(&self) -> Result<(), Finding> {
        self.0.validate()
    }

    fn most_outstanding(&self) -> u32 {
        self.0.most_outstanding().clamp(1, PSN_LIMIT)
    }

    fn sender(&self, timing: &Timing) -> Box<dyn Sender + Send> {
        Box::new(self.0.sender(timing))
    }

    fn receiver(&self, answers: &Answers) -> Box<dyn Receiver + Send> {
        Box::new(self.0.receiver(answers))
    }
}

impl OwnTransport {
    /// The mode, its settings as a scenario writes them, and what ends of a NIC share. A Debug by hand may leave out settings.
    fn what(&self, shared: &impl Debug) -> Arc<str> {
        format!("{} {} {shared:?}", self.name(), self.written()).into()
    }

    /// Makes senders with this timer.
    pub(crate) fn sending(&self, timing: Timing) -> Makes<dyn Sender + Send> {
        let (mode, what) = (self.clone(), self.what(&timing));
        let most_outstanding = self.most_outstanding();
        Makes { what, end: Arc::new(move || mode.sender(&timing)), most_outstanding }
    }

    /// Makes receivers that answer so.
    pub(crate) fn receiving(&self, answers: Answers) -> Makes<dyn Receiver + Send> {
        let (mode, what) = (self.clone(), self.what(&answers));
        let most_outstanding = self.most_outstanding();
        Makes { what, end: Arc::new(move || mode.receiver(&answers)), most_outstanding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeout::Timeout;
    use crate::{AnyReceiver, AnySender};
    use model::Time;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use std::fmt;

    /// A mode whose Debug does not show its setting.
    #[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Quiet {
        patience: u32,
    }

    impl Debug for Quiet {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Quiet")
        }
    }

    fn base() -> TransportConfig {
        TransportConfig::named(TransportConfig::NAMES[0]).unwrap()
    }

    impl Transport for Quiet {
        type Sender = AnySender;
        type Receiver = AnyReceiver;

        fn facts(&self) -> TransportFacts {
            base().facts()
        }

        fn sender(&self, timing: &Timing) -> AnySender {
            base().sender(timing)
        }

        fn receiver(&self, answers: &Answers) -> AnyReceiver {
            base().receiver(answers)
        }
    }

    #[test]
    fn ends_with_other_settings_are_other_ends_whatever_debug_shows() {
        let list = List::new("recovery mode", &[]);
        list.add(TransportEntry::new::<Quiet>("quiet", "").0);
        let of = |patience: u32| {
            list.named("quiet").unwrap().read(serde_json::json!({ "patience": patience })).unwrap()
        };
        let (timing, answers) = (Timing::new(Timeout::Fixed(Time(1)), None), Answers::default());
        assert!(of(1).sending(timing.clone()) == of(1).sending(timing.clone()));
        assert!(of(1).sending(timing.clone()) != of(2).sending(timing));
        assert!(of(1).receiving(answers.clone()) != of(2).receiving(answers));
    }
}
