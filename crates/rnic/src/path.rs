//! The path of a queue pair, as far as congestion controls and windows depend on it.

use model::{Rate, Time};
use std::borrow::Cow;
use std::sync::Arc;

/// What a congestion control may want to know of the way between its hosts, on an idle fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// From the start of a full packet to the arrival of its ACK.
    pub base_rtt: Time,
    /// The longest such time of any two hosts.
    pub longest_rtt: Time,
    /// Full packets that line rate sends in that time, rounded up.
    pub bdp: u32,
    /// Switches on the way.
    pub hops: u8,
    /// Payload of a full packet, bytes.
    pub payload: u32,
    /// A full packet on the wire, preamble and gap included, bytes.
    pub frame: u32,
    /// The rates of all links, as telemetry numbers them ([`model::Plan::rates`]).
    pub rates: Arc<[Rate]>,
}

impl Path {
    /// The path, or a guess for a NIC of `line_rate` if it is not known.
    pub(crate) fn or_guess(path: Option<&Path>, line_rate: Rate) -> Cow<'_, Path> {
        path.map_or_else(|| Cow::Owned(Path::unknown(line_rate)), Cow::Borrowed)
    }

    /// For a NIC of `line_rate` on a fabric that nobody knows: our choice, about that of three tiers with links of 1 us.
    pub(crate) fn unknown(line_rate: Rate) -> Self {
        let rtt = Time::from_us(10);
        let bdp = (line_rate.bps() / 1_000_000 * 10 / 8 / 1500) as u32 + 1;
        let rates = Arc::from([line_rate]);
        Path { base_rtt: rtt, longest_rtt: rtt, bdp, hops: 5, payload: 1438, frame: 1520, rates }
    }
}
