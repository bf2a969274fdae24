//! Verdicts, and the text that shows them.

use crate::capture::Capture;
use crate::connections::Connections;
use std::fmt;

/// Breaches of one rule that the text shows; the others are counted. Our choice: enough to see a pattern.
const SHOWN: usize = 3;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Name of the rule.
    pub rule: &'static str,
    /// The frame by its place in the capture, from 1; 0 if the breach is about the end of the capture.
    pub frame: usize,
    /// What happened.
    pub text: String,
}

/// The verdict on a connection, or on the capture as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What the verdict is about.
    pub about: String,
    /// Counts and times, each with its name.
    pub facts: Vec<(&'static str, String)>,
    /// Broken rules, in the order of the checkers.
    pub breaches: Vec<Breach>,
}

impl Verdict {
    /// True if no rule was broken.
    pub fn holds(&self) -> bool {
        self.breaches.is_empty()
    }

    /// Adds a fact.
    pub(crate) fn fact(&mut self, name: &'static str, value: impl fmt::Display) {
        self.facts.push((name, value.to_string()));
    }

    /// Adds a count, unless it is 0.
    pub(crate) fn count(&mut self, name: &'static str, value: u64) {
        if value > 0 {
            self.fact(name, value);
        }
    }

    /// Adds a breach at a frame, which is given by its place from 0.
    pub(crate) fn breach(&mut self, rule: &'static str, frame: usize, text: String) {
        self.breaches.push(Breach { rule, frame: frame + 1, text });
    }

    /// Adds a breach that shows at the end of the capture.
    pub(crate) fn breach_at_end(&mut self, rule: &'static str, text: String) {
        self.breaches.push(Breach { rule, frame: 0, text });
    }

    /// The rules that were broken, in order and each once.
    pub fn rules(&self) -> Vec<&'static str> {
        let mut rules: Vec<_> = self.breaches.iter().map(|breach| breach.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = if self.holds() { "holds" } else { "BREACH" };
        write!(f, "{}: {outcome}", self.about)?;
        for (n, (name, value)) in self.facts.iter().enumerate() {
            let mark = if n == 0 { ":" } else { "," };
            write!(f, "{mark} {name} {value}")?;
        }
        writeln!(f)?;
        for rule in self.rules() {
            let of_rule = || self.breaches.iter().filter(|breach| breach.rule == rule);
            for Breach { frame, text, .. } in of_rule().take(SHOWN) {
                match frame {
                    0 => writeln!(f, "  {rule}: {text}")?,
                    frame => writeln!(f, "  {rule}: frame {frame}: {text}")?,
                }
            }
            let more = of_rule().count().saturating_sub(SHOWN);
            if more > 0 {
                writeln!(f, "  {rule}: {more} more")?;
            }
        }
        Ok(())
    }
}

/// All verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The capture as a whole.
    pub whole: Verdict,
    /// One per connection.
    pub verdicts: Vec<Verdict>,
}

impl Report {
    pub(crate) fn new(capture: &Capture, connections: &Connections) -> Self {
        let mut whole = Verdict { about: "capture".to_owned(), ..Verdict::default() };
        whole.fact("frames", capture.frames.len());
        whole.fact("RoCEv2", connections.packets.len());
        whole.fact("connections", connections.all.len());
        whole.count("replies of unknown connections", connections.unpaired);
        let about = |text: String| Verdict { about: text, ..Verdict::default() };
        Report { whole, verdicts: connections.all.iter().map(|c| about(c.to_string())).collect() }
    }

    /// True if no rule was broken.
    pub fn holds(&self) -> bool {
        self.whole.holds() && self.verdicts.iter().all(Verdict::holds)
    }

    /// All rules that were broken, in order and each once.
    pub fn rules(&self) -> Vec<&'static str> {
        let mut rules = self.whole.rules();
        rules.extend(self.verdicts.iter().flat_map(Verdict::rules));
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.whole)?;
        self.verdicts.iter().try_for_each(|verdict| write!(f, "{verdict}"))
    }
}

/// A time as people write it.
pub(crate) fn span(nanos: u64) -> String {
    match nanos {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        _ => format!("{:.1} ms", nanos as f64 / 1e6),
    }
}
