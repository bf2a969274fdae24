//! CNPs that receivers send without marks, while their port is full.

use super::meter::Meter;
use model::{Rate, Time};

/// Ingress of a host's ports, and the CNPs that its receivers have sent for it.
#[derive(Default)]
pub(super) struct SelfCnps {
    /// By traffic class; `None` for a class whose receivers send no such CNPs.
    meters: Vec<Option<Meter>>,
    /// By receiver, the interval after that of its last CNP.
    told: Vec<u64>,
}

impl SelfCnps {
    /// Makes the receivers of this traffic class send CNPs.
    pub(super) fn add(&mut self, class: usize, interval: Time, above: Rate) {
        if self.meters.len() <= class {
            self.meters.resize(class + 1, None);
        }
        self.meters[class].get_or_insert(Meter::new(interval, above));
    }

    /// Counts bytes that `port` has received.
    pub(super) fn count(&mut self, now: Time, port: usize, bytes: u64) {
        self.meters.iter_mut().flatten().for_each(|meter| meter.count(now, port, bytes));
    }

    /// Counts the bytes of a data packet of this class that `port` has received for a receiver; true if the receiver sends a CNP.
    #[cold]
    pub(super) fn on_data(
        &mut self,
        now: Time,
        class: usize,
        port: usize,
        bytes: u64,
        receiver: usize,
    ) -> bool {
        self.count(now, port, bytes);
        let meter = self.meters.get(class).and_then(Option::as_ref);
        let Some(interval) = meter.and_then(|meter| meter.after_full(port)) else { return false };
        if self.told.len() <= receiver {
            self.told.resize(receiver + 1, 0);
        }
        let due = self.told[receiver] <= interval;
        if due {
            self.told[receiver] = interval + 1;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_sends_one_cnp_in_each_interval_after_a_full_one() {
        let mut own = SelfCnps::default();
        // 1000 B in 1 us are 8 Gb/s.
        own.add(1, Time::from_us(1), Rate::from_gbps(8));
        let mut cnp = |ns, class, bytes, receiver| own.on_data(Time::from_ns(ns), class, 0, bytes, receiver);
        assert!(!cnp(0, 1, 600, 0) && !cnp(900, 0, 401, 2), "the first interval has only begun");
        assert!(cnp(1_000, 1, 500, 0) && !cnp(1_100, 1, 500, 0), "1,001 B of two classes");
        assert!(cnp(1_900, 1, 0, 1) && !cnp(1_900, 0, 0, 2), "each receiver of its class");
        assert!(!cnp(2_000, 1, 5_000, 0), "1,000 B are not above");
        assert!(!cnp(4_000, 1, 1, 0), "the interval before was empty");
    }
}
