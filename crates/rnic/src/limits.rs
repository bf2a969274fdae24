//! Values that a setting may not have, and the error that names them.

use std::borrow::Cow;

/// Most packets that may be outstanding with 24-bit PSNs: serial numbers compare correctly only while they are less than
/// 2^23 apart.
pub(crate) const PSN_LIMIT: u32 = (1 << 23) - 1;

/// An impossible value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Invalid {
    /// Setting, as a dotted path within `[nic]`.
    pub field: String,
    /// Requirement that the value violates.
    pub reason: Cow<'static, str>,
}

impl Invalid {
    pub(crate) fn new(field: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> Self {
        Invalid { field: field.into(), reason: reason.into() }
    }

    pub(crate) fn within(self, table: &str) -> Self {
        Invalid { field: format!("{table}.{}", self.field), ..self }
    }
}

/// Checks whether this number of packets can be outstanding.
pub(crate) fn outstanding(field: &str, packets: u32) -> Result<(), Invalid> {
    if packets == 0 || packets > PSN_LIMIT {
        return Err(Invalid::new(field, "must be between 1 and 8388607 (24-bit PSNs)"));
    }
    Ok(())
}
