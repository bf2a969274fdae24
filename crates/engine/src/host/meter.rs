//! Ingress of ports over intervals.

use model::{Rate, Time};

/// Measures the ingress of all ports of a host, interval by interval.
#[derive(Clone)]
pub(super) struct Meter {
    interval: Time,
    above: Rate,
    /// By port.
    ports: Vec<Ingress>,
}

/// Ingress of a port in the current interval.
#[derive(Clone, Copy, Default)]
struct Ingress {
    interval: u64,
    bytes: u64,
    /// True if the interval before exceeded the rate.
    full: bool,
}

impl Meter {
    /// Finds the intervals of this length in which a port receives more than `above`.
    pub(super) const fn new(interval: Time, above: Rate) -> Self {
        Meter { interval, above, ports: Vec::new() }
    }

    /// Counts bytes that `port` has received.
    pub(super) fn count(&mut self, now: Time, port: usize, bytes: u64) {
        if self.ports.len() <= port {
            self.ports.resize(port + 1, Ingress::default());
        }
        let span = self.interval.ps().max(1);
        let interval = now.ps() / span;
        let ingress = &mut self.ports[port];
        if interval != ingress.interval {
            // Bits in an interval, and bits per second, times picoseconds in a second.
            let most = u128::from(self.above.bps()) * u128::from(span);
            let exceeded = u128::from(ingress.bytes) * 8_000_000_000_000 > most;
            *ingress = Ingress { interval, bytes: 0, full: exceeded && interval == ingress.interval + 1 };
        }
        ingress.bytes += bytes;
    }

    /// The interval of the last packet of `port`, if the one before it exceeded the rate.
    pub(super) fn after_full(&self, port: usize) -> Option<u64> {
        self.ports.get(port).filter(|ingress| ingress.full).map(|ingress| ingress.interval)
    }
}
