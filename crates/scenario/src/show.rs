//! A scenario as text: plain, annotated, and a template for a new one.

use crate::config::Scenario;
use crate::document::Document;
use crate::hardware;
use crate::schema::schema;
use crate::source::Source;
use crate::toml_text::{self, inline};
use crate::workload::Workload;
use serde_json::Value as Json;
use std::fmt::Write;
use toml::{Table, Value};

/// A scenario with comments to start from, for a file `NAME.toml`.
pub fn template(name: &str) -> String {
    // A name with a line break must not leave the comment.
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    include_str!("template.toml").replace("NAME", &name)
}

/// A scenario as a table of TOML.
pub(crate) fn table(scenario: &Scenario) -> Table {
    Table::try_from(scenario).unwrap_or_default()
}

pub(crate) fn plain(scenario: &Scenario) -> String {
    toml::to_string(&table(scenario)).unwrap_or_default()
}

/// A resolved scenario (the `config` of a manifest) with the meaning, default and source of every key. `None` if this
/// version cannot read it.
pub fn explained(config: &str) -> Option<String> {
    // The reader of scenario files is used here, too: a second instance of serde's code for all types of a scenario
    // would add a third to the code of this crate and to the time that it takes to compile.
    let document = Document::new(&Source::new("config", config), &[]).ok()?;
    let scenario = document.read().ok()?;
    // A manifest does not record which keys its author wrote, so no key is marked as a default.
    Some(annotated(&scenario, &|_| true))
}

/// The scenario as TOML with the meaning of every key; `is_explicit` tells whether the user wrote the value at a path.
pub(crate) fn annotated(scenario: &Scenario, is_explicit: &dyn Fn(&[String]) -> bool) -> String {
    let (root, whole) = (schema(), table(scenario));
    let servers = scenario.server.and_then(|server| server.server().ok());
    let text = hardware::about(&whole, servers.and_then(|server| server.cost.profile()));
    let mut annotator = Annotator { root, whole: &whole, is_explicit, text, path: Vec::new() };
    annotator.table(&whole, root);
    annotator.text
}

/// The description of the key at `path`; `None` if there is no such key.
pub(crate) fn meaning(scenario: &Scenario, path: &[String]) -> Option<String> {
    let (root, whole) = (schema(), table(scenario));
    let annotator =
        Annotator { root, whole: &whole, is_explicit: &|_| true, text: String::new(), path: Vec::new() };
    let (last, outer) = path.split_last()?;
    let inside = |at, key: &String| match key.parse::<usize>() {
        Ok(_) => annotator.resolve(at).get("items").unwrap_or(&Json::Null),
        Err(_) => annotator.inside(at, key),
    };
    annotator.about(outer.iter().fold(root, inside), last).map(str::to_owned)
}

struct Annotator<'a> {
    root: &'a Json,
    whole: &'a Table,
    is_explicit: &'a dyn Fn(&[String]) -> bool,
    text: String,
    path: Vec<String>,
}

