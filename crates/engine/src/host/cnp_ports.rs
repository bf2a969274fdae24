//! CNPs of NICs whose ports count them over all queue pairs.

use model::Time;

/// Times from which the ports of a host may send their next CNP.
#[derive(Default)]
pub(super) struct CnpPorts {
    /// Shortest time between two CNPs, by traffic class; `None` for a class whose queue pairs count for themselves.
    intervals: Vec<Option<Time>>,
    /// By port.
    quiet_until: Vec<Time>,
}

impl CnpPorts {
    /// Makes the ports count the CNPs of this traffic class.
    pub(super) fn add(&mut self, class: usize, interval: Time) {
        if self.intervals.len() <= class {
            self.intervals.resize(class + 1, None);
        }
        self.intervals[class] = Some(interval);
    }

    /// True if `port` may send a CNP of this class now; the port then keeps quiet for an interval.
    pub(super) fn may_send(&mut self, now: Time, class: usize, port: usize) -> bool {
        let Some(interval) = self.intervals.get(class).copied().flatten() else { return true };
        if self.quiet_until.len() <= port {
            self.quiet_until.resize(port + 1, Time::ZERO);
        }
        let may = now >= self.quiet_until[port];
        if may {
            self.quiet_until[port] = Time(now.ps().saturating_add(interval.ps()));
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_sends_one_cnp_per_interval_whatever_the_queue_pair() {
        let mut ports = CnpPorts::default();
        ports.add(1, Time::from_us(4));
        let mut may = |ns, class, port| ports.may_send(Time::from_ns(ns), class, port);
        assert!(may(100, 1, 0) && !may(4_099, 1, 0) && may(4_100, 1, 0));
        assert!(may(4_100, 1, 2), "each port counts for itself");
        assert!(may(4_100, 0, 0), "a class whose queue pairs count for themselves");
    }
}
