//! Counts that the two ends of a recorded queue pair keep from the start of the run.

/// Counts of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sends {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) retransmitted: u64,
    pub(crate) nacks: u64,
    pub(crate) cnps: u64,
    pub(crate) timeouts: u64,
}

impl Sends {
    /// Counts the start of a packet that takes `bytes` on the wire.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u64, again: bool) {
        self.bytes += bytes;
        self.packets += 1;
        self.retransmitted += u64::from(again);
    }
}

/// Counts of a receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    pub(crate) packets: u64,
    pub(crate) out_of_order: u64,
    /// ePSN, not wrapped.
    pub(crate) expected: u64,
    /// Longest distance of an arriving packet from the ePSN since the last bin ended, packets.
    pub(crate) ahead: u64,
}
