//! Names of parts that a program adds, and their settings.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::any::Any;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What the settings of a part of one's own must be. Every type with these derives is.
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
pub fn schema_of<C: JsonSchema>() -> Schema {
    SchemaSettings::draft07()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<C>()
}

/// Settings behind a pointer.
pub trait Written: Debug + Send + Sync {
    /// The settings as JSON.
    fn written(&self) -> Value;

    /// A number of the part's code, if that can change while the program runs. What outlasts a run is kept by it. Default: none.
    fn code(&self) -> Option<u64> {
        None
    }
}

/// Makes settings behind a pointer, where `T` is what a list asks of them.
pub trait Maker<T: ?Sized>: Any + Sync {
    /// The settings with their defaults.
    fn default(&self) -> Arc<T>;

    /// The settings that these keys say.
    ///
    /// # Errors
    /// What is wrong with them.
    fn read(&self, settings: Value) -> Result<Arc<T>, String>;

    /// The JSON Schema of the settings.
    fn schema(&self) -> Schema;
}

/// A part that a program adds: its name as a scenario spells it, a sentence that tells what it is, and its settings.
pub struct Entry<T: ?Sized + 'static> {
    /// Name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its settings.
    pub maker: &'static dyn Maker<T>,
}

impl<T: ?Sized> Clone for Entry<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Entry<T> {}

impl<T: ?Sized> Debug for Entry<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).field("about", &self.about).finish_non_exhaustive()
    }
}

/// Names of one kind of part.
pub struct List<T: ?Sized + 'static> {
    /// What the parts are, for messages.
    kind: &'static str,
    built_in: &'static [&'static str],
    added: RwLock<Added<T>>,
}

struct Added<T: ?Sized + 'static> {
    entries: Vec<Entry<T>>,
    /// All names, once a part has been added.
    names: Option<&'static [&'static str]>,
}

impl<T: ?Sized> Added<T> {
    fn entry(&self, name: &str) -> Option<Entry<T>> {
        self.entries.iter().find(|entry| entry.name == name).copied()
    }

    fn set(&mut self, entry: Entry<T>, built_in: &[&'static str]) {
        match self.entries.iter_mut().find(|known| known.name == entry.name) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
        let names = built_in.iter().copied().chain(self.entries.iter().map(|entry| entry.name));
        // Names live as long as the program, as those of a crate's parts do. A program adds few.
        self.names = Some(Vec::leak(names.collect()));
        CHANGES.fetch_add(1, Ordering::Release);
    }
}

/// Why a name is not free.
const TAKEN: &str = "it is taken already";

/// Number of changes of any list.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Number of times that a program has added a part of any kind. What is derived from lists is out of date if the number has changed.
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// Why no part that is added can have this name, if it cannot.
pub fn unfit(name: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits =
        name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.ends_with('-') && name.chars().all(plain);
    (!fits).then_some("small letters, digits and `-` can, and a letter comes first")
}

impl<T: ?Sized + Written> List<T> {
    /// The list of a crate's parts; `kind` says what they are.
    pub const fn new(kind: &'static str, built_in: &'static [&'static str]) -> Self {
        List { kind, built_in, added: RwLock::new(Added { entries: Vec::new(), names: None }) }
    }

    /// Adds a part. The same part may be added again, also by several threads at once.
    ///
    /// # Panics
    /// If its name is taken or is no name.
    pub fn add(&self, entry: Entry<T>) {
        // The type of its settings tells two parts with one description apart.
        let kind = |of: &Entry<T>| {
            let maker: &dyn Any = of.maker;
            maker.type_id()
        };
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        let refused = match added.entry(entry.name) {
            Some(known) if known.about == entry.about && kind(&known) == kind(&entry) => return,
            Some(_) => Some(TAKEN),
            None => self.refuses(entry.name),
        };
        match refused {
            Some(why) => panic!("{}", self.refusal(entry.name, why)),
            None => added.set(entry, self.built_in),
        }
    }

    /// Adds a part, or puts it in the place of an added one of the same name. Scenarios that have been read keep the part that they have.
    ///
    /// # Errors
    /// If its name is that of a part of the crate, or no name.
    pub fn replace(&self, entry: Entry<T>) -> Result<(), String> {
        match self.refuses(entry.name) {
            Some(why) => Err(self.refusal(entry.name, why)),
            None => {
                self.added.write().unwrap_or_else(PoisonError::into_inner).set(entry, self.built_in);
                Ok(())
            }
        }
    }

    /// Why no part that is added can have this name, if it cannot.
    fn refuses(&self, name: &str) -> Option<&'static str> {
        unfit(name).or(self.built_in.contains(&name).then_some(TAKEN))
    }

    fn refusal(&self, name: &str, why: &str) -> String {
        format!("a {} cannot have the name `{name}`: {why}", self.kind)
    }

