//! The checkers look at runs of the software ToR between simulated NICs. What `tor` and its tests' NICs do is what the checkers
//! expect, and a NIC or a switch of another kind is found out.

#[path = "../../tor/tests/lab/mod.rs"]
mod lab;

use checkers::{Capture, Expect, Frame, Log, Report, Settings, SwitchRule, Way, check};
use lab::{Lab, Recovery, Transfer};
use std::fmt::Write;
use tor::{Chance, Mode, Rate, Span, Spine, Spray, Time};

/// A capture at all ports, and the decision log.
struct Run {
    capture: Capture,
    log: String,
}

impl Run {
    fn report(&self, settings: Settings) -> Report {
        let settings = Settings { log: Some(Log::parse(&self.log)), ..settings };
        check(&self.capture, &settings).unwrap()
    }

    fn rules(&self, expect: Expect) -> Vec<&'static str> {
        self.report(Settings { expect: Some(expect), rule: sound(), ..Settings::default() }).rules()
    }
}

fn sound() -> SwitchRule {
    SwitchRule::sound(4, tor::Settings::of_ports(2).themis.ring)
}

/// Two hosts behind two ToRs and four spines, path i later than path 0 by i thirds of 2 ms.
fn run(spray: Spray, mode: Mode, loss: f64, transfer: Transfer) -> Run {
    let mut settings = tor::Settings::of_ports(2);
    let spine = |i: u64| {
        let (delay, loss) = (Span::from_micros(200 + 2000 * i / 3), Chance::new(loss).unwrap());
        Spine { delay, loss, ..Spine::default() }
    };
    settings.spines = (0..4).map(spine).collect();
    (settings.spray, settings.themis.mode) = (spray, mode);
    let rate = Rate::from_bits(40_000_000);
    for port in &mut settings.ports {
        (port.rate, port.last_hop) = (rate, Span::from_micros(100));
    }
    let mut lab = Lab::new(&settings, rate.unwrap(), &[transfer]);
    lab.seen = Some(Vec::new());
    lab.run(Time::ZERO + Span::from_secs(120));
    assert!(lab.done());
    lab.run_on(lab.now + Span::from_millis(60));
    let mut seen = lab.seen.take().unwrap();
    seen.sort_by_key(|frame| frame.at);
    let frame = |(n, frame): (usize, lab::Seen)| Frame {
        at: frame.at.nanos(),
        port: frame.port.0.into(),
        way: if frame.leaves { Way::Out } else { Way::In },
        number: Some(n as u64),
        bytes: frame.bytes,
    };
    let frames = seen.into_iter().enumerate().map(frame).collect();
    let mut log = String::new();
    for note in &lab.log {
        writeln!(log, "{note}").unwrap();
    }
    Run { capture: Capture { ports: vec!["h1".into(), "h2".into()], frames }, log }
}

#[test]
fn a_tor_with_themis_holds() {
    for loss in [0.0, 0.01] {
        let run = run(Spray::Psn, Mode::Sound, loss, Transfer::default());
        let settings = Settings { expect: Some(Expect::Themis), rule: sound(), ..Settings::default() };
        let report = run.report(settings);
        assert!(report.holds(), "{report}");
        assert!(report.to_string().contains("verdicts equal to the log's"), "{report}");
        assert!(report.to_string().contains("blocked"), "{report}");
    }
}

#[test]
fn a_switch_of_another_kind_is_found_out() {
    let settings = || Settings { expect: Some(Expect::Themis), rule: sound(), ..Settings::default() };
    // The letter of the paper sends NACKs without proof.
    let literal = run(Spray::Psn, Mode::Literal, 0.0, Transfer::default());
    let report = literal.report(settings());
    assert_eq!(report.rules(), ["nack-left", "verdict-differs"], "{report}");
    // A switch without Themis lets all NACKs through.
    let plain = run(Spray::Psn, Mode::Off, 0.0, Transfer::default());
    assert_eq!(plain.report(settings()).rules(), ["nack-left", "verdict-differs"]);
    // A switch loses a NACK that it owes, and says nothing.
    let mut forgetful = run(Spray::Psn, Mode::Sound, 0.01, Transfer::default());
    let nack = |frame: &Frame| {
        frame.way == Way::Out && frame.bytes.get(54) == Some(&0x60) && frame.bytes[42] == 0x11
    };
    let at = forgetful.capture.frames.iter().position(nack).unwrap();
    forgetful.capture.frames.remove(at);
    for (frame, n) in forgetful.capture.frames.iter_mut().zip(0..) {
        frame.number = Some(n);
    }
    let rules = forgetful.report(settings()).rules();
    assert!(rules.contains(&"nack-kept"), "{rules:?}");
}

#[test]
fn nics_are_what_they_are() {
    for loss in [0.0, 0.01] {
        let repeats = run(Spray::Rps, Mode::Off, loss, Transfer::default());
        assert_eq!(repeats.rules(Expect::NicSr), [""; 0]);
        assert!(!repeats.rules(Expect::GoBackN).is_empty());
        let transfer = Transfer { recovery: Recovery::GoBackN, packets: 300, ..Transfer::default() };
        let back = run(Spray::Rps, Mode::Off, loss, transfer);
        let report = back.report(Settings { expect: Some(Expect::GoBackN), ..Settings::default() });
        assert!(report.holds(), "{report}");
        assert!(!back.rules(Expect::NicSr).is_empty());
    }
}
