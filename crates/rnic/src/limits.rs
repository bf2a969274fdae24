//! Values that a setting may not have.

use finding::{Finding, code};
use model::Rate;

/// Most packets that may be outstanding with 24-bit PSNs: serial numbers compare correctly only while they are less than
/// 2^23 apart.
pub(crate) const PSN_LIMIT: u32 = (1 << 23) - 1;

/// Checks whether this number of packets can be outstanding.
pub(crate) fn outstanding(field: &str, packets: u32) -> Result<(), Finding> {
    if packets == 0 || packets > PSN_LIMIT {
        return Err(code::RANGE.at(field, "must be between 1 and 8388607 (24-bit PSNs)"));
    }
    Ok(())
}

/// Checks the key `min-rate`.
pub(crate) fn min_rate(rate: Rate) -> Result<(), Finding> {
    if rate == Rate(0) {
        return Err(code::RANGE.at("min-rate", "must be above 0: a queue pair at rate 0 never sends again"));
    }
    Ok(())
}

/// Largest number of hops in the layout of telemetry.
const MOST_AREA: u8 = 15;

/// Checks the key `int-hops`.
pub(crate) fn int_hops(hops: u8) -> Result<(), Finding> {
    if !(1..=MOST_AREA).contains(&hops) {
        return Err(code::RANGE.at("int-hops", "must be between 1 and 15 (the layout counts hops in 4 bits)"));
    }
    Ok(())
}
