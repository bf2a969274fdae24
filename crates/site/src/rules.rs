//! What contradicts itself in a site, a function per rule.

use crate::fabric::{Fabric, port};
use crate::facts::Facts;
use crate::ledger::Ledger;
use crate::said::Place;
use crate::sonic::Switch;
use crate::view::{View, bytes};
use std::collections::{BTreeMap, BTreeSet};

/// Judges every switch by itself, then the cables between them.
pub(crate) fn judge(facts: &Facts, views: &[View<'_>], fabric: &Fabric, ledger: &mut Ledger) {
    for view in views {
        no_lossless_group(view, ledger);
        pause_before_marks(view, ledger);
        short_headroom(view, ledger);
        no_marks(view, ledger);
        lossy_class(view, facts, ledger);
        watchdog(view, facts, ledger);
        oversubscribed_headroom(view, ledger);
    }
    neighbours(facts, views, fabric, ledger);
    nics(facts, views, ledger);
    hash_seeds(facts, fabric, ledger);
}

/// PFC without a lossless priority group: the port pauses nobody, and packets are lost.
fn no_lossless_group(view: &View<'_>, ledger: &mut Ledger) {
    if !view.switch.tables.contains("BUFFER_PG") {
        return;
    }
    let lossless = |groups: &[(Vec<u8>, crate::said::Said<String>)], priority| {
        groups.iter().any(|(all, profile)| all.contains(&priority) && view.is_lossless(&profile.value))
    };
    let any = view
        .switch
        .ports
        .values()
        .any(|port| port.groups.iter().any(|(_, profile)| view.is_lossless(&profile.value)));
    for (_, port) in &view.ports {
        let Some(pfc) = &port.pfc else { continue };
        for priority in &pfc.value {
            let lossy = port.groups.iter().find(|(all, _)| all.contains(priority));
            // The switch makes lossless groups by itself for ports with a cable length, unless a file was taken after it did.
            let made_later = !any && port.length.is_some() && lossy.is_none();
            if lossless(&port.groups, *priority) || made_later {
                continue;
            }
            let mut places = vec![pfc.at.clone()];
            places.extend(lossy.map(|(_, profile)| profile.at.clone()));
            ledger.contradicts(
                "pfc-without-group",
                format!(
                    "{}: pfc_enable has priority {priority}, which has no lossless priority group",
                    view.switch.name
                ),
                "give BUFFER_PG a lossless profile for this priority, or take the priority out of pfc_enable",
                places,
            );
        }
    }
}

/// Marking that ends above the threshold of pauses: PFC comes first.
fn pause_before_marks(view: &View<'_>, ledger: &mut Ledger) {
    let Some(class) = view.class.as_ref().filter(|class| class.lossless) else { return };
    let pool = view.switch.pools.get("ingress_lossless_pool").and_then(|pool| bytes(pool, "size"));
    for (_, port) in &view.ports {
        let Some(Ok((name, wred))) = view.wred(port, class.queue) else { continue };
        let Some((_, profile)) = view.group_profile(port) else { continue };
        let Some(kmax) = bytes(wred, "green_max_threshold") else { continue };
        let fixed = bytes(&profile, "static_th").map(|th| (th.value, th.at));
        let dynamic = || {
            let th = profile.get("dynamic_th").or_else(|| profile.get("threshold"))?;
            let alpha = 2f64.powi(th.value.parse::<i32>().ok().filter(|th| (-10..=10).contains(th))?);
            // One full queue leaves alpha / (1 + alpha) of the pool to itself.
            Some(((pool.as_ref()?.value as f64 * alpha / (1.0 + alpha)) as u64, th.at.clone()))
        };
        let Some((threshold, at)) = fixed.or_else(dynamic).filter(|(threshold, _)| *threshold > 0) else {
            continue;
        };
        if kmax.value > threshold {
            ledger.contradicts(
                "pause-before-marks",
                format!(
                    "{}: marking ends at {} B, and a port pauses its neighbour at {threshold} B or less: PFC comes first",
                    view.switch.name, kmax.value
                ),
                "lower green_max_threshold below the threshold of pauses, or raise dynamic_th",
                vec![kmax.at, at, name.at.clone()],
            );
        }
    }
}

/// Largest frame of SONiC's ports, bytes: its default MTU and the Ethernet header.
const FRAME: u64 = 9_100 + 22;

/// Headroom for a shorter cable or another speed than the port has, or less than its cable holds.
fn short_headroom(view: &View<'_>, ledger: &mut Ledger) {
    if !view.class.as_ref().is_some_and(|class| class.lossless) {
        return;
    }
    for (_, port) in &view.ports {
        let Some(length) = &port.length else { continue };
        let Some((profile, fields)) = view.group_profile(port) else { continue };
        let made_for = profile.and_then(|name| made_for(&name.value));
        if let (Some(profile), Some((speed, metres))) = (profile, made_for) {
            let wrong_speed = port.speed.as_ref().filter(|own| own.value / 1_000_000 > speed);
            if metres < length.value || wrong_speed.is_some() {
                let own = port.speed.as_ref().map_or(speed, |own| own.value / 1_000_000);
                ledger.contradicts(
                    "short-headroom",
                    format!(
                        "{}: the headroom of {metres} m at {speed} Mb/s is on a cable of {} m at {own} Mb/s: it drops packets \
                         after a pause",
                        view.switch.name, length.value
                    ),
                    "give the port the profile of its cable length and speed",
                    vec![profile.at.clone(), length.at.clone()],
                );
                continue;
            }
        }
        let (Some(xoff), Some(speed)) = (bytes(&fields, "xoff"), &port.speed) else { continue };
        // Bytes on the wire between a pause and its effect: there and back, and a frame at each end.
        let on_wire = speed.value as u128 * 2 * u128::from(length.value) * 5 / 8_000_000_000;
        let frame = port.mtu.as_ref().map_or(FRAME, |mtu| mtu.value.saturating_add(22));
        let least = (on_wire as u64).saturating_add(frame.saturating_mul(2));
        if xoff.value < least {
            ledger.contradicts(
                "short-headroom",
                format!(
                    "{}: an xoff of {} B is below the {least} B that arrive after a pause over {} m at {}",
                    view.switch.name,
                    xoff.value,
                    length.value,
                    crate::said::rate_text(speed.value)
                ),
                "give the port the profile of its cable length and speed",
                vec![xoff.at, length.at.clone()],
            );
        }
    }
}

/// Speed in Mb/s and metres for which SONiC made a profile, such as `pg_lossless_100000_40m_profile`.
fn made_for(profile: &str) -> Option<(u64, u64)> {
    let rest = profile.strip_prefix("pg_lossless_")?;
    let (speed, rest) = rest.split_once('_')?;
    let metres = rest.split('_').next()?.strip_suffix('m')?;
    Some((speed.parse().ok()?, metres.parse().ok()?))
}

/// No marks in a queue that PFC pauses: pauses alone slow senders down.
fn no_marks(view: &View<'_>, ledger: &mut Ledger) {
    let switch = view.switch;
    let Some(class) = &view.class else { return };
    for (_, port) in &view.ports {
        if let Some(Err(at)) = view.wred(port, class.queue) {
            ledger.contradicts(
                "no-marks",
                format!("{}: queue {} has data of RDMA and marks nothing", switch.name, class.queue),
                "give the queue a wred_profile with ecn_all, or expect that pauses alone slow senders down",
                vec![at],
            );
        }
    }
}

/// DSCPs that RDMA data has by default: NCCL's, and that of NVIDIA's and Juniper's guides.
const USUAL: &[(u8, &str)] =
    &[(0, "NCCL sends DSCP 0 unless NCCL_IB_TC is set"), (26, "NVIDIA's and Juniper's guides use DSCP 26")];

/// Data in a class that PFC does not protect.
fn lossy_class(view: &View<'_>, facts: &Facts, ledger: &mut Ledger) {
    let lossless = &view.lossless;
    if lossless.is_empty() {
        return;
    }
    let is_protected = |dscp: &u8| view.class_of(*dscp).is_some_and(|(_, class)| class.lossless);
    let protected: Vec<String> = (0..64).filter(is_protected).map(|dscp| dscp.to_string()).collect();
    let said = facts.dscp.as_ref();
    let all: Vec<(u8, String)> = match said {
        Some(said) => vec![(said.value, format!("the NICs send DSCP {}", said.value))],
        None => USUAL.iter().map(|(dscp, why)| (*dscp, (*why).to_owned())).collect(),
    };
    for (dscp, why) in all {
        let Some((tc, class)) = view.class_of(dscp).filter(|(_, class)| !class.lossless) else { continue };
        let mut places = class.from;
        places.extend(lossless.values().next().cloned());
        places.extend(said.map(|said| said.at.clone()));
        let to = match protected.is_empty() {
            true => "no DSCP leads to a lossless class".to_owned(),
            false => {
                format!("lossless are DSCP {}", protected.join(", "))
            }
        };
        ledger.contradicts(
            "lossy-class",
            format!("{}: {why}, which is class {tc}, and that is lossy; {to}", view.switch.name),
            "set NCCL_IB_TC to four times a lossless DSCP, or map the DSCP of the data onto a lossless class on every switch",
            places,
        );
    }
}

/// Exponent of NCCL's timer and retries if no file says another one (NCCL 2.23.4 and later: 20 and 7).
const NCCL: (u32, u64) = (20, 7);

/// A watchdog that acts after senders have given up.
fn watchdog(view: &View<'_>, facts: &Facts, ledger: &mut Ledger) {
    let number = |key: &str| {
        let setting = facts.nic.iter().find(|setting| setting.key == key)?;
        let digits: String = setting.toml.chars().filter(char::is_ascii_digit).collect();
        Some((digits.parse::<u64>().ok()?, setting.at.clone()))
    };
    let (timeout, retries) = (number("timeout"), number("retries"));
    let exponent = timeout.as_ref().map_or(NCCL.0, |(it, _)| (*it).min(31) as u32);
    let times = retries.as_ref().map_or(NCCL.1, |(it, _)| (*it).min(7));
    // 4.096 us x 2^exponent (InfiniBand Architecture, Local ACK Timeout).
    let timer_ms = 4.096e-3 * 2f64.powi(exponent as i32);
    for (_, port) in &view.ports {
        let Some(detection) = &port.watchdog else { continue };
        let acts =
            detection.value.saturating_add(view.switch.poll.as_ref().map_or(0, |poll| poll.value)) as f64;
        if acts <= timer_ms {
            continue;
        }
        let ends = timer_ms * times as f64;
        let text = match acts > ends {
            true => format!(
                "{}: the watchdog acts after {acts:.0} ms, and NCCL's senders end the job after {ends:.0} ms without an answer",
                view.switch.name
            ),
            false => format!(
                "{}: the watchdog acts after {acts:.0} ms, and NCCL's senders repeat after {timer_ms:.0} ms",
                view.switch.name
            ),
        };
        let mut places = vec![detection.at.clone()];
        places.extend([timeout.as_ref(), retries.as_ref()].into_iter().flatten().map(|(_, at)| at.clone()));
        let advice = "lower detection_time, or raise NCCL_IB_TIMEOUT";
        ledger.contradicts("late-watchdog", text, advice, places);
    }
}

/// A pool of headroom that is smaller than the headrooms which share it.
fn oversubscribed_headroom(view: &View<'_>, ledger: &mut Ledger) {
    let Some(pool) = view.switch.pools.get("ingress_lossless_pool") else { return };
    let Some(room) = bytes(pool, "xoff").filter(|room| room.value > 0) else { return };
    let (mut sum, mut ports, mut places) = (0u64, 0, vec![room.at.clone()]);
    for (_, port) in &view.ports {
        let Some(xoff) = view.group_profile(port).and_then(|(_, fields)| bytes(&fields, "xoff")) else {
            continue;
        };
        let groups = port.pfc.as_ref().map_or(1, |pfc| pfc.value.len().max(1)) as u64;
        sum = sum.saturating_add(xoff.value.saturating_mul(groups));
        ports += 1;
        places.push(xoff.at);
    }
    if sum > room.value {
        let ratio = sum as f64 / room.value as f64;
        places.extend(view.switch.over_subscription.as_ref().map(|said| said.at.clone()));
        ledger.contradicts(
            "shared-headroom",
            format!(
                "{}: the headrooms of {ports} ports are {sum} B, {ratio:.1} times the pool's xoff of {} B: pauses at many ports at \
                 once lose packets",
                view.switch.name, room.value
            ),
            "raise xoff of ingress_lossless_pool, or accept the risk if few ports pause at a time",
            places,
        );
    }
}

/// Both ends of a cable disagree.
fn neighbours(facts: &Facts, views: &[View<'_>], fabric: &Fabric, ledger: &mut Ledger) {
    let switches: BTreeMap<&str, usize> =
        facts.switches.iter().enumerate().map(|(i, switch)| (switch.name.as_str(), i)).collect();
    let end = |link: usize, side: usize| {
        let end = &fabric.links[link].ends[side];
        let i = *switches.get(end.node.as_str())?;
        let (name, port) = port(&facts.switches[i], end.port.as_ref()?)?;
        Some((i, format!("{}:{name}", end.node), port))
    };
    for link in 0..fabric.links.len() {
        let (Some((a, a_name, a_port)), Some((b, b_name, b_port))) = (end(link, 0), end(link, 1)) else {
            continue;
        };
        let mut differ =
            |what: &str, one: Option<(String, &Place)>, other: Option<(String, &Place)>, advice: &str| {
                if let (Some((one, at)), Some((other, other_at))) = (one, other)
                    && one != other
                {
                    let text = format!("{a_name} and {b_name} disagree on {what}: {one} and {other}");
                    ledger.contradicts("neighbours", text, advice, vec![at.clone(), other_at.clone()]);
                }
            };
        let speed = |port: &'_ crate::sonic::Port| {
            port.speed.clone().map(|said| (crate::said::rate_text(said.value), said.at))
        };
        let (one, other) = (speed(a_port), speed(b_port));
        differ(
            "the speed",
            one.as_ref().map(|(text, at)| (text.clone(), at)),
            other.as_ref().map(|(text, at)| (text.clone(), at)),
            "set one speed at both ends; the link stays down otherwise",
        );
        let fec = |port: &crate::sonic::Port| port.fec.as_ref().map(|said| said.value.clone());
        differ(
            "FEC",
            fec(a_port).zip(a_port.fec.as_ref().map(|said| &said.at)),
            fec(b_port).zip(b_port.fec.as_ref().map(|said| &said.at)),
            "set one FEC at both ends; the link stays down otherwise",
        );
        let pfc = |i: usize, port: &crate::sonic::Port| {
            if !views[i].says_pfc() {
                return None;
            }
            let mut all = port.pfc.as_ref()?.value.clone();
            all.sort_unstable();
            let all = all.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
            Some(if all.is_empty() { "none".to_owned() } else { all })
        };
        differ(
            "lossless priorities",
            pfc(a, a_port).zip(a_port.pfc.as_ref().map(|said| &said.at)),
            pfc(b, b_port).zip(b_port.pfc.as_ref().map(|said| &said.at)),
            "set one pfc_enable at both ends; a pause for another priority is ignored",
        );
    }
}

/// NICs pause other priorities than switches.
fn nics(facts: &Facts, views: &[View<'_>], ledger: &mut Ledger) {
    let Some(nic) = facts.nic_pfc.first() else { return };
    for view in views.iter().filter(|view| view.says_pfc()) {
        let lossless = &view.lossless;
        if lossless.keys().copied().collect::<Vec<_>>() == nic.value {
            continue;
        }
        let words = |all: Vec<u8>| match all.is_empty() {
            true => "none".to_owned(),
            false => all.iter().map(u8::to_string).collect::<Vec<_>>().join(","),
        };
        let (ours, theirs) = (words(nic.value.clone()), words(lossless.keys().copied().collect()));
        let text = format!("NICs pause the priorities {ours}, and {} those of {theirs}", view.switch.name);
        let places = std::iter::once(nic.at.clone()).chain(lossless.values().cloned()).collect();
        ledger.contradicts(
            "neighbours",
            text,
            "set one set of lossless priorities on NICs and switches",
            places,
        );
    }
}

/// The seed that SONiC gives to a switch by its type: dockers/docker-orchagent/switch.json.j2 of sonic-buildimage asks for these words
/// in this order, so that every kind of spine has the seed of a spine.
pub(crate) fn seed(kind: Option<&str>) -> u32 {
    let words = [
        ("ToRRouter", 0),
        ("LeafRouter", 10),
        ("SpineRouter", 25),
        ("LowerRegionalHub", 60),
        ("FabricRegionalHub", 70),
        ("UpperRegionalHub", 80),
    ];
    let kind = kind.unwrap_or_default();
    words.iter().find(|(word, _)| kind.contains(word)).map_or(0, |(_, seed)| *seed)
}

/// Equal seeds of the hash on two tiers: flows that one tier sends to a switch all leave it by one link.
fn hash_seeds(facts: &Facts, fabric: &Fabric, ledger: &mut Ledger) {
    let switches: BTreeMap<&str, &Switch> =
        facts.switches.iter().map(|switch| (switch.name.as_str(), switch)).collect();
    let with_hosts: BTreeSet<&str> = {
        let hosts: BTreeSet<&str> = fabric.hosts.iter().map(String::as_str).collect();
        let link_ends = |link: &'_ crate::facts::Edge| {
            [0, 1]
                .into_iter()
                .filter(|&i| hosts.contains(link.ends[1 - i].node.as_str()))
                .map(|i| link.ends[i].node.clone())
                .collect::<Vec<_>>()
        };
        let names: BTreeSet<String> = fabric.links.iter().flat_map(link_ends).collect();
        switches.keys().copied().filter(|name| names.contains(*name)).collect()
    };
    for link in &fabric.links {
        let [a, b] = &link.ends;
        let (Some(a), Some(b)) = (switches.get(a.node.as_str()), switches.get(b.node.as_str())) else {
            continue;
        };
        // Two ToRs side by side are one tier.
        if a.kind.as_ref().map(|kind| &kind.value) == b.kind.as_ref().map(|kind| &kind.value)
            && with_hosts.contains(a.name.as_str()) == with_hosts.contains(b.name.as_str())
        {
            continue;
        }
        let kind = |switch: &Switch| switch.kind.as_ref().map(|kind| kind.value.clone());
        let (one, other) = (seed(kind(a).as_deref()), seed(kind(b).as_deref()));
        if one == other {
            let named = |kind: Option<String>| kind.unwrap_or_else(|| "no type".to_owned());
            let mut kinds = [named(kind(a)), named(kind(b))];
            kinds.sort();
            let text = format!(
                "two tiers have the hash seed {one} ({} and {}): flows that meet at a switch all leave it by one link",
                kinds[0], kinds[1]
            );
            let both = [a, b];
            let places = both.iter().filter_map(|switch| {
                let of_file = || switch.cells.first().map(|cell| cell.at.clone());
                switch.kind.as_ref().map(|kind| kind.at.clone()).or_else(of_file)
            });
            ledger.contradicts(
                "hash-seeds",
                text,
                "set DEVICE_METADATA type by tier, or ecmp_hash_seed by hand",
                places.collect(),
            );
        }
    }
}
