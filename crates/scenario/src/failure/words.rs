//! An entry of `[[failure]]` in words, with the vocabulary of [`model::failure`].

use super::{Failure, Portion};
use crate::values::ReducedRate;
use model::Time;
use model::failure::{Effect, percent, when};
use std::fmt;

/// Such as `tor5–spine2 gray (loses 0.1 % of packets) from 10 us on`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.unwrap_or(Time::NEVER);
        write!(f, "{} {}{}", self.what(), self.effects().join(" and "), when(&[(self.at, until)]))?;
        self.flaps.as_ref().map_or(Ok(()), |flaps| write!(f, ", flapping: {flaps}"))
    }
}

impl Failure {
    /// The switch and the links that fail.
    fn what(&self) -> String {
        let way = if self.one_way { "→" } else { "–" };
        // A switch fails as a whole only if its links are down.
        let switch = self.switch.as_ref().map(|name| match self.is_down() || self.random.is_some() {
            true => name.clone(),
            false => format!("links of {name}"),
        });
        let links = self.links.iter().map(|[from, to]| format!("{from}{way}{to}"));
        let hosts = self.storm.iter().cloned();
        let what = switch.into_iter().chain(links).chain(hosts).collect::<Vec<_>>().join(", ");
        let some = match self.random {
            None => return what,
            Some(Portion::Share(share)) => percent(share),
            Some(Portion::Count(count)) => count.to_string(),
        };
        match what.as_str() {
            "" => format!("{some} of the links between switches"),
            what => format!("{some} of the links {what}"),
        }
    }

    /// What happens to the links.
    fn effects(&self) -> Vec<String> {
        if self.is_down() {
            return vec![Effect::Down.to_string()];
        }
        if !self.storm.is_empty() {
            return vec![Effect::Storm.to_string()];
        }
        let slow = self.rate.map(|rate| match rate {
            ReducedRate::Rate(rate) => Effect::Slow(rate).to_string(),
            ReducedRate::Share(share) => format!("slowed to {} of the nominal rate", percent(share)),
        });
        let gray = self.loss.map(|chance| Effect::Gray(chance.probability()).to_string());
        slow.into_iter().chain(gray).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(toml: &str) -> String {
        toml::from_str::<Failure>(toml).unwrap().to_string()
    }

    #[test]
    fn each_kind_of_failure_has_its_own_words() {
        let link = "links = [[\"tor5\", \"spine2\"]]\n";
        let with = |keys: &str| said(&format!("{link}{keys}"));
        assert_eq!(with(""), "tor5–spine2 down");
        assert_eq!(with("loss = 0.001"), "tor5–spine2 gray (loses 0.1 % of packets)");
        assert_eq!(
            with("loss = 1e-5\nat = \"10us\"\nuntil = \"1ms\""),
            "tor5–spine2 gray (loses 0.001 % of packets) from 10 us until 1 ms"
        );
        assert_eq!(with("rate = \"100Gbps\"\nat = \"3us\""), "tor5–spine2 slowed to 100 Gb/s from 3 us on");
        assert_eq!(with("rate = 0.25"), "tor5–spine2 slowed to 25 % of the nominal rate");
        assert_eq!(
            with("rate = \"10Gbps\"\nloss = 0.02\none-way = true"),
            "tor5→spine2 slowed to 10 Gb/s and gray (loses 2 % of packets)"
        );
        assert_eq!(
            with("until = \"1s\"\nflaps = { up = \"20ms\", down = \"1ms\" }"),
            "tor5–spine2 down until 1 s, flapping: up for 20 ms on average, down for 1 ms on average"
        );
        assert_eq!(
            with("until = \"1s\"\nflaps = { per-link-day = 2e5, down = [\"1ms\", \"5ms\"] }"),
            "tor5–spine2 down until 1 s, flapping: 200000 times a day on average, down for 1 ms or 5 ms"
        );
        assert_eq!(said("storm = [\"host3\"]\nat = \"1ms\""), "host3 in a storm of pauses from 1 ms on");
        assert_eq!(said("switch = \"spine3\"\nuntil = \"11ms\""), "spine3 down until 11 ms");
        assert_eq!(said("switch = \"spine3\"\nloss = 0.5"), "links of spine3 gray (loses 50 % of packets)");
        assert_eq!(said("random = 4\nat = \"100us\""), "4 of the links between switches down from 100 us on");
        assert_eq!(
            said("random = 0.02\nrate = 0.1"),
            "2 % of the links between switches slowed to 10 % of the nominal rate"
        );
    }
}
