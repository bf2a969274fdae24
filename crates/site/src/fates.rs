//! What becomes of every field of `config_db.json`: a setting, a comparison, or a reason why it is ignored.

use crate::fabric::Fabric;
use crate::facts::Facts;
use crate::ledger::Ledger;
use crate::sonic::Switch;
use crate::write::Written;
use crate::{Uses, note, place};

/// Why fields are ignored that became no setting: table, field or `*`, reason. The first row that fits counts.
const REASONS: &[(&str, &str, &str)] = &[
    ("PORT", "speed", "the fabric has no link at this port, or no link has such a rate"),
    ("PORT", "mtu", "frames have the size of [wire]"),
    ("PORT", "admin_status", "a port that is up has its link"),
    ("PORT", "fec", "FEC repairs frames before ropewalk sees them; losses are links.loss"),
    (
        "PORT",
        "lanes|alias|index|description|subport|role|asic_port_name|core_id|core_port_id|num_voq|coreid|coreportid|numvoq|dhcp_rate_limit",
        "it names the port",
    ),
    ("PORT", "pfc_asym", "PFC is symmetric here"),
    (
        "PORT",
        "autoneg|adv_speeds|adv_interface_types|interface_type|link_training|media_type|dom_polling|tpid|macsec|muxtcp|mux_cable",
        "links are up at their rate",
    ),
    ("PORT", "*", "it says nothing of rates and queues"),
    ("CABLE_LENGTH", "*", "the fabric has no link at this port, or its length is 0"),
    ("DEVICE_NEIGHBOR", "*", "the cable is in another file too, or leads out of the fabric"),
    ("DEVICE_NEIGHBOR_METADATA", "*", "it says nothing of queues and links"),
    ("DEVICE_METADATA", "*", "it says nothing of queues and links"),
    ("BUFFER_POOL", "type|mode", "pools are dynamic here: thresholds are shares of what is free"),
    ("BUFFER_POOL", "*", "data does not use this pool"),
    ("BUFFER_PROFILE", "pool", "data has one pool here"),
    ("BUFFER_PROFILE", "static_th", "a fixed threshold is not modelled"),
    ("BUFFER_PROFILE", "xon", "a port resumes below its threshold by xon_offset"),
    ("BUFFER_PROFILE", "*", "data does not use this profile"),
    ("BUFFER_PG", "*", "data is in another priority group"),
    ("BUFFER_QUEUE", "*", "data is in another queue, or PFC keeps it from being dropped"),
    ("BUFFER_PORT_INGRESS_PROFILE_LIST", "*", "the limits of a whole port are not modelled"),
    ("BUFFER_PORT_EGRESS_PROFILE_LIST", "*", "the limits of a whole port are not modelled"),
    ("DEFAULT_LOSSLESS_BUFFER_PARAMETER", "*", "headrooms are those of the profiles"),
    ("LOSSLESS_TRAFFIC_PATTERN", "*", "headrooms are those of the profiles"),
    (
        "WRED_PROFILE",
        "yellow_min_threshold|yellow_max_threshold|yellow_drop_probability|wred_yellow_enable|red_min_threshold|red_max_threshold|red_drop_probability|wred_red_enable",
        "all packets are green unless a policer says otherwise",
    ),
    ("WRED_PROFILE", "wred_green_enable", "packets of RDMA are marked, not dropped"),
    ("WRED_PROFILE", "*", "data does not use this profile"),
    ("QUEUE", "wred_profile", "data is in another queue"),
    ("QUEUE", "scheduler", "the queues of data and of CNPs count here"),
    ("QUEUE", "*", "data is in another queue"),
    ("SCHEDULER", "*", "the queues of data and of CNPs do not use it, or their order is strict"),
    ("PORT_QOS_MAP", "pfcwd_sw_enable", "the watchdog of PFC is that of PFC_WD"),
    (
        "PORT_QOS_MAP",
        "pfc_to_queue_map|pfc_to_pg_map",
        "a priority has the queue and the group of its number",
    ),
    ("PORT_QOS_MAP", "*", "the maps of the first port count"),
    (
        "DSCP_TO_TC_MAP|TC_TO_QUEUE_MAP|TC_TO_PRIORITY_GROUP_MAP",
        "*",
        "no port of the fabric uses this map, or no DSCP leads here",
    ),
    (
        "MAP_PFC_PRIORITY_TO_QUEUE|PFC_PRIORITY_TO_PRIORITY_GROUP_MAP|PFC_PRIORITY_TO_QUEUE_MAP",
        "*",
        "a priority has the queue and the group of its number",
    ),
    (
        "DOT1P_TO_TC_MAP|TC_TO_DSCP_MAP|TC_TO_DOT1P_MAP|MPLS_TC_TO_TC_MAP|DSCP_TO_FC_MAP|EXP_TO_FC_MAP",
        "*",
        "switches classify by DSCP and rewrite nothing",
    ),
    (
        "PFC_WD",
        "*",
        "the watchdog of most ports counts, if it drops or forwards and data is lossless; polls are not rarer than it acts",
    ),
    ("SWITCH_TRIMMING", "*", "data is not trimmed in its queue, or has no such setting"),
    ("SWITCH_HASH", "lag_hash|lag_hash_algorithm", "links of a LAG are links by themselves"),
    ("SWITCH_HASH", "ecmp_hash", "scheme.ecmp knows the 5-tuple and addresses, and ARS needs no hash"),
    ("SWITCH_HASH", "ecmp_hash_algorithm", "scheme.ecmp knows CRC-16, CRC-32 and XOR, and ARS needs no hash"),
    ("SWITCH_HASH", "*", "it is no hash of ECMP"),
    (
        "FG_NHG",
        "bucket_size",
        "a group of next hops needs a bucket for each; at most 65536 are possible, and ARS has none",
    ),
    ("FG_NHG|FG_NHG_PREFIX|FG_NHG_MEMBER", "*", "all groups of next hops have the same buckets here"),
    (
        "ARS_PROFILE",
        "past_load_min_value|past_load_max_value|future_load_min_value|future_load_max_value|current_load_min_value|current_load_max_value",
        "SAI publishes no unit of these limits; enter past-limits and future-limits in [scheme.ars]",
    ),
    (
        "ARS_PROFILE",
        "algorithm|ars_lag_path_selector_mode|ars_nhg_path_selector_mode|default_ars_object|ipv4_enable|ipv6_enable",
        "ARS chooses the port of all data here, by moving averages",
    ),
    (
        "ARS_OBJECT",
        "primary_path_threshold|alternative_path_cost",
        "alternate paths are those of a Dragonfly here",
    ),
    (
        "ARS_PROFILE|ARS_OBJECT",
        "*",
        "ARS is on for no port, or the value is out of range, or another object counts",
    ),
    ("ARS_INTERFACES", "*", "ARS holds for all ports of a switch here"),
    (
        "ARS_NEXTHOPS|ARS_NEXTHOP_GROUP|ARS_PORTCHANNEL|ARS_PORTCHANNELS",
        "*",
        "ARS holds for all next hops of a switch here",
    ),
    ("LLR_PORT|LLR_PROFILE", "*", "links.llr holds for all links of a fabric; enter it there"),
    ("PORTCHANNEL|PORTCHANNEL_MEMBER|PORTCHANNEL_INTERFACE", "*", "links of a LAG are links by themselves"),
    (
        "INTERFACE|LOOPBACK_INTERFACE|VLAN|VLAN_INTERFACE|VLAN_MEMBER|VLAN_SUB_INTERFACE|VRF|VNET|VNET_ROUTE_TUNNEL|VXLAN_TUNNEL|VXLAN_TUNNEL_MAP|VXLAN_EVPN_NVO|NEIGH|SAG|NAT_POOL|STATIC_NAT|NAT_GLOBAL|VOQ_INBAND_INTERFACE|STATIC_ROUTE|ROUTE_TABLE|TUNNEL|PEER_SWITCH|MUX_CABLE|MUX_LINKMGR|SUPPRESS_VLAN_NEIGH",
        "*",
        "addresses: every host reaches every other one here",
    ),
    (
        "BGP_*|ROUTE_MAP|ROUTE_MAP_SET|ROUTE_REDISTRIBUTE|PREFIX_SET|PREFIX_LIST|COMMUNITY_SET|AS_PATH_SET|EXTENDED_COMMUNITY_SET|OSPF*|ISIS*|BFD*|SRV6*|STP*|MCLAG*|DEVICE_RUNTIME_METADATA",
        "*",
        "routing: packets take all shortest paths here",
    ),
    (
        "ACL_*|COPP_*|POLICER|PBH_*|MIRROR_SESSION|EVERFLOW*|SFLOW*|PORT_STORM_CONTROL|DHCP_*|DHCPV4_RELAY|MACSEC_PROFILE|DASH_*|ENI*|HA_*",
        "*",
        "rules for single packets have no effect on data of RDMA here",
    ),
    (
        "SYSTEM_PORT|CHASSIS_MODULE|FABRIC_*|VOQ_*|DPUS|DPU*|MID_PLANE_BRIDGE|ASIC*|VIRTUAL_*|SMART_SWITCH*|REMOTE_DPU*|VDPU*",
        "*",
        "a chassis is one switch here",
    ),
    (
        "MGMT_*|NTP*|SYSLOG*|SNMP*|TACPLUS*|RADIUS*|LDAP*|AAA|DNS_*|FEATURE|TELEMETRY*|RESTAPI|GNMI*|KDUMP|CRM|FLEX_COUNTER*|VERSIONS|AUTO_TECHSUPPORT*|CONSOLE_*|PASSW*|BANNER*|SSH*|HEARTBEAT*|LOGGER|SYSTEM_DEFAULTS|KUBERNETES*|DEBUG_*|ZTP|HARDWARE|WARM_RESTART|SYSLOG_CONFIG*|SERIAL_CONSOLE|MEMORY_STATISTICS|ASIC_SENSORS|SUPPRESS*|FIPS|BMP|PROCESS*|LLDP*|NETWORK_HEALTH|EVENT*|WATERMARK*|DEVICE_GLOBAL|IP_*|GRPC*|CONTAINER*|FLOW_COUNTER*|DEBUG*|HIGH_FREQUENCY*|XCVRD*|BREAKOUT_CFG|platform|onie_*|SWITCH_FAST_LINKUP|TIMEZONE|X509*",
        "*",
        "management and monitoring",
    ),
];

