//! The rules that every plan meets: one file per rule, with its test. A new rule is one file and one line.

pub(crate) mod case;
#[cfg(test)]
pub(crate) mod testing;

use case::Case;
use finding::{Finding, Severity};

macro_rules! rules {
    ($($name:ident),+ $(,)?) => {
        $(pub(crate) mod $name;)+

        /// The rules, in the order of their findings.
        const RULES: &[fn(&Case<'_>) -> Vec<Finding>] = &[$($name::judge),+];
    };
}

rules! {
    limits,
    foreground,
    one_program,
    serving,
    split_paths,
    reached,
    cut_off,
    spreading,
    pausing,
    paused_links,
    storms,
    shared_pcie,
    timeout,
    failover,
    long_flaps,
    patience,
    few_acks,
    cap,
    credits,
    lossless_data,
    hops,
    invariants,
    hardware,
    unused_rates,
    verbs,
    slowed,
    silent,
    whole_scheme,
    one_view,
    own_nic,
    whole_nic,
    nic_classes,
    scheme_settings,
    ack_per_message,
    rate_codes,
    penalties,
    sprayed_telemetry,
    scheme_nics,
    notices,
    feedbacks,
}

/// The warnings of all rules.
///
/// # Errors
/// The first error.
pub(crate) fn judge(case: &Case<'_>) -> Result<Vec<Finding>, Finding> {
    let mut warnings = Vec::new();
    for finding in RULES.iter().flat_map(|rule| rule(case)) {
        match finding.severity {
            Severity::Error => return Err(finding),
            Severity::Warning => warnings.push(finding),
        }
    }
    Ok(warnings)
}