    /// Names of all parts, those of the crate first.
    pub fn names(&self) -> &'static [&'static str] {
        self.added.read().unwrap_or_else(PoisonError::into_inner).names.unwrap_or(self.built_in)
    }

    fn entry(&self, name: &str) -> Option<Entry<T>> {
        self.added.read().unwrap_or_else(PoisonError::into_inner).entry(name)
    }

    /// The added part of that name with its defaults.
    pub fn named(&self, name: &str) -> Option<Own<T>> {
        self.entry(name).map(|entry| Own { entry, config: entry.maker.default() })
    }

    /// The place that an error of [`Own::read`] names, below the table of the kind, and the rest of the text; `None` for other errors.
    pub fn place<'a>(&self, text: &'a str) -> Option<(Vec<String>, &'a str)> {
        let (place, rest) = text.strip_prefix('`')?.split_once("`: ")?;
        let parts: Vec<String> = place.split('.').map(str::to_owned).collect();
        self.entry(&parts[0]).map(|_| (parts, rest))
    }

    /// Adds the settings of the added parts to the JSON Schema of all of the kind.
    pub fn listed(&self, schema: &mut Schema) {
        let Some(Value::Array(choices)) = schema.get_mut("oneOf") else { return };
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        choices.extend(added.entries.iter().map(|entry| {
            let mut of = entry.maker.schema();
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
}

/// A part of one's own with its settings.
pub struct Own<T: ?Sized + 'static> {
    entry: Entry<T>,
    config: Arc<T>,
}

impl<T: ?Sized> Clone for Own<T> {
    fn clone(&self) -> Self {
        Own { entry: self.entry, config: self.config.clone() }
    }
}

impl<T: ?Sized + Written> Debug for Own<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple(self.entry.name).field(&self.config).finish()
    }
}

impl<T: ?Sized + Written> Own<T> {
    /// The part with these settings.
    ///
    /// # Errors
    /// What is wrong with them; the text begins with the place, see [`List::place`].
    pub fn read(self, settings: Value) -> Result<Self, String> {
        let name = self.entry.name;
        let wrong = |error: String| match self.wrong_key(&settings) {
            Some(key) => format!("`{name}.{key}`: {error}"),
            None => format!("`{name}`: {error}"),
        };
        Ok(Own { config: self.entry.maker.read(settings.clone()).map_err(wrong)?, ..self })
    }

    /// The first key whose value is wrong by itself.
    fn wrong_key<'a>(&self, settings: &'a Value) -> Option<&'a str> {
        let maker = self.entry.maker;
        let alone = |(key, value): &(&String, &Value)| maker.read(json!({ key.as_str(): value })).is_err();
        // An unknown key is named by the error.
        let known = |key: &str| maker.default().written().get(key).is_some();
        settings.as_object()?.iter().find(alone).map(|(key, _)| key.as_str()).filter(|key| known(key))
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// What it is.
    pub fn about(&self) -> &'static str {
        self.entry.about
    }
}

impl<T: ?Sized> std::ops::Deref for Own<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.config
    }
}

impl<T: ?Sized + Written> PartialEq for Own<T> {
    fn eq(&self, other: &Own<T>) -> bool {
        self.entry.name == other.entry.name && self.config.written() == other.config.written()
    }
}

impl<T: ?Sized + Written> Serialize for Own<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.entry.name, self.config.written())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Config;

    impl Written for Config {
        fn written(&self) -> Value {
            json!({})
        }
    }

    /// Makes the settings of the part `N`.
    struct Part<const N: u8>;

    impl<const N: u8> Maker<dyn Written> for Part<N> {
        fn default(&self) -> Arc<dyn Written> {
            Arc::new(Config)
        }

        fn read(&self, _: Value) -> Result<Arc<dyn Written>, String> {
            Ok(Arc::new(Config))
        }

        fn schema(&self) -> Schema {
            Schema::default()
        }
    }

    #[test]
    #[should_panic = "a part cannot have the name `x`: it is taken already"]
    fn a_part_does_not_take_the_name_of_another_with_the_same_description() {
        let list = List::<dyn Written>::new("part", &[]);
        let of = |maker| Entry { name: "x", about: "", maker };
        list.add(of(&Part::<1>));
        // A program may add its parts twice.
        list.add(of(&Part::<1>));
        list.add(of(&Part::<2>));
    }

    #[test]
    fn threads_may_add_the_same_part_at_once() {
        for _ in 0..500 {
            let list = List::<dyn Written>::new("part", &[]);
            let start = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        start.wait();
                        list.add(Entry { name: "x", about: "", maker: &Part::<1> });
                    });
                }
            });
            assert_eq!(list.names(), ["x"]);
        }
    }
}
