//! Packets that a NIC loses in bursts while one of its ports is nearly full.

use super::meter::Meter;
use model::draw::{Key, Purpose};
use model::{HostId, IngressLosses, Time};

/// The losses of a NIC.
pub(super) struct Ingress {
    /// By traffic class; `None` for a class that loses nothing so.
    classes: Vec<Option<Class>>,
    draws: Key,
    /// Number of draws so far.
    drawn: u64,
    /// Bursts that have begun, and the packets lost in them.
    bursts: u64,
    lost: u64,
}

/// The losses of a traffic class.
#[derive(Clone)]
struct Class {
    losses: IngressLosses,
    meter: Meter,
    /// By port, packets of the current burst that are still to be lost.
    left: Vec<u32>,
}

impl Ingress {
    /// No losses yet, at `host`.
    pub(super) fn new(seed: u64, host: HostId) -> Self {
        let draws = Key::new(seed, Purpose::Ingress, host.0.into());
        Ingress { classes: Vec::new(), draws, drawn: 0, bursts: 0, lost: 0 }
    }

    /// Makes the NIC lose packets of this traffic class.
    pub(super) fn add(&mut self, class: usize, losses: IngressLosses) {
        if self.classes.len() <= class {
            self.classes.resize(class + 1, None);
        }
        let meter = Meter::new(losses.interval, losses.above);
        self.classes[class].get_or_insert(Class { losses, meter, left: Vec::new() });
    }

    /// Counts the bytes of a data packet of this class that reaches `port`; true if the packet is lost.
    pub(super) fn loses(&mut self, now: Time, class: usize, port: usize, bytes: u64) -> bool {
        self.classes.iter_mut().flatten().for_each(|class| class.meter.count(now, port, bytes));
        let Some(class) = self.classes.get_mut(class).and_then(Option::as_mut) else { return false };
        if class.left.len() <= port {
            class.left.resize(port + 1, 0);
        }
        let left = &mut class.left[port];
        if class.meter.after_full(port).is_none() {
            *left = 0; // a sender that waits for its timer would meet the rest of the burst
        } else if *left == 0 {
            self.drawn += 1;
            if class.losses.begins.hits(self.draws.draw(self.drawn)) {
                *left = class.losses.burst;
                self.bursts += 1;
            }
        }
        let lost = *left > 0;
        *left = left.saturating_sub(1);
        self.lost += u64::from(lost);
        lost
    }

    /// Reports what the NIC has lost.
    pub(super) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("ingress_losses", self.lost);
        sink("ingress_bursts", self.bursts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Probability, Rate};

    /// The fates of so many packets of 1000 B of class 1, one each 1000 ns, where a rate of 8 Gb/s is the limit.
    fn fates(every_ns: u64, count: u64, begins: f64, burst: u32) -> Vec<bool> {
        let mut ingress = Ingress::new(7, HostId(3));
        let (interval, above) = (Time::from_us(10), Rate::from_gbps(8));
        ingress.add(1, IngressLosses { interval, above, begins: Probability::new(begins), burst });
        (0..count).map(|i| ingress.loses(Time::from_ns(i * every_ns), 1, 0, 1000)).collect()
    }

    #[test]
    fn packets_are_lost_in_bursts_of_one_length_at_the_share_that_was_asked_for() {
        assert!(fates(1000, 100_000, 1.0, 1).iter().all(|lost| !lost), "8 Gb/s are not above");
        let fates = fates(900, 1_000_000, 0.004, 9);
        assert!(fates[..12].iter().all(|lost| !lost), "the first interval");
        let runs: Vec<usize> =
            fates.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
        assert!(
            runs[..runs.len() - 1].iter().all(|run| run.is_multiple_of(9)),
            "a burst may follow another at once"
        );
        // 9 of 249 + 9 packets; 3 standard deviations of about 3900 bursts are 5 %.
        let share = runs.iter().sum::<usize>() as f64 / 1e6;
        assert!((share / (9.0 / 258.0) - 1.0).abs() < 0.05, "{share}");
    }

    #[test]
    fn a_class_without_losses_fills_the_port_and_loses_nothing() {
        let mut ingress = Ingress::new(7, HostId(3));
        let (interval, above, begins) = (Time::from_us(1), Rate::from_gbps(8), Probability::new(1.0));
        ingress.add(1, IngressLosses { interval, above, begins, burst: 2 });
        let mut loses = |ns, class, port| ingress.loses(Time::from_ns(ns), class, port, 600);
        assert!(!loses(0, 0, 0) && !loses(500, 0, 0));
        assert!(!loses(1000, 0, 0) && !loses(1000, 1, 4), "another class, another port");
        assert!(loses(1001, 1, 0) && !loses(9001, 1, 0), "a burst ends when the port is no longer full");
    }
}
