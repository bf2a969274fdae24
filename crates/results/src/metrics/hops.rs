//! Link crossings.

use super::{Digest, Unit};
use crate::data::RunData;

section! {
    /// Link crossings.
    pub struct Hops read from run: RunData<'_>;

    /// Link crossings of data packets.
    data: u64 = run.outcome.data_hops => { label: "data hops", unit: Unit::Packets, digest: Digest::Always(1) };

    /// Link crossings of control packets.
    control: u64 = run.outcome.control_hops => {
        label: "control hops", unit: Unit::Packets, digest: Digest::Always(2),
    };
}
