//! What the two ends of a queue pair that is recorded count from the start of the run.

/// Of its sender.
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
    /// A packet of `bytes` on the wire has started.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u64, again: bool) {
        self.bytes += bytes;
        self.packets += 1;
        self.retransmitted += u64::from(again);
    }
}

/// Of its receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    pub(crate) packets: u64,
    pub(crate) out_of_order: u64,
    /// The next packet that it expects.
    pub(crate) expected: u64,
    /// Most packets between the one expected and one that came, since somebody looked.
    pub(crate) ahead: u64,
}
