//! Values that a setting may not have.

use finding::{Finding, code};

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