/// Lists every field of every switch.
pub(crate) fn list(facts: &Facts, fabric: &Fabric, made: &[Written], ledger: &mut Ledger) {
    let mut read = Uses::default();
    for (key, made) in made.iter().flat_map(|(_, written)| written) {
        made.from.iter().for_each(|place| note(&mut read, place, key));
    }
    for link in &fabric.links {
        note(&mut read, &link.at, "links of [topology.links]");
        let [rate, delay] = [place(link.rate.as_ref()), place(link.delay.as_ref())];
        rate.into_iter().for_each(|place| note(&mut read, place, "rates of [topology.links]"));
        delay.into_iter().for_each(|place| note(&mut read, place, "delays of [topology.links]"));
    }
    for contradiction in &ledger.contradicts {
        contradiction.places.iter().for_each(|place| note(&mut read, place, "a contradiction"));
    }
    facts.switches.iter().for_each(|switch| compared(switch, &mut read));
    for cell in facts.switches.iter().flat_map(|switch| &switch.cells).filter(|cell| !cell.table.is_empty()) {
        let key = (cell.at.file.to_string(), cell.at.path.clone());
        let field = files::printable::on_one_line(
            match cell.field.as_str() {
                field if is_key(&cell.table) || field.is_empty() => cell.table.clone(),
                field => format!("{} {field}", cell.table),
            }
            .as_str(),
        );
        if let Some(what) = read.get(&key) {
            ledger.read(&cell.at, &field, &what.join(", "));
        } else {
            ledger.ignored(&cell.at, &field, reason(&cell.table, &cell.field));
        }
    }
}

