//! Space for in-band network telemetry on the wire and in packets.

use crate::ideal::Ideals;
use crate::{Plan, Scenario};
use finding::{Finding, code};
use model::digest::{Code, Digest};
use model::telemetry::{MOST_HOPS, MOST_RATES, area};
use model::{Packet, Wire};
use rnic::{Digested, Evidence, NicConfig};
use schemes::SchemeConfig;

/// The NIC whose congestion control reads telemetry of most hops, among all jobs; `None` if none reads telemetry.
fn most_traced(scenario: &Scenario) -> Option<NicConfig> {
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

/// Checks that the routes and rates of a plan fit into the telemetry of its packets.
pub(crate) fn check(scenario: &Scenario, plan: &Plan) -> Result<(), Finding> {
    let area = usize::from(plan.wire.hops);
    let Some(nic) = most_traced(scenario) else { return Ok(()) };
    let rates = plan.rates().len();
    if rates > MOST_RATES && (area > 0 || plan.digest.is_some()) {
        let text = format!("telemetry distinguishes {MOST_RATES} rates of links, and the fabric has {rates}");
        return Err(code::UNSUITED.at("nic.congestion", text));
    }
    let Evidence::Telemetry { setting, .. } = nic.congestion.facts().evidence else { return Ok(()) };
    let key = format!("nic.congestion.{}.{setting}", nic.congestion.name());
    let mut ideals = Ideals::new(plan);
    for qp in &plan.qps {
        let hops = ideals.switches(qp.from, qp.to).unwrap_or_default();
        if hops > area.min(MOST_HOPS) {
            let name = |host: model::HostId| plan.fabric.host_name(host);
            let (room, help) = match hops > MOST_HOPS {
                true => {
                    ("a packet carries".to_owned(), format!("no run can have more than {MOST_HOPS} hops"))
                }
                false => (format!("`{setting}` leaves space for"), format!("set `{key} = {hops}`")),
            };
            let text = format!(
                "packets from {} to {} cross {hops} switches, but {room} the telemetry of {}",
                name(qp.from),
                name(qp.to),
                area.min(MOST_HOPS)
            );
            return Err(code::UNSUITED.at(&key, text).with_help(help));
        }
    }
    Ok(())
}

/// Warnings of settings of feedback that are possible but probably not intended. Their paths start at the NIC.
pub(crate) fn warnings(scheme: &SchemeConfig, nic: &NicConfig, plan: &Plan) -> Vec<Finding> {
    let mut warnings = Vec::new();
    if nic.ack_per_message && nic.telemetry().is_some() {
        let text = format!(
            "with `ack-per-message` the sender gets one ACK per message, but `congestion.{}` needs frequent ACKs",
            nic.congestion.name()
        );
        warnings.push(code::FEW_ACKS.at("ack-per-message", text));
    }
    warnings.extend(nic.congestion.warning(&plan.rates()));
    if nic.transport.penalises() && !nic.congestion.heeds_penalties() {
        let text = format!(
            "`penalties` of `transport.{}` have no effect: `congestion.{}` does not heed them",
            nic.transport.name(),
            nic.congestion.name()
        );
        let key = format!("transport.{}.penalties", nic.transport.name());
        warnings.push(code::NO_EFFECT.at(&key, text));
    }
    let telemetry = matches!(nic.congestion.facts().evidence, Evidence::Telemetry { .. });
    if telemetry && scheme.facts().sprays {
        let text = format!(
            "`congestion.{}` compares the telemetry of two consecutive packets over the same links, but under `{}` they \
             seldom take the same links: senders seldom learn of congestion or of its end",
            nic.congestion.name(),
            scheme.name()
        );
        warnings.push(code::POOR_MATCH.at(&format!("congestion.{}", nic.congestion.name()), text));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use crate::{Checked, Source, check};
    use finding::Finding;

    fn lay(keys: &str) -> Result<Checked, Finding> {
        let text = format!("{keys}\n[[workload]]\npermutation = {{ kind = \"shift\" }}\n");
        check(&Source::new("s.toml", text), &[])
    }

    const LEAVES: &str =
        "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\nrate = \"100Gbps\"\n";

    /// Two hosts with a chain of eight switches between them.
    fn chain(keys: &str) -> String {
        let links: String = (1..8).map(|i| format!("[\"s{}\", \"s{i}\"], ", i - 1)).collect();
        let names: String = (0..8).map(|i| format!("\"s{i}\", ")).collect();
        format!(
            "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [{names}]\n\
             links = [[\"a\", \"s0\"], {links}[\"s7\", \"b\"]]\n[nic.congestion.hpcc]\n{keys}\n"
        )
    }

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

    #[test]
    fn a_route_with_more_hops_than_telemetry_has_space_for_is_refused() {
        let error = lay(&format!("{LEAVES}[nic.congestion.hpcc]\nint-hops = 2")).unwrap_err();
        assert_eq!(
            error.located(),
            "s.toml:7:12: packets from host2 to host0 cross 3 switches, but `int-hops` leaves space for the telemetry of 2"
        );
        let error = lay(&chain("int-hops = 10")).unwrap_err();
        assert!(
            error.to_string().contains("cross 8 switches, but a packet carries the telemetry of 7"),
            "{error}"
        );
        let error = lay(&format!("{LEAVES}[nic.congestion.hpcc]\nint-hops = 16")).unwrap_err();
        assert!(error.to_string().contains("`int-hops` must be between 1 and 15"), "{error}");
    }

    #[test]
    fn a_rate_without_a_code_is_warned_of_only_where_codes_are_used() {
        let odd = LEAVES.replace("100Gbps", "800Gbps");
        assert_eq!(lay(&format!("{odd}[nic.congestion.hpcc]")).unwrap().warnings(), [""; 0]);
        let compat = lay(&format!("{odd}[nic.congestion.hpcc]\ncompat = \"long-haul-prototype\"")).unwrap();
        assert!(compat.warnings()[0].contains("800Gbps, taken for 25Gbps"), "{:?}", compat.warnings());
        let coded = lay(&format!("{LEAVES}[nic.congestion.hpcc]\nunknown-rate = \"25Gbps\"")).unwrap();
        assert_eq!(coded.warnings(), [""; 0]);
    }

    #[test]
    fn penalties_that_no_window_heeds_are_warned_of_and_impossible_ones_refused() {
        let asked = |control: &str, penalty: &str| {
            lay(&format!(
                "{LEAVES}[nic.transport.uec]\npenalties = [{{ {penalty} }}]\n[nic.congestion.{control}"
            ))
        };
        let warned = |control: &str| {
            let warnings = asked(control, "at = \"5us\"").unwrap().warnings();
            warnings.iter().any(|text| text.contains("`penalties` of `transport.uec` have no effect"))
        };
        let heeded = ["nscc]", "rccc]\nnscc = {}", "smartt]"].map(warned);
        assert_eq!((heeded, warned("rccc]"), warned("none]")), ([false; 3], true, true));
        let said = |penalty| asked("nscc]", penalty).unwrap_err().located();
        assert_eq!(said("share = 128"), "s.toml:7:24: `share` must be from 1 to 127, found 128");
        assert_eq!(
            said("at = \"5us\", until = \"5us\""),
            "s.toml:7:36: `until` must be after `at`, 5us; found 5us"
        );
    }

    #[test]
    fn spraying_under_hpcc_is_warned_of_and_a_scheme_with_its_own_control_is_not() {
        let sprayed = lay(&format!("{LEAVES}[scheme.rps]\n[nic.congestion.hpcc]")).unwrap();
        assert!(sprayed.warnings()[0].contains("under `rps` they seldom take"), "{:?}", sprayed.warnings());
        let own = lay(&format!("{LEAVES}[scheme.mp-rdma]\n[nic.congestion.hpcc]")).unwrap();
        assert!(!own.nics.read_telemetry() && own.plan.wire.hops == 0);
    }
}
