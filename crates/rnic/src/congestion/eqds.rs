//! EQDS (Olteanu et al., "An edge-queued datagram service for all datacenter traffic", NSDI 2022): the ancestor of [`super::rccc`],
//! with other numbers.
//!
//! The first window has one bandwidth-delay product, and a grant is a packet. All else is that of `rccc`: the first window
//! ends with the first reply or grant, every packet demands credit for the bytes behind it, and the receiver serves its
//! senders in turn.
//!
//! * The simulator of its authors (uet-htsim, `eqds.cpp`) serves senders with cut packets before all others. Here they take
//!   their turn, as under `rccc`.
//! * The receiver's rate stays the same on oversubscribed fabrics.
//! * EQDS carries other transports, such as TCP. Here it carries the queue pair alone.

use super::rccc::Rccc;
use crate::facts::{Control, ControlFacts, Due, Grants};
use crate::path::Path;
use finding::Finding;
use model::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.eqds]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionEqds")]
pub struct Config {
    /// Bytes that may go out unasked, and largest credit, in bandwidth-delay products of the longest path. Default 1 (the
    /// paper).
    pub window: f64,
    /// Share of the link's rate that the receiver grants. Default 0.99 (uet-htsim).
    pub share: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config { window: 1.0, share: 0.99 }
    }
}

/// State of one queue pair.
pub type Eqds = Rccc;

impl Config {
    /// These settings as those of `rccc`.
    fn rccc(&self) -> super::rccc::Config {
        super::rccc::Config { window: self.window, share: self.share, ..Default::default() }
    }
}

impl Control for Config {
    type State = Eqds;
    const TRIALS: &'static [&'static str] = &[
        "[nic]\ntimeout = { fixed = \"70us\" }\n[nic.transport.uec]",
        "window = 0.5\n[nic]\ntimeout = { fixed = \"60us\" }\n[nic.transport.uec]",
    ];

    fn facts(&self) -> ControlFacts {
        let due = Due::Demand(self.window);
        let grants = Grants { quantum: None, share: self.share, throttles: false, due };
        ControlFacts { grants: Some(grants), ..self.rccc().facts() }
    }

    fn validate(&self) -> Result<(), Finding> {
        self.rccc().validate()
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Eqds {
        self.rccc().control(line_rate, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Congestion as _, Feedback, Time};

    #[test]
    fn one_bandwidth_delay_product_goes_out_unasked() {
        let (rate, path) = (Rate::from_gbps(100), Path::unknown(Rate::from_gbps(100)));
        let mut control = Config::default().control(rate, Some(&path));
        // 10 us at 100 Gb/s are 125,000 B: 84 packets of 1,500 B, of which the last takes the credit below 0.
        let sent = (0..999).take_while(|_| {
            let may_send = control.allowance(Time::ZERO).window > 0;
            may_send && control.on_send(Time::ZERO, 1_500, 1 << 30, 1).total > 0
        });
        assert_eq!(sent.count(), 84);
        control.on_feedback(Time::ZERO, &Feedback::default());
        control.on_grant(Time::ZERO, 1_500);
        assert!(control.allowance(Time::ZERO).window > 0, "the grant of a packet lets a packet out");
    }
}
