//! Losses inside a receiving NIC whose port is nearly full.

use finding::{Finding, code};
use model::{IngressLosses, Probability, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets that a NIC loses in bursts while a port takes in more than a rate. A draw before each packet decides whether a burst
/// begins.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ingress {
    /// Ingress of a port over `interval` above which packets are lost in the next interval: data packets, preamble and gap included. No
    /// default.
    pub above: Rate,
    /// Share of data packets that is then lost in the mean, above 0 and at most 1. No default.
    pub loss: f64,
    /// Data packets in a row that are lost at a time, whatever their queue pairs; fewer if the port is no longer so full. No default.
    pub burst: u32,
    /// Time over which a port measures its ingress, from each multiple of this time on. Default "1ms" (our choice: a ConnectX-5 lost
    /// nothing of messages that filled the port for 43 us of every 48 us).
    #[serde(default = "interval")]
    pub interval: Time,
}

const fn interval() -> Time {
    Time::from_ms(1)
}

impl Ingress {
    /// Checks whether the values are possible.
    pub(crate) fn validate(self) -> Result<(), Finding> {
        let wrong = |key: &str, text: &str| Err(code::RANGE.at(&format!("ingress.{key}"), text));
        match self {
            Ingress { above: Rate(0), .. } => wrong("above", "must be above 0"),
            Ingress { burst: 0, .. } => wrong("burst", "must be at least 1"),
            Ingress { interval: Time::ZERO, .. } => wrong("interval", "must be longer than 0"),
            Ingress { loss, .. } if loss > 0.0 && loss <= 1.0 => Ok(()),
            _ => wrong("loss", "must be above 0 and at most 1"),
        }
    }

    /// The losses. Between two bursts (1 - p) / p packets pass in the mean, where p is the probability that a burst begins.
    pub(crate) fn losses(self) -> IngressLosses {
        let Ingress { above, loss, burst, interval } = self;
        let begins = Probability::new(loss / (loss + f64::from(burst) * (1.0 - loss)));
        IngressLosses { interval, above, begins, burst }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_begin_as_often_as_the_share_of_lost_packets_wants() {
        for (loss, burst) in [(0.0018, 73), (0.5, 1), (0.3, 7), (1.0, 4)] {
            let ingress = Ingress { above: Rate(1), loss, burst, interval: interval() };
            let begins = ingress.losses().begins.share();
            let pass = (1.0 - begins) / begins;
            let share = f64::from(burst) / (f64::from(burst) + pass);
            assert!((share - loss).abs() < 1e-9, "{share} for {loss}");
        }
    }
}
