//! Schemes from outside this crate: a program gives them names when it starts, and scenarios use them as any other.
//!
//! A scheme of one's own is a `Config` with [`Recipe`], as in this crate. What the list does by its macro for a scheme of this crate, an
//! [`Entry`] does at run time. [`rnic::own`] has what all kinds of parts share.

use crate::{
    AnyScheme, AnySteering, Facts, FeedbackConfig, Golden, Look, Recipe, SchemeConfig, Steers, Unsteered,
};
use finding::Finding;
use model::annex::NoticeRules;
use model::{Plan, QpSite, Site};
use rnic::own::{List, Maker, Settings, Written, schema_of};
use rnic::{CongestionConfig, NicConfig, TransportConfig};
use schemars::Schema;
use serde_json::Value;
use std::marker::PhantomData;
use std::sync::Arc;

/// A scheme of one's own with its settings.
pub type Own = rnic::own::Own<dyn Config>;

static SCHEMES: List<dyn Config> = List::new("scheme", SchemeConfig::BUILT_IN);

/// A scheme that a program adds to the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry(rnic::own::Entry<dyn Config>);

impl Entry {
    /// A scheme that sits in switches: its name as a scenario spells it, and a sentence that tells what it is.
    pub const fn in_switches<C>(name: &'static str, about: &'static str) -> Entry
    where
        C: Recipe<Scheme: Send + 'static> + Settings,
    {
        Entry(rnic::own::Entry { name, about, maker: &Of::<InSwitches<C>>(PhantomData) })
    }

    /// A scheme that sits in sending NICs, with a part in switches or without.
    pub const fn in_senders<C>(name: &'static str, about: &'static str) -> Entry
    where
        C: Steers<Scheme: Send + 'static, Steering: Send + 'static> + Settings,
    {
        Entry(rnic::own::Entry { name, about, maker: &Of::<InSenders<C>>(PhantomData) })
    }

    /// A scheme whose settings `maker` makes.
    pub const fn of(name: &'static str, about: &'static str, maker: &'static dyn Maker<dyn Config>) -> Entry {
        Entry(rnic::own::Entry { name, about, maker })
    }

    /// Adds the scheme to the list, in the place of an added one of the same name. Scenarios that have been read keep theirs.
    ///
    /// # Errors
    /// If a scheme or a feedback of this crate has the name, or if it is no name.
    pub fn replace(self) -> Result<(), String> {
        match unfit(self.0.name) {
            Some(why) => Err(format!("a scheme cannot have the name `{}`: {why}", self.0.name)),
            None => SCHEMES.replace(self.0),
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.0.name
    }
}

/// Why a scheme that is added to those of this crate cannot have this name; `None` if it can.
pub fn unfit(name: &str) -> Option<&'static str> {
    let taken = SchemeConfig::BUILT_IN.contains(&name) || FeedbackConfig::NAMES.contains(&name);
    rnic::own::unfit(name).or(taken.then_some("there is a scheme or a feedback of that name already"))
}

/// Why a scheme, a recovery mode and a congestion control cannot all have this name; `None` if they can.
pub fn unfit_for_all(name: &str) -> Option<&'static str> {
    let taken = TransportConfig::NAMES.contains(&name) || CongestionConfig::NAMES.contains(&name);
    unfit(name).or(taken.then_some("there is a recovery mode or a congestion control of that name already"))
}

/// Adds schemes to the list. A program does so before it reads a scenario; an entry may be added again.
///
/// # Panics
/// If a name is taken or is no name.
pub fn add(entries: &[Entry]) {
    for Entry(entry) in entries {
        let why = unfit(entry.name).unwrap_or_default();
        assert!(why.is_empty(), "a scheme cannot have the name `{}`: {why}", entry.name);
        SCHEMES.add(*entry);
    }
}

/// Names of all schemes: those of this crate, and those that the program has added.
pub(crate) fn names() -> &'static [&'static str] {
    SCHEMES.names()
}

/// The added scheme of that name with its defaults.
pub(crate) fn named(name: &str) -> Option<Own> {
    SCHEMES.named(name)
}

/// The place that an error in the settings of an added scheme names, below the table of schemes, and the rest of the text; `None` for
/// other errors.
pub fn place(text: &str) -> Option<(Vec<String>, &str)> {
    SCHEMES.place(text)
}

