//! What the packets of a run carry beside their labels.

use crate::Assignment;
use model::Plan;
use rnic::Nics;

/// What the packets of a run carry beside their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Nothing: `()`.
    Nothing,
    /// A [`model::Stamp`].
    Stamp,
    /// A stamp and what switches write about their links: [`model::annex::TelemetryStamp`].
    Telemetry,
    /// A stamp and maps of arrived packets: [`model::annex::SackStamp`].
    Sacks,
}

impl Carried {
    /// The least that the parts of a run can do with.
    pub fn by(plan: &Plan, schemes: &Assignment, nics: &Nics) -> Self {
        // On a fabric of groups, switches note on a packet over which groups it goes. Where packets can run in circles, they
        // count on it.
        let ways = plan.fabric.groups() > 0 || plan.failures.is_by_switch();
        let stamped = schemes.writes() || nics.are_selective() || ways;
        match (nics.have_sacks(), nics.read_telemetry(), stamped) {
            (true, ..) => Carried::Sacks,
            (false, true, _) => Carried::Telemetry,
            (false, false, true) => Carried::Stamp,
            (false, false, false) => Carried::Nothing,
        }
    }
}
