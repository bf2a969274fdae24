//! The path of a queue pair, as far as congestion controls and windows depend on it.

use model::{Rate, Time};
use std::borrow::Cow;
use std::sync::Arc;

/// Path between a queue pair's hosts on an idle fabric, as congestion controls need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Time from the start of a full packet to the arrival of its ACK.
    pub base_rtt: Time,
    /// Longest such time of any two hosts.
    pub longest_rtt: Time,
    /// Rate of hosts over that of uplinks, see [`model::Fabric::oversubscription`].
    pub oversubscription: f64,
    /// Number of full packets that line rate sends in `base_rtt`, rounded up.
    pub bdp: u32,
    /// Number of switches on the path.
    pub hops: u8,
    /// Payload of a full packet, bytes.
    pub payload: u32,
    /// Frame of a full packet, bytes.
    pub mtu: u32,
    /// Size of a full packet on the wire, including preamble and gap, bytes.
    pub frame: u32,
    /// Rates of all links, as telemetry numbers them ([`model::Plan::rates`]).
    pub rates: Arc<[Rate]>,
}

impl Path {
    /// The path, or an assumed one for a NIC of `line_rate` if the path is unknown.
    pub fn or_guess(path: Option<&Path>, line_rate: Rate) -> Cow<'_, Path> {
        path.map_or_else(|| Cow::Owned(Path::unknown(line_rate)), Cow::Borrowed)
    }

    /// Path of a NIC of `line_rate` on an unknown fabric. Our choice: about that of three tiers with links of 1 us.
    pub(crate) fn unknown(line_rate: Rate) -> Self {
        let rtt = Time::from_us(10);
        let bdp = (line_rate.bps() / 1_000_000 * 10 / 8 / 1500) as u32 + 1;
        let rates = Arc::from([line_rate]);
        Path {
            base_rtt: rtt,
            longest_rtt: rtt,
            oversubscription: 1.0,
            bdp,
            hops: 5,
            payload: 1438,
            mtu: 1500,
            frame: 1520,
            rates,
        }
    }
}
