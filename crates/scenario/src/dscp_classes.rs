//! The classes of ports that `switch.dscp-map` gives: the map and the DSCPs of NICs become a table of `switch.classes`.

use crate::classes::{Classes, PacketKind, PortClass};
use crate::config::Scenario;
use crate::dscp::{DscpMap, MOST};
use crate::values::Switched;
use finding::{Finding, code};
use rnic::NicConfig;
use std::borrow::Cow;

/// Kinds of packets that NICs send.
const KINDS: [PacketKind; 7] = [
    PacketKind::Data,
    PacketKind::Ack,
    PacketKind::Nack,
    PacketKind::Cnp,
    PacketKind::Trimmed,
    PacketKind::Control,
    PacketKind::Probe,
];

/// The DSCP that a NIC gives to packets of a kind.
fn dscp_of(nic: &NicConfig, kind: PacketKind) -> u8 {
    match kind {
        PacketKind::Cnp => nic.cnp_dscp,
        PacketKind::Ack | PacketKind::Nack | PacketKind::Control => nic.ack_dscp.unwrap_or(nic.dscp),
        PacketKind::Data | PacketKind::Trimmed | PacketKind::Probe | PacketKind::Signal => nic.dscp,
    }
}

/// The scenario with the classes of ports that its map of DSCPs gives.
pub(crate) fn apply(scenario: &Scenario) -> Result<Cow<'_, Scenario>, Finding> {
    let classes =
        scenario.class.iter().filter_map(|(name, class)| Some((name.as_str(), class.nic.as_ref()?)));
    let nics = classes.map(|(name, nic)| (format!("class.{name}.nic"), nic));
    for (path, nic) in nics.chain([("nic".to_owned(), &scenario.nic)]) {
        let all = [("dscp", Some(nic.dscp)), ("cnp-dscp", Some(nic.cnp_dscp)), ("ack-dscp", nic.ack_dscp)];
        if let Some((key, Some(found))) =
            all.into_iter().find(|(_, dscp)| dscp.is_some_and(|dscp| dscp > MOST))
        {
            let text = format!("expected a DSCP from 0 to {MOST}, found {found}");
            return Err(code::RANGE.at(&format!("{path}.{key}"), text));
        }
    }
    let Some(map) = &scenario.switch.dscp_map else { return Ok(Cow::Borrowed(scenario)) };
    map.check()?;
    if scenario.switch.classes != Classes::Strict {
        let text = "`switch.classes` has the queues of ports already; remove one of both";
        return Err(code::CONFLICT.at("switch.dscp-map", text));
    }
    let queues = map.queues();
    let flows = scenario.traffic_classes()?;
    let profile = |flow: &str| {
        let nic = scenario.nic_of(flow);
        KINDS.map(|kind| DscpMap::queue(&queues, dscp_of(&nic, kind)))
    };
    let base = profile(scenario.workload.first().map_or("foreground", |entry| entry.class()));
    let mut own = scenario.clone();
    own.switch.dscp_map = None;
    let pfc = scenario.switch.pfc.clone();
    // The class of data comes with the map's pauses and marks.
    let class = |queue: usize, kinds: Vec<PacketKind>| PortClass {
        marked: kinds.contains(&PacketKind::Data).then_some(queues[queue].lossless),
        weight: queues[queue].weight,
        kinds,
        ..PortClass::default()
    };
    let used = |profile: &[usize; KINDS.len()], other: Option<&[usize; KINDS.len()]>| {
        let mut classes: Vec<(usize, Vec<PacketKind>)> = Vec::new();
        for queue in 0..queues.len() {
            let differs = |i: &usize| profile[*i] == queue && other.is_none_or(|other| other[*i] != queue);
            let kinds: Vec<_> = (0..KINDS.len()).filter(differs).map(|i| KINDS[i]).collect();
            if !kinds.is_empty() {
                classes.push((queue, kinds));
            }
        }
        classes
    };
    let mut table: Vec<(usize, PortClass)> = Vec::new();
    for (queue, mut kinds) in used(&base, None) {
        if kinds.contains(&PacketKind::Cnp) {
            // Signals between switches have no NIC: they wait with CNPs. Our choice.
            kinds.push(PacketKind::Signal);
        }
        table.push((queue, class(queue, kinds)));
    }
    let mut others: Vec<([usize; KINDS.len()], Vec<String>)> = Vec::new();
    for flow in flows {
        let own = profile(flow);
        if own != base {
            match others.iter_mut().find(|(other, _)| *other == own) {
                Some((_, of)) => of.push(flow.to_owned()),
                None => others.push((own, vec![flow.to_owned()])),
            }
        }
    }
    for (profile, of) in &others {
        for (queue, kinds) in used(profile, Some(&base)) {
            let data = kinds.contains(&PacketKind::Data);
            let pauses = || if queues[queue].lossless { pfc.clone() } else { Switched::OFF };
            table.push((queue, PortClass { of: of.clone(), pfc: data.then(pauses), ..class(queue, kinds) }));
        }
    }
    if table.len() > model::plan::Classes::MOST {
        let text = format!(
            "the DSCPs of all NICs use {} queues of a port, and ropewalk simulates at most {}",
            table.len(),
            model::plan::Classes::MOST
        );
        return Err(code::RANGE.at("switch.dscp-map", text).with_help("give fewer DSCPs to packets"));
    }
    table.sort_by_key(|(queue, _)| *queue);
    if !queues[base[0]].lossless {
        own.switch.pfc = Switched::OFF;
        for role in own.switch_role.values_mut() {
            role.pfc = role.pfc.take().map(|_| Switched::OFF);
        }
    }
    own.switch.classes = Classes::Table(table.into_iter().map(|(_, class)| class).collect());
    Ok(Cow::Owned(own))
}

