//! The cases of the plans.

mod balance;
mod collectives;
mod fairness;
mod faults;
mod headroom;
mod jobs;
mod lossless;
mod marking;
pub(crate) mod rccl;
mod watchdog;

use super::case::Case;
use lab::Failure;
use scenario::suggestion;

/// All cases, in the order of their names.
pub(crate) const CASES: &[Case] = &[
    lossless::A1,
    lossless::A2,
    lossless::A3,
    lossless::A4,
    lossless::A5,
    marking::A6,
    headroom::A7,
    watchdog::A8,
    collectives::A9,
    balance::A10,
    fairness::A11,
    jobs::A12,
    jobs::A13,
    fairness::A14,
    faults::A15,
    rccl::A16,
];

/// The cases of these names; all if there are none.
pub(crate) fn named(names: &[String]) -> Result<Vec<&'static Case>, Failure> {
    if names.is_empty() {
        return Ok(CASES.iter().collect());
    }
    let find = |name: &String| {
        let unknown = || {
            let all: Vec<&str> = CASES.iter().map(|case| case.id).collect();
            Failure::Asked(format!("there is no case `{name}`; {}", suggestion(name, &all)))
        };
        CASES.iter().find(|case| case.id.eq_ignore_ascii_case(name.trim())).ok_or_else(unknown)
    };
    names.iter().map(find).collect()
}
