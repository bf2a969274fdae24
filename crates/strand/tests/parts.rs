//! Congestion controls and recovery modes of one's own: scenarios know them, and the contract finds those that would hang a run or lie.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strand::{
    Allowance, Answers, AnyReceiver, AnySender, Congestion, CongestionConfig, Control, ControlFacts, Entry,
    Evidence, Finding, Inbound, Pace, Path, Psn, Rate, Receiver, Reception, Reply, Standing, Time, Timing,
    Transport, TransportConfig, TransportFacts, code, hold,
};

/// A window that never changes. A window of 0 packets never lets one pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
struct Fixed {
    /// Packets that may be unacknowledged.
    most_packets: u16,
}

struct Window(u64);

impl Control for Fixed {
    type State = Window;

    fn facts(&self) -> ControlFacts {
        ControlFacts { needs_feedback: false, needs_path: false, ..ControlFacts::of(Evidence::None) }
    }

    fn validate(&self) -> Result<(), Finding> {
        match self.most_packets {
            13 => Err(code::RANGE.at("most-packets", "must not be 13")),
            _ => Ok(()),
        }
    }

    fn control(&self, _: Rate, _: Option<&Path>) -> Window {
        Window(self.most_packets.into())
    }
}

impl Congestion for Window {
    fn allowance(&mut self, _: Time) -> Allowance {
        Allowance { window: self.0, pace: Pace::from_bps(1e9), not_before: Time::ZERO }
    }
}

/// A receiver that acknowledges a packet more than it has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
struct Hasty {}

struct Liar(AnyReceiver);

impl Transport for Hasty {
    type Sender = AnySender;
    type Receiver = Liar;

    fn facts(&self) -> TransportFacts {
        TransportFacts::KEEPING
    }

    fn sender(&self, timing: &Timing) -> AnySender {
        TransportConfig::named("ideal").unwrap().sender(timing)
    }

    fn receiver(&self, answers: &Answers) -> Liar {
        Liar(TransportConfig::named("ideal").unwrap().receiver(answers))
    }
}

impl Receiver for Liar {
    fn on_arrival(&mut self, now: Time, inbound: Inbound) -> (Reception, Standing) {
        let (mut got, standing) = self.0.on_arrival(now, inbound);
        got.reply = got.reply.map(|_| Reply::Ack(Psn::from_seq(standing.expected)));
        (got, standing)
    }

    fn standing(&self) -> Standing {
        self.0.standing()
    }
}

const PARTS: &[Entry] = &[
    Entry::control::<Fixed>("fixed", "A window that never changes."),
    Entry::transport::<Hasty>("hasty", "A receiver that lies."),
];

fn error(table: &str) -> String {
    strand::add(PARTS);
    let text = format!(
        "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n{table}\n[[workload]]\npermutation = {{ bytes = \"1MB\" }}\n"
    );
    let error = scenario::check(&scenario::Source::new("t.toml", text), &[]).err();
    error.map_or_else(String::new, |error| format!("{:?} {}", error.place, error.text))
}

#[test]
fn scenarios_know_their_names_and_settings() {
    assert_eq!(error("[nic.congestion.fixed]\nmost-packets = 20\n[nic.transport.hasty]"), "");
    for (path, name) in [(["nic", "congestion"], "fixed"), (["nic", "transport"], "hasty")] {
        let known =
            scenario::choices(&path).into_iter().any(|(known, about)| known == name && about.len() > 10);
        assert!(known, "`ropewalk list` has {name}");
    }
    let config: CongestionConfig = serde_json::from_str(r#"{"fixed": {"most-packets": 3}}"#).unwrap();
    let written = serde_json::to_value(&config).unwrap();
    assert_eq!(written.to_string(), r#"{"fixed":{"most-packets":3}}"#);
    assert_eq!(serde_json::from_value::<CongestionConfig>(written).unwrap(), config);
    assert_ne!(CongestionConfig::named("fixed").unwrap(), config);
}

#[test]
fn mistakes_in_their_settings_are_named() {
    let unknown = error("[nic.congestion.fixed]\nmost-pakets = 2");
    assert!(unknown.contains("line: 6") && unknown.contains("did you mean `most-packets`"), "{unknown}");
    let wrong = error("[nic.congestion.fixed]\nmost-packets = 70000");
    assert!(wrong.contains("line: 6") && wrong.contains("70000"), "{wrong}");
    let refused = error("[nic.congestion.fixed]\nmost-packets = 13");
    assert!(refused.contains("line: 6") && refused.contains("must not be 13"), "{refused}");
    let near = error("[nic.transport.hastey]");
    assert!(near.contains("line: 5") && near.contains("did you mean `hasty`"), "{near}");
}

#[test]
#[should_panic(expected = "`fixed` allows no packet")]
fn a_control_that_would_hang_a_run_breaks_the_contract() {
    hold::contract(PARTS, "fixed");
}

#[test]
#[should_panic(expected = "has not arrived")]
fn a_receiver_that_acknowledges_what_it_has_not_breaks_the_contract() {
    hold::contract(PARTS, "hasty");
}

#[test]
#[should_panic(expected = "already")]
fn a_name_that_is_taken_is_refused() {
    strand::add(&[Entry::control::<Fixed>("dcqcn", "")]);
}
