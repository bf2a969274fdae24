//! A caution about results that the rate control of NICs decides.

use crate::Summary;

/// A sentence if a rate below a hundredth of line rate held flows of these runs for most of their time.
pub fn of_rates(runs: &[&Summary]) -> Option<String> {
    let mut schemes: Vec<&str> = Vec::new();
    let (mut throttled, mut flows) = (0, 0);
    for run in runs.iter().filter(|run| run.flows.throttled > 0) {
        throttled += run.flows.throttled;
        flows += run.flows.count;
        if !schemes.contains(&run.scheme.as_str()) {
            schemes.push(&run.scheme);
        }
    }
    (throttled > 0).then(|| {
        format!(
            "a rate below a hundredth of line rate held {throttled} of {flows} flows for most of their time (under {}): \
             `nic.congestion` and its settings decide their completion times",
            schemes.join(", ")
        )
    })
}