#[cfg(test)]
mod tests {
    use crate::{Checked, Source, check};
    use model::Kind;

    fn lay(keys: &str) -> Result<Checked, String> {
        let text = format!(
            "{keys}\n[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n[[workload]]\nneighbour-ring = {{}}\n\
             [[workload]]\nname = \"other\"\nclass = \"background\"\nneighbour-ring = {{}}\n"
        );
        check(&Source::new("s.toml", text), &[]).map_err(|error| error.located())
    }

    /// Whether data of the foreground and of the background may be paused, and whether both wait in one queue.
    fn lossless(keys: &str) -> (bool, bool, bool) {
        let plan = lay(keys).unwrap_or_else(|e| panic!("{e}")).plan;
        let of = |class: usize| {
            let qp = (0..plan.qps.len() as u32)
                .map(model::QpId)
                .find(|qp| usize::from(plan.class_of(*qp)) == class);
            let own = plan.port_class(qp.unwrap_or(model::QpId(0)), Kind::Data);
            let settings = match own.group {
                0 => &plan.switches,
                group => &plan.own_queues.groups[usize::from(group) - 1].switches,
            };
            assert_eq!(
                own.marked,
                settings[0].flow_control.is_lossless(),
                "lossless queues alone are marked"
            );
            (settings[0].flow_control.is_lossless(), own.group)
        };
        let (foreground, background) = (of(0), of(1));
        (foreground.0, background.0, foreground.1 == background.1)
    }

    #[test]
    fn each_job_gets_the_queue_of_its_dscp() {
        let sonic = "switch.dscp-map = \"sonic\"\n";
        assert_eq!(lossless(sonic), (false, false, true), "NCCL's DSCP 0");
        assert_eq!(lossless(&format!("{sonic}nic.dscp = 4")), (true, true, true));
        assert_eq!(
            lossless(&format!("{sonic}nic.dscp = 3\nclass.background.nic.dscp = 4")),
            (true, true, false)
        );
        assert_eq!(
            lossless(&format!("{sonic}nic.dscp = 3\nclass.background.nic.dscp = 26")),
            (true, false, false)
        );
        assert_eq!(lossless(&format!("{sonic}class.background.nic.dscp = 3")), (false, true, false));
        let off = "switch.pfc = \"off\"\nswitch.dscp-map = [{ dscp = [3] }, {}]\nnic.dscp = 3";
        assert_eq!(lossless(off), (false, false, true));
    }

    #[test]
    fn replies_and_cnps_have_queues_of_their_own_dscps() {
        let plan = lay("switch.dscp-map = \"sonic\"\nnic = { dscp = 3, ack-dscp = 46 }").unwrap().plan;
        let classes = &plan.classes;
        let of = [Kind::Data, Kind::Ack, Kind::Cnp].map(|kind| classes.of(kind));
        assert_eq!(of, [0, 1, 2], "in the order of the map");
        assert!(classes.all()[0].charged && !classes.all()[1].charged && !classes.all()[2].charged);
        let plan = lay("switch.dscp-map = \"sonic\"\nnic.dscp = 3").unwrap().plan;
        assert_eq!(plan.classes.of(Kind::Ack), plan.classes.of(Kind::Data), "ACKs belong to the queue pair");
    }

    #[test]
    fn mistakes_in_maps_are_told() {
        let told = |keys: &str| lay(keys).err().unwrap_or_default();
        assert!(told("switch.dscp-map = \"sonik\"").contains("expected \"sonic\", or a list of queues"));
        assert!(
            told("switch.dscp-map = [{ dscp = [3] }]").contains("expected exactly one queue without `dscp`")
        );
        assert!(
            told("switch.dscp-map = [{ dscp = [64] }, {}]")
                .contains("expected a DSCP from 0 to 63, found 64")
        );
        assert!(told("switch.dscp-map = [{ dscp = [3, 3] }, {}]").contains("a queue has DSCP 3 already"));
        assert!(told("nic.cnp-dscp = 64").contains("expected a DSCP from 0 to 63, found 64"));
        let both = told("switch = { dscp-map = \"sonic\", classes = \"one\" }");
        assert!(both.contains("`switch.classes` has the queues of ports already"), "{both}");
        let many = "switch.dscp-map = \"sonic\"\nnic = { dscp = 3, ack-dscp = 46 }\nclass.background.nic = { dscp = 4, ack-dscp = 5 }";
        assert!(
            told(many).contains("use 5 queues of a port, and ropewalk simulates at most 4"),
            "{}",
            told(many)
        );
    }
}