impl<'a> Annotator<'a> {
    /// Follows references and selects the alternative that describes tables.
    fn resolve(&self, schema: &'a Json) -> &'a Json {
        let mut schema = schema;
        for _ in 0..8 {
            let referred = schema.get("$ref").or_else(|| schema.get("allOf")?.get(0)?.get("$ref"));
            if let Some(name) = referred.and_then(Json::as_str) {
                match self.root.pointer(name.trim_start_matches('#')) {
                    Some(target) => schema = target,
                    None => return schema,
                }
                continue;
            }
            let options = schema.get("anyOf").and_then(Json::as_array);
            let is_table = |s: &&'a Json| s.get("$ref").is_some() || s.get("properties").is_some();
            match options.and_then(|options| options.iter().find(is_table)) {
                Some(option) => schema = option,
                None => return schema,
            }
        }
        schema
    }

    /// The schema of `key` inside a table's schema: a field, a variant, or a free name.
    fn inside(&self, schema: &'a Json, key: &str) -> &'a Json {
        let schema = self.resolve(schema);
        if let Some(field) = schema.get("properties").and_then(|p| p.get(key)) {
            return field;
        }
        let variants = schema.get("oneOf").and_then(Json::as_array).into_iter().flatten();
        let variant = variants.into_iter().find_map(|v| v.get("properties")?.get(key).map(|p| (v, p)));
        match variant {
            Some((_, settings)) => settings,
            None => schema.get("additionalProperties").unwrap_or(&Json::Null),
        }
    }

    /// The description of a field or variant.
    fn about(&self, schema: &'a Json, key: &str) -> Option<&'a str> {
        let parent = self.resolve(schema);
        let variants = parent.get("oneOf").and_then(Json::as_array).into_iter().flatten();
        let variant =
            variants.into_iter().find(|v| v.get("properties").is_some_and(|p| p.get(key).is_some()));
        let field = self.inside(schema, key);
        let own = variant.and_then(|v| v.get("description")).or_else(|| field.get("description"));
        own.or_else(|| self.resolve(field).get("description")).and_then(Json::as_str)
    }

    fn comment(&mut self, about: Option<&str>) {
        const WIDTH: usize = 100;
        let Some(about) = about else { return };
        let mut line = String::new();
        for word in about.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
                let _ = writeln!(self.text, "# {line}");
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            let _ = writeln!(self.text, "# {line}");
        }
    }

    fn table(&mut self, table: &Table, schema: &'a Json) {
        // TOML needs plain values before tables; keys that are not set stand between them.
        for (key, value) in table.iter().filter(|(_, v)| !is_header(v)) {
            self.comment(self.about(schema, key));
            self.path.push(key.clone());
            let mark = match (self.is_explicit)(&self.path) {
                true => String::new(),
                false => match hardware::source(self.whole, &self.path, value) {
                    Some((model, source)) => format!("  # {model}: {source}"),
                    None => "  # default".to_owned(),
                },
            };
            self.path.pop();
            let _ = writeln!(self.text, "{} = {}{mark}", toml_text::key(key), inline(value));
        }
        let resolved = self.resolve(schema);
        if let Some(fields) = resolved.get("properties").and_then(Json::as_object) {
            let kinds = self.path.first().is_some_and(|p| p == "workload") && self.path.len() == 2;
            for key in fields.keys().filter(|key| !table.contains_key(*key)) {
                if kinds && !Workload::COMMON_KEYS.contains(&key.as_str()) {
                    continue;
                }
                self.comment(self.about(schema, key));
                let _ = writeln!(self.text, "# {key} is not set");
            }
        }
        for (key, value) in table.iter().filter(|(_, v)| is_header(v)) {
            let about = self.about(schema, key);
            let inner = self.inside(schema, key);
            self.path.push(key.clone());
            match value {
                Value::Table(value) => {
                    let fields = self.resolve(inner).get("properties").is_some();
                    let chooser = !fields && !value.is_empty() && value.values().all(is_header);
                    self.header(about, if chooser { "" } else { "[]" });
                    self.table(value, inner);
                }
                Value::Array(values) => {
                    let entry = self.resolve(inner).get("items").unwrap_or(&Json::Null);
                    for (i, value) in values.iter().enumerate() {
                        self.header(about.filter(|_| i == 0), "[[]]");
                        self.path.push(i.to_string());
                        if let Value::Table(value) = value {
                            self.table(value, entry);
                        }
                        self.path.pop();
                    }
                }
                _ => {}
            }
            self.path.pop();
        }
    }

    /// Writes the description of a table, and its name between `brackets`; without brackets, only the description.
    fn header(&mut self, about: Option<&str>, brackets: &str) {
        self.text.push('\n');
        self.comment(about);
        let workload = self.path.first().is_some_and(|p| p == "workload");
        let shown = self.path.iter().enumerate().filter(|(i, _)| !(workload && *i == 1));
        let path = shown.map(|(_, part)| toml_text::key(part)).collect::<Vec<_>>().join(".");
        let (open, close) = brackets.split_at(brackets.len() / 2);
        if !open.is_empty() {
            let _ = writeln!(self.text, "{open}{path}{close}");
        }
    }
}

/// Whether a value is written with a header: a table, or the array of jobs. Other arrays stay on one line.
fn is_header(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::Array(values) => {
            values.first().is_some_and(|v| v.get("start").is_some() && v.get("qp").is_some())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Resolved, builtin, load};

    #[test]
    fn both_printed_forms_are_the_same_scenario() {
        let text = "compat = \"ns3\"\n[topology.links]\nhosts = 2\nlinks = [[\"host0\", \"host1\", \"1Gbps\"]]\n\
                    [[workload]]\nflows = { list = [{ from = \"host0\", to = \"host1\", bytes = \"1B\" }] }\n\
                    [[workload]]\nbackground = true\nincast = { senders = 1 }\n";
        let mut all = vec![Source::new("odd.toml", text), Source::new("n.toml", template("n"))];
        all.extend(builtin::ALL.iter().map(|b| Source::new(b.name, b.text)));
        for source in all {
            // Plans follow from scenarios, so none is laid out.
            let c = Resolved::new(&source, &[]).unwrap();
            for again in [c.to_toml(), c.annotated()] {
                let d = Resolved::new(&Source::new("again.toml", again), &[]).unwrap();
                assert_eq!((&d.scenario, d.to_toml()), (&c.scenario, c.to_toml()), "{}", source.name);
            }
        }
    }

    #[test]
    fn defaults_are_marked_and_every_key_is_explained() {
        let text = load("quickstart", &["switch.buffer=32MB".into()]).unwrap().annotated();
        assert!(
            text.contains("buffer = \"32MB\"\n") && text.contains("drop-alpha = \"1\"  # default"),
            "{text}"
        );
        let mut before = "";
        for line in text.lines() {
            let key = line
                .split(" = ")
                .next()
                .filter(|key| !line.starts_with('#') && !key.is_empty() && !key.starts_with('['));
            assert!(key.is_none() || before.starts_with('#'), "{line} is not explained");
            before = line;
        }
    }

    #[test]
    fn a_payload_that_the_user_set_is_shown_in_place_of_the_frame() {
        let text = load("quickstart", &["wire.payload=4kB".into()]).unwrap().annotated();
        assert!(text.contains("\npayload = \"4kB\"\n") && text.contains("\n# frame is not set\n"), "{text}");
        let text = load("quickstart", &[]).unwrap().annotated();
        assert!(text.contains("\nframe = \"1500B\"  # default\n"), "{text}");
    }

    #[test]
    fn a_scheme_keeps_its_settings_or_gets_its_defaults() {
        let c = load("quickstart", &["scheme.themis.mode=literal".into()]).unwrap();
        assert_eq!(c.with_scheme(None, "themis").unwrap().scenario.scheme, c.scenario.scheme);
        assert_eq!(c.with_scheme(Some("foreground"), "ar").unwrap().scheme_name(), "ar");
        assert!(c.with_scheme(None, "thems").unwrap_err().text.contains("did you mean `themis`?"));
        let uec = c.with_scheme(None, "uec").unwrap_err();
        assert_eq!(uec.text, "unknown scheme `uec`; it is a recovery mode of NICs, `nic.transport.uec`");
        assert!(c.with_scheme(Some("x"), "ar").is_err());
        let bicc = c.with_scheme(None, "bicc").unwrap_err();
        let hint = "unknown scheme `bicc`; it is a feedback, which stands beside a scheme: `ecmp+bicc`";
        assert_eq!(bicc.text, hint);
    }

    #[test]
    fn a_comparison_changes_the_feedback_as_well() {
        let edge = "switch-role.external.feedback.long-haul.interval=9us";
        let c =
            load("long-haul-near-source", &[edge.into(), "switch-role.tor.feedback=annulus".into()]).unwrap();
        assert_eq!(c.scheme_name(), "ecmp+annulus+long-haul");
        for (entry, name) in [
            ("ar", "ar+annulus+long-haul"),
            ("ar+none", "ar"),
            ("ecmp+long-haul", "ecmp+long-haul"),
            ("ecmp+direct-cnp+annulus", "ecmp+annulus+direct-cnp"),
        ] {
            let with = c.with_scheme(None, entry).unwrap();
            assert_eq!((with.scheme_name(), c.run_name(entry)), (name.to_owned(), name.to_owned()));
            assert_eq!(
                with.to_toml().contains("9us"),
                name.contains("long-haul"),
                "a feedback keeps its settings"
            );
        }
        let wrong = |entry| c.with_scheme(None, entry).unwrap_err().text;
        assert!(wrong("ar+anulus").contains("did you mean `annulus`?"));
        assert!(wrong("ar+bicc+direct-cnp").contains("cannot both stand in all switches"));
        let unused = |entries: &[&str]| c.refuse_unused(None, entries, false).map_err(|error| error.text);
        assert_eq!(unused(&["ar+none", "ecmp+annulus+long-haul"]), Ok(()));
        assert_eq!(unused(&["ecmp", "ar+none"]), Ok(()), "`ecmp` keeps both");
        assert!(unused(&["ar+none", "ecmp+annulus"]).unwrap_err().contains("`long-haul` is not among them"));
        assert_ne!(c.with_seed(2).unwrap().hash(), c.hash());
        assert!(c.with_seed(u64::MAX).unwrap_err().text.contains("at most 9223372036854775807"));
    }
}
