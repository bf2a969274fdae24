//! Schemes from outside this crate: a program gives them names when it starts, and scenarios use them as any other.
//!
//! A scheme of one's own is a `Config` with [`Recipe`], as in this crate. What the list does by its macro for a scheme of this crate, an
//! [`Entry`] does at run time.

use crate::{AnyScheme, AnySteering, Facts, Golden, Look, Recipe, Steers, Unsteered};
use finding::Finding;
use model::annex::NoticeRules;
use model::{Plan, QpSite, Site};
use rnic::NicConfig;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

/// A scheme that a program adds to the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    name: &'static str,
    about: &'static str,
    default: fn() -> Arc<dyn Config>,
    read: fn(Value) -> Result<Arc<dyn Config>, serde_json::Error>,
    schema: fn() -> Schema,
}

impl Entry {
    /// A scheme that sits in switches: its name as a scenario spells it, and a sentence that tells what it is.
    pub const fn in_switches<C>(name: &'static str, about: &'static str) -> Entry
    where
        C: Recipe<Scheme: Send + 'static> + Settings,
    {
        Entry {
            name,
            about,
            default: || Arc::new(InSwitches(C::default())),
            read: |value| Ok(Arc::new(InSwitches(serde_json::from_value::<C>(value)?))),
            schema: settings::<C>,
        }
    }

    /// A scheme that sits in sending NICs, with a part in switches or without.
    pub const fn in_senders<C>(name: &'static str, about: &'static str) -> Entry
    where
        C: Steers<Scheme: Send + 'static, Steering: Send + 'static> + Settings,
    {
        Entry {
            name,
            about,
            default: || Arc::new(InSenders(C::default())),
            read: |value| Ok(Arc::new(InSenders(serde_json::from_value::<C>(value)?))),
            schema: settings::<C>,
        }
    }
}

/// What the settings of a scheme of one's own must be. Every type with these derives is.
pub trait Settings:
    Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
}

impl<C> Settings for C where
    C: Clone
        + Debug
        + Default
        + PartialEq
        + Serialize
        + DeserializeOwned
        + JsonSchema
        + Send
        + Sync
        + 'static
{
}

/// The JSON Schema of settings, which refers to nothing outside itself.
fn settings<C: JsonSchema>() -> Schema {
    SchemaSettings::draft07()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<C>()
}

/// The list, and the names of all schemes.
struct List {
    entries: Vec<Entry>,
    names: Vec<&'static str>,
}

static LIST: OnceLock<List> = OnceLock::new();

fn list() -> &'static List {
    LIST.get_or_init(|| List { entries: Vec::new(), names: crate::SchemeConfig::BUILT_IN.to_vec() })
}

/// Why a name is not free.
const TAKEN: &str = "there is a scheme or a feedback of that name already";

/// Why a scheme that is added to those of this crate cannot have this name; `None` if it can.
pub fn unfit(name: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.ends_with('-') || !name.chars().all(plain)
    {
        return Some("small letters, digits and `-` can, and a letter comes first");
    }
    let taken = crate::SchemeConfig::BUILT_IN.contains(&name) || crate::FeedbackConfig::NAMES.contains(&name);
    taken.then_some(TAKEN)
}

/// Adds schemes to the list. A program does so before it reads a scenario; the same schemes may be added again.
///
/// # Panics
/// If a name is taken or is no name, and if another list has been used already.
pub fn add(entries: &[Entry]) {
    let mut names = crate::SchemeConfig::BUILT_IN.to_vec();
    for entry in entries {
        let twice = names.contains(&entry.name).then_some(TAKEN);
        let why = unfit(entry.name).or(twice).unwrap_or_default();
        assert!(why.is_empty(), "a scheme cannot have the name `{}`: {why}", entry.name);
        names.push(entry.name);
    }
    let known = &LIST.get_or_init(|| List { entries: entries.to_vec(), names: names.clone() }).names;
    assert_eq!(*known, names, "schemes are added once, before the first scenario is read");
}

/// Names of all schemes: those of this crate, and those that the program has added.
pub(crate) fn names() -> &'static [&'static str] {
    &list().names
}

/// The entry of that name.
fn entry(name: &str) -> Option<&'static Entry> {
    list().entries.iter().find(|entry| entry.name == name)
}

/// The first key whose value is wrong by itself.
fn wrong_key<'a>(entry: &Entry, settings: &'a Value) -> Option<&'a str> {
    let alone = |(key, value): &(&String, &Value)| (entry.read)(json!({ key.as_str(): value })).is_err();
    // An unknown key is named by the error.
    let known = |key: &str| (entry.default)().written().get(key).is_some();
    settings.as_object()?.iter().find(alone).map(|(key, _)| key.as_str()).filter(|key| known(key))
}

/// The place that an error of [`Own::read`] names, below the table of schemes, and the rest of the text; `None` for other errors.
pub fn place(text: &str) -> Option<(Vec<String>, &str)> {
    let (place, rest) = text.strip_prefix('`')?.split_once("`: ")?;
    let parts: Vec<String> = place.split('.').map(str::to_owned).collect();
    entry(&parts[0]).map(|_| (parts, rest))
}

/// Adds the settings of the program's own schemes to the JSON Schema of [`crate::SchemeConfig`].
pub(crate) fn listed(schema: &mut Schema) {
    let Some(Value::Array(choices)) = schema.get_mut("oneOf") else { return };
    choices.extend(list().entries.iter().map(|entry| {
        let mut of = (entry.schema)();
        of.remove("$schema");
        json!({
            "description": entry.about,
            "type": "object",
            "properties": { entry.name: of },
            "required": [entry.name],
            "additionalProperties": false,
        })
    }));
}

/// A scheme of one's own with its settings.
#[derive(Clone, Debug)]
pub struct Own {
    entry: &'static Entry,
    config: Arc<dyn Config>,
}

impl Own {
    /// The scheme of that name with its defaults.
    pub(crate) fn named(name: &str) -> Option<Own> {
        entry(name).map(|entry| Own { entry, config: (entry.default)() })
    }

    /// The scheme with these settings.
    ///
    /// # Errors
    /// What is wrong with them; the text begins with the [`place`].
    pub(crate) fn read(self, settings: Value) -> Result<Own, String> {
        let entry = self.entry;
        let wrong = |error: serde_json::Error| match wrong_key(entry, &settings) {
            Some(key) => format!("`{}.{key}`: {error}", entry.name),
            None => format!("`{}`: {error}", entry.name),
        };
        Ok(Own { config: (entry.read)(settings.clone()).map_err(wrong)?, ..self })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.entry.name
    }

    pub(crate) fn about(&self) -> &'static str {
        self.entry.about
    }
}

impl std::ops::Deref for Own {
    type Target = dyn Config;

    fn deref(&self) -> &Self::Target {
        &*self.config
    }
}

impl PartialEq for Own {
    fn eq(&self, other: &Own) -> bool {
        self.entry.name == other.entry.name && self.config.written() == other.config.written()
    }
}

impl Serialize for Own {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.entry.name, self.config.written())])
    }
}

/// [`Recipe`] and [`Steers`] behind a pointer.
pub trait Config: Debug + Send + Sync {
    /// The settings as JSON.
    fn written(&self) -> Value;
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
        fn written(&self) -> Value {
            serde_json::to_value(&self.0).unwrap_or_default()
        }

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
