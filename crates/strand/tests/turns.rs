//! A scheme of one's own in the sending NIC: its packets take the entropies in turn.

use schemars::JsonSchema;
use schemes::SchemeConfig;
use serde::{Deserialize, Serialize};
use strand::entropies::{Entropies, Mapping};
use strand::{Entry, Facts, QpSite, Recipe, Sent, Site, Stamp, Steering, Steers, Time, hold};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
struct Config {
    /// Packets that one entropy carries before the next.
    packets_each: u8,
}

struct Turns {
    each: u32,
    sent: u32,
}

impl Recipe for Config {
    type Scheme = Entropies;
    const TRIALS: &'static [&'static str] = &["", "packets-each = 5"];

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Hash, site)
    }
}

impl Steers for Config {
    type Steering = Turns;

    fn steer(&self, _: QpSite<'_>) -> Turns {
        Turns { each: u32::from(self.packets_each).max(1), sent: 0 }
    }
}

impl Steering for Turns {
    type Annex = Stamp;

    fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
        self.sent += 1;
        Stamp::new((self.sent / self.each) as u16, now)
    }
}

const SCHEMES: &[Entry] = &[Entry::in_senders::<Config>("turns", "Entropies in turn.")];

fn error(table: &str) -> String {
    strand::add(SCHEMES);
    let text = format!(
        "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n{table}\n[[workload]]\npermutation = {{ bytes = \"1MB\" }}\n"
    );
    let error = scenario::check(&scenario::Source::new("t.toml", text), &[]).err();
    error.map_or_else(String::new, |error| format!("{:?} {}", error.place, error.text))
}

#[test]
fn it_keeps_every_rule() {
    hold::contract(SCHEMES, "turns");
    hold::twins(SCHEMES, "turns");
    hold::fuzz(SCHEMES, "turns");
}

#[test]
fn scenarios_know_its_name_and_its_settings() {
    assert_eq!(error("[scheme.turns]"), "");
    assert_eq!(SchemeConfig::about("turns"), "Entropies in turn.");
    assert_eq!(SchemeConfig::about("themis2"), "");
    assert!(
        scenario::choices(&["scheme"])
            .iter()
            .any(|(name, about)| *name == "turns" && about.starts_with("Entropies"))
    );
    let config: SchemeConfig = serde_json::from_str(r#"{"turns": {"packets-each": 3}}"#).unwrap();
    let written = serde_json::to_value(&config).unwrap();
    assert_eq!(written.to_string(), r#"{"turns":{"packets-each":3}}"#);
    assert_eq!(serde_json::from_value::<SchemeConfig>(written).unwrap(), config);
    assert_ne!(SchemeConfig::named("turns").unwrap(), config);
    let all = scenario::schema().to_string();
    assert!(all.contains("Packets that one entropy carries"), "the schema describes its settings");
}

#[test]
fn mistakes_in_its_settings_are_named() {
    let unknown = error("[scheme.turns]\npackets-eech = 2");
    assert!(
        unknown.contains("line: 6")
            && unknown.contains("`packets-eech`")
            && unknown.contains("did you mean `packets-each`"),
        "{unknown}"
    );
    let wrong = error("[scheme.turns]\npackets-each = 300");
    assert!(wrong.contains("line: 6") && wrong.contains("300"), "{wrong}");
    let near = error("[scheme.turn]");
    assert!(near.contains("did you mean `turns`"), "{near}");
}

#[test]
#[should_panic(expected = "already")]
fn a_name_that_is_taken_is_refused() {
    strand::add(&[Entry::in_senders::<Config>("themis", "")]);
}
