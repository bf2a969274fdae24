//! The recovery mode: selective repeat whose receiver is patient.
//!
//! The built-in mode `nic-sr` asks for a missing packet as soon as a later one arrives. This one waits for several later packets, as TCP
//! does (RFC 5681, section 3.2: three duplicate ACKs), so that a little reordering costs nothing. It is the built-in mode with a receiver
//! around its receiver. Replace this file by your own idea; docs/own-scheme.md of ropewalk explains each part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strand::{
    Answers, AnyReceiver, AnySender, Finding, Inbound, Receiver, Reception, Reply, Standing, Time, Timing,
    Transport, TransportConfig, TransportFacts, code,
};

/// Settings: a field for each key of the mode's table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Packets that arrive after a missing one until the receiver asks for it, at least 1. Default 3 (RFC 5681).
    pub patience: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { patience: 3 }
    }
}

impl Config {
    /// The mode whose ends it has.
    fn base() -> TransportConfig {
        TransportConfig::named("nic-sr").expect("ropewalk has this mode")
    }
}

impl Transport for Config {
    type Sender = AnySender;
    type Receiver = Patient;
    /// The tests run each of these settings.
    const TRIALS: &'static [&'static str] =
        &["", "patience = 1", "patience = 20\n[nic]\ntimeout = { fixed = \"40us\" }"];

    fn facts(&self) -> TransportFacts {
        Self::base().facts()
    }

    fn validate(&self) -> Result<(), Finding> {
        match self.patience {
            0 => Err(code::RANGE.at("patience", "at least one packet shows that another is missing")),
            _ => Ok(()),
        }
    }

    fn sender(&self, timing: &Timing) -> AnySender {
        Self::base().sender(timing)
    }

    fn receiver(&self, answers: &Answers) -> Patient {
        Patient { inner: Self::base().receiver(answers), patience: self.patience, asks: None, seen: 0 }
    }
}

/// The receiver of one queue pair.
pub struct Patient {
    inner: AnyReceiver,
    patience: u32,
    /// The NACK that waits, and the ePSN that it names.
    asks: Option<(Reply, u64)>,
    /// Packets that have arrived since that packet was missed.
    seen: u32,
}

impl Receiver for Patient {
    fn on_arrival(&mut self, now: Time, inbound: Inbound) -> (Reception, Standing) {
        let (mut got, standing) = self.inner.on_arrival(now, inbound);
        if let Some(nack @ Reply::Nack(_)) = got.reply {
            (self.asks, self.seen) = (Some((nack, standing.expected)), 0);
            got.reply = None;
        }
        match self.asks {
            // The packet was late, not lost.
            Some((_, missing)) if standing.expected > missing => self.asks = None,
            Some((nack, _)) => {
                self.seen += u32::from(got.out_of_order);
                if self.seen >= self.patience {
                    (got.reply, self.asks) = (Some(nack), None);
                }
            }
            None => {}
        }
        (got, standing)
    }

    fn standing(&self) -> Standing {
        self.inner.standing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strand::{ArrivedData, Envelope, Psn};

    /// The reply to packet `psn`.
    fn reply(receiver: &mut Patient, psn: u32) -> Option<Reply> {
        let envelope = Envelope { first: Psn::new(0), packets: 9, attempt: 0 };
        let packet = ArrivedData {
            psn: Psn::new(psn),
            frame: 1500,
            marked: false,
            last: false,
            asks: false,
            envelope,
        };
        receiver.on_arrival(Time::ZERO, Inbound::Data(packet)).0.reply
    }

    #[test]
    fn a_packet_that_is_a_little_late_is_not_asked_for() {
        let mut receiver = Config { patience: 3 }.receiver(&Answers::default());
        for psn in [1, 2, 0, 3] {
            assert!(!matches!(reply(&mut receiver, psn), Some(Reply::Nack(_))), "packet {psn}");
        }
        // Packet 4 is lost: 5 and 6 may be early, and with 7 the receiver loses its patience.
        let asks = [5, 6, 7, 8].map(|psn| matches!(reply(&mut receiver, psn), Some(Reply::Nack(_))));
        assert_eq!(asks, [false, false, true, false]);
    }
}
