//! Space for in-band network telemetry on the wire and in packets.

use crate::ideal::Ideals;
use crate::{Plan, Scenario};
use finding::{Finding, code};
use model::digest::{Code, Digest};
use model::telemetry::area;
use model::{Packet, Wire};
use rnic::{Digested, Evidence, NicConfig};

/// The NIC whose congestion control reads telemetry of most hops, among all jobs; `None` if none reads telemetry.
pub(crate) fn most_traced(scenario: &Scenario) -> Option<NicConfig> {
    let nics = scenario.workload.iter().map(|entry| scenario.nic_of(entry.class()));
    nics.filter(|nic| nic.telemetry().is_some()).max_by_key(NicConfig::telemetry)
}

/// Most hops of telemetry that the congestion control of a job reads; `None` if none reads telemetry.
pub(crate) fn wanted(scenario: &Scenario) -> Option<u8> {
    most_traced(scenario)?.telemetry()
}

/// The wire with space for the telemetry, and for the time stamps or codes, that the congestion control of a job reads. All data frames
/// and ACKs of a run have the space, as switches do not distinguish queue pairs.
pub(crate) fn on_wire(scenario: &Scenario, wire: Wire) -> Result<Wire, Finding> {
    let hops = wanted(scenario).unwrap_or(0);
    let most = Packet::MAX_FRAME - area(hops);
    if hops > 0 && wire.max_frame() > most {
        let text =
            format!("telemetry takes {} B of every frame, so `frame` must be at most {most} B", area(hops));
        return Err(code::UNSUITED.at("wire.frame", text));
    }
    let stamps = scenario.workload.iter().map(|entry| scenario.nic_of(entry.class()).stamp());
    let stamp = u32::from(stamps.max().unwrap_or(0));
    if stamp > 0 && wire.max_frame() > most - stamp {
        let text = format!(
            "the congestion control takes {stamp} B of every frame, so `frame` must be at most {} B",
            most - stamp
        );
        return Err(code::UNSUITED.at("wire.frame", text));
    }
    Ok(wire.with_stamp(stamp).with_telemetry(hops))
}

/// The digest of telemetry that the congestion control of a job reads, if one does. Switches do not distinguish queue pairs,
/// so all jobs must read the same one, and none may read records.
pub(crate) fn digest(scenario: &Scenario, plan: &Plan) -> Result<Option<Digest>, Finding> {
    let mut found: Option<Digested> = None;
    let nics = || scenario.workload.iter().map(|entry| scenario.nic_of(entry.class()));
    for nic in nics() {
        let Evidence::Digest(digested) = nic.congestion.facts().evidence else { continue };
        if found.is_some_and(|other| other != digested) {
            let text = format!(
                "all jobs must have the same settings of `congestion.{}`: switches write one digest for all",
                nic.congestion.name()
            );
            return Err(code::UNSUITED.at("nic.congestion", text));
        }
        if let Some(other) = nics().find(|nic| nic.telemetry().is_some_and(|hops| hops > 0)) {
            let text = format!(
                "cannot be `{}` for one job and `{}` for another: switches write either records or a code",
                nic.congestion.name(),
                other.congestion.name()
            );
            return Err(code::UNSUITED.at("nic.congestion", text));
        }
        found = Some(digested);
    }
    let Some(Digested { base, resolution, share, period }) = found else { return Ok(None) };
    let Some(code) = Code::new(base, resolution) else { return Ok(None) };
    let period = period.unwrap_or_else(|| Ideals::new(plan).longest_rtt());
    Ok(Some(Digest::new(code, period, share, &plan.rates(), plan.seed)))
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{LEAVES, lay};
    use crate::{Source, check};

    #[test]
    fn only_data_packets_and_acks_grow_by_the_space_of_telemetry() {
        let plain = lay(LEAVES).unwrap().plan.wire;
        let traced = lay(&format!("{LEAVES}[nic.congestion.hpcc]")).unwrap();
        let wire = traced.plan.wire;
        assert_eq!((wire.max_frame(), wire.ack), (plain.max_frame() + 42, plain.ack + 42));
        assert_eq!((wire.payload, wire.cnp), (plain.payload, plain.cnp));
        assert!(traced.nics.read_telemetry() && traced.warnings().is_empty());
        assert!(traced.memory > lay(LEAVES).unwrap().memory);
        // The printed scenario gives the same plan again.
        let again = check(&Source::new("again.toml", traced.to_toml()), &[]).unwrap();
        assert_eq!((again.plan.wire, again.to_toml()), (wire, traced.to_toml()));
        let compat = lay(&format!("compat = \"ns3\"\n{LEAVES}[nic.congestion.hpcc]\nint-hops = 10")).unwrap();
        assert_eq!((compat.plan.wire.max_frame(), compat.plan.wire.ack), (1_130, 142));
        assert_eq!(compat.scenario.nic.cnp, rnic::notification::Cnp::None);
    }

    #[test]
    fn jobs_read_the_same_digest_or_are_refused() {
        let mixed = |other: &str| {
            lay(&format!(
                "{LEAVES}[nic.congestion.pint]\n[class.other.nic.congestion.{other}\n[[workload]]\nclass = \"other\"\n\
                 permutation = {{ kind = \"shift\" }}"
            ))
        };
        let said = |other| mixed(other).unwrap_err().text.to_owned();
        assert!(said("pint]\nresolution = 64").contains("the same settings of `congestion.pint`"));
        assert!(said("hpcc]").contains("cannot be `pint` for one job and `hpcc` for another"));
        // A job that reads no telemetry goes beside it, and so does one with a rate of its own.
        for fits in ["dcqcn]", "pint]\nmin-rate = \"1Gbps\""] {
            assert!(mixed(fits).unwrap().plan.digest.is_some());
        }
    }
}