/// Tables whose fields are ports or numbers, not names.
fn is_key(table: &str) -> bool {
    table == "CABLE_LENGTH"
        || table.ends_with("_MAP") && table != "PORT_QOS_MAP"
        || table == "MAP_PFC_PRIORITY_TO_QUEUE"
}

/// The places of values that rules compare whether or not they agree.
fn compared(switch: &Switch, read: &mut Uses) {
    let mut one = |at: Option<&crate::said::Place>, what: &str| {
        at.into_iter().for_each(|at| note(read, at, what));
    };
    one(place(switch.kind.as_ref()), "roles of [topology.links]");
    one(place(switch.poll.as_ref()), "compared with NCCL's timer");
    for port in switch.ports.values() {
        one(place(port.pfc.as_ref()), "lossless priorities, compared with priority groups and neighbours");
        one(place(port.fec.as_ref()), "compared with the neighbour's");
        one(place(port.watchdog.as_ref()), "compared with NCCL's timer");
    }
    for cell in switch.cells.iter().filter(|cell| cell.table == "DEVICE_METADATA" && cell.field == "hostname")
    {
        one(Some(&cell.at), "names of switches");
    }
    for neighbour in &switch.neighbours {
        one(Some(&neighbour.name.at), "links of [topology.links]");
    }
    for cell in switch.cells.iter().filter(|cell| cell.table == "DEVICE_NEIGHBOR") {
        if ["name", "port", "local_port"].contains(&cell.field.as_str()) {
            one(Some(&cell.at), "links of [topology.links]");
        }
    }
}

fn reason(table: &str, field: &str) -> &'static str {
    let fits = |pattern: &str, word: &str| {
        pattern.split('|').any(|one| match one.strip_suffix('*') {
            Some(start) => word.starts_with(start),
            None => one == word,
        })
    };
    let row = REASONS.iter().find(|(tables, fields, _)| fits(tables, table) && fits(fields, field));
    row.map_or("ropewalk knows no such table", |(_, _, reason)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_reason() {
        assert_eq!(reason("BGP_NEIGHBOR", "asn"), "routing: packets take all shortest paths here");
        assert_eq!(reason("PORT", "lanes"), "it names the port");
        assert_eq!(reason("PORT", "new_field"), "it says nothing of rates and queues");
        assert_eq!(reason("SOMETHING_NEW", "x"), "ropewalk knows no such table");
    }
}