/// Adds the settings of the program's own schemes to the JSON Schema of [`SchemeConfig`].
pub(crate) fn listed(schema: &mut Schema) {
    SCHEMES.listed(schema);
}

/// Makes settings behind a wrapper that knows where a scheme sits.
struct Of<W>(PhantomData<fn() -> W>);

impl<W: Wraps + Config + 'static> Maker<dyn Config> for Of<W> {
    fn default(&self) -> Arc<dyn Config> {
        Arc::new(W::of(W::Settings::default()))
    }

    fn read(&self, settings: Value) -> Result<Arc<dyn Config>, String> {
        match serde_json::from_value(settings) {
            Ok(settings) => Ok(Arc::new(W::of(settings))),
            Err(error) => Err(error.to_string()),
        }
    }

    fn schema(&self) -> Schema {
        schema_of::<W::Settings>()
    }
}

/// A wrapper of settings.
trait Wraps {
    type Settings: Settings;
    fn of(settings: Self::Settings) -> Self;
}

impl<C: Settings> Wraps for InSwitches<C> {
    type Settings = C;
    fn of(settings: C) -> Self {
        InSwitches(settings)
    }
}

impl<C: Settings> Wraps for InSenders<C> {
    type Settings = C;
    fn of(settings: C) -> Self {
        InSenders(settings)
    }
}

impl<C: Settings> Written for InSwitches<C> {
    fn written(&self) -> Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }
}

impl<C: Settings> Written for InSenders<C> {
    fn written(&self) -> Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }
}

/// [`Recipe`] and [`Steers`] behind a pointer.
pub trait Config: Written {
    /// See [`Recipe::LOOK`].
    fn look(&self) -> Option<Look>;
    /// See [`Recipe::TRIALS`].
    fn trials(&self) -> &'static [&'static str];
    /// See [`Recipe::GOLDEN`].
    fn golden(&self) -> Golden;
    /// See [`Recipe::facts`].
    fn facts(&self) -> Facts;
    /// See [`Recipe::validate`].
    ///
    /// # Errors
    /// The first field that cannot work.
    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding>;
    /// See [`Recipe::validate_nic`].
    ///
    /// # Errors
    /// The first field that cannot work.
    fn validate_nic(&self, nic: &NicConfig, plan: &Plan) -> Result<Vec<Finding>, Finding>;
    /// See [`Recipe::build`].
    fn build(&self, site: Site<'_>) -> AnyScheme;
    /// See [`Steers::steer`].
    fn steer(&self, site: QpSite<'_>) -> AnySteering;
    /// See [`Steers::notices`].
    fn notices(&self, plan: &Plan) -> Option<NoticeRules>;
    /// True if the scheme writes on packets.
    fn writes(&self) -> bool;
}

#[derive(Debug)]
struct InSwitches<C>(C);

#[derive(Debug)]
struct InSenders<C>(C);

/// What both kinds of schemes do alike.
macro_rules! alike {
    () => {
        fn look(&self) -> Option<Look> {
            C::LOOK
        }

        fn trials(&self) -> &'static [&'static str] {
            C::TRIALS
        }

        fn golden(&self) -> Golden {
            C::GOLDEN
        }

        fn facts(&self) -> Facts {
            self.0.facts()
        }

        fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
            self.0.validate(plan)
        }

        fn validate_nic(&self, nic: &NicConfig, plan: &Plan) -> Result<Vec<Finding>, Finding> {
            self.0.validate_nic(nic, plan)
        }

        fn build(&self, site: Site<'_>) -> AnyScheme {
            AnyScheme::Custom(Box::new(self.0.build(site)))
        }
    };
}

impl<C: Recipe<Scheme: Send + 'static> + Settings> Config for InSwitches<C> {
    alike!();

    fn steer(&self, _: QpSite<'_>) -> AnySteering {
        AnySteering::None(Unsteered)
    }

    fn notices(&self, _: &Plan) -> Option<NoticeRules> {
        None
    }

    fn writes(&self) -> bool {
        self.0.facts().tags
    }
}

impl<C: Steers<Scheme: Send + 'static, Steering: Send + 'static> + Settings> Config for InSenders<C> {
    alike!();

    fn steer(&self, site: QpSite<'_>) -> AnySteering {
        AnySteering::Custom(Box::new(self.0.steer(site)))
    }

    fn notices(&self, plan: &Plan) -> Option<NoticeRules> {
        self.0.notices(plan)
    }

    fn writes(&self) -> bool {
        true
    }
}
