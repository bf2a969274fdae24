//! PFC's watchdog.

use crate::acceptance::case::{Case, Part, each};

/// Not tested: switches here have no watchdog.
pub(crate) const A8: Case = Case {
    id: "a8",
    plan: "PFCWD_BASIC, PFCWD_2SENDER_2RECEIVER (sonic-mgmt)",
    about: "a storm of pauses longer than detection and poll triggers the watchdog, a shorter one does not",
    metrics: &[],
    parts: |_| Ok(vec![Part::not("storm", "not tested: no watchdog is modelled")]),
    rows: each,
};
