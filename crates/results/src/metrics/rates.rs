//! Goodput and sending rate of foreground flows.

use super::{Better, Shown, Unit};
use crate::data::{Flow, RunData};
use crate::flows::{fct, gbps};
use crate::stats::{extremes, mean};

section! {
    /// Payload bits / FCT of foreground flows that finished.
    pub struct Goodput read from rates: &[f64];

    /// Payload bits / FCT, mean over foreground flows that finished.
    mean: Option<f64> = mean(rates) => {
        label: "goodput, mean", heading: "goodput\nGb/s", unit: Unit::GigabitsPerSecond, better: Better::More,
        shown: Shown::Sweep,
    };

    /// Payload bits / FCT of the slowest foreground flow that finished.
    min: Option<f64> = extremes(rates).map(|(least, _)| least) => {
        label: "goodput, min", unit: Unit::GigabitsPerSecond, better: Better::More,
    };
}

section! {
    /// Sending rate of foreground flows that finished, as a fraction of the NIC's rate.
    pub struct SendingRate read from fractions: &[f64];

    /// Wire bytes sent, including retransmissions, / (NIC rate x time until the last byte was sent), mean over
    /// foreground flows that finished.
    mean: Option<f64> = mean(fractions) => { label: "sending rate", unit: Unit::Fraction, better: Better::More };
}

impl Goodput {
    pub(crate) fn of(run: RunData<'_>) -> Self {
        let foreground = run.flows(|job| !job.background);
        let rates = foreground.filter_map(|flow| Some(gbps(flow.bytes, fct(&flow.record)?)));
        Self::read(&rates.collect::<Vec<f64>>())
    }
}

impl SendingRate {
    pub(crate) fn of(run: RunData<'_>) -> Self {
        let foreground = run.flows(|job| !job.background);
        let fractions = foreground.filter_map(|Flow { message, record: r, .. }| {
            fct(&r)?;
            let sender = run.plan.qps[message.qp.index()].from;
            let line = run.plan.line(sender);
            Some(gbps(r.wire_bytes, r.last_sent.since(r.start)) / line.as_gbps())
        });
        Self::read(&fractions.collect::<Vec<f64>>())
    }
}
