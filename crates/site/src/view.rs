//! A switch as its data sees it: the class of data, its queues and profiles, and the ports that the fabric uses.

use crate::facts::Lookup;
use crate::said::{Place, Said};
use crate::sonic::{Port, Switch};
use std::collections::{BTreeMap, BTreeSet};

/// Fields of a profile by name.
pub(crate) type Fields = BTreeMap<String, Said<String>>;

/// A switch, the ports of it that the fabric uses, and the class of data.
pub(crate) struct View<'a> {
    pub(crate) switch: &'a Switch,
    /// Names of the ports and what is said of them.
    pub(crate) ports: Vec<(&'a str, &'a Port)>,
    pub(crate) class: Option<Class>,
    /// Priorities that ports pause, each with a place that says so.
    pub(crate) lossless: BTreeMap<u8, Place>,
    /// DSCP that NICs give to data, if a file says it.
    dscp: Option<u8>,
    pub(crate) fabric: &'a Whole,
    lookups: Vec<&'a Lookup>,
    /// Bits per second of the links at ports.
    rates: BTreeMap<String, u64>,
}

/// What a switch's settings need to know of the fabric.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    /// Bits per second of all links.
    pub(crate) rates: BTreeSet<u64>,
    /// Most links of a switch to other switches.
    pub(crate) next_hops: usize,
}

/// The class of data at a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) queue: u8,
    pub(crate) group: u8,
    pub(crate) lossless: bool,
    pub(crate) from: Vec<Place>,
}

impl<'a> View<'a> {
    /// The view of a switch whose ports `used` the fabric has; all ports that are up if it has none.
    pub(crate) fn new(
        switch: &'a Switch,
        used: &BTreeMap<String, u64>,
        fabric: &'a Whole,
        lookups: &'a [Lookup],
        dscp: Option<&Said<u8>>,
    ) -> Self {
        let is_used = |name: &str, port: &Port| match used.is_empty() {
            true => !port.is_down,
            false => used.contains_key(name),
        };
        let ports = switch.ports.iter().filter(|(name, port)| is_used(name, port));
        let ports: Vec<_> = ports.map(|(name, port)| (name.as_str(), port)).collect();
        let own: Vec<&Lookup> = lookups.iter().filter(|row| row.folder == switch.folder).collect();
        let lookups = if own.is_empty() { lookups.iter().collect() } else { own };
        let mut view = View {
            switch,
            ports,
            class: None,
            lossless: BTreeMap::new(),
            dscp: None,
            fabric,
            lookups,
            rates: used.clone(),
        };
        view.lossless = view.lossless_priorities();
        view.dscp = dscp.map(|said| said.value);
        view.class = view.class_of_data(dscp);
        view
    }

    /// Bits per second of a port: what its configuration says, else those of its link.
    pub(crate) fn rate(&self, name: &str, port: &Port) -> Option<u64> {
        port.speed.as_ref().map(|said| said.value).or_else(|| self.rates.get(name).copied())
    }

    /// Bits per second of the link at a port, else those of its configuration.
    pub(crate) fn link_rate(&self, name: &str, port: &Port) -> Option<u64> {
        self.rates.get(name).copied().or_else(|| port.speed.as_ref().map(|said| said.value))
    }

    /// The class of packets with a DSCP: traffic class, priority group and queue, and the places that say so.
    pub(crate) fn class_of(&self, dscp: u8) -> Option<(u8, Class)> {
        let switch = self.switch;
        // Most ports use one map, and a port without one uses the global map, or the only one.
        let map = self.ports.iter().find_map(|(_, port)| port.dscp_map.as_ref());
        let map = map.or(switch.global_dscp_map.as_ref());
        let (map_name, mut from) = match map {
            Some(map) => (map.value.clone(), vec![map.at.clone()]),
            None if switch.dscp_to_tc.len() == 1 => (switch.dscp_to_tc.keys().next()?.clone(), Vec::new()),
            None => return None,
        };
        let tc = switch.dscp_to_tc.get(&map_name)?.get(&dscp);
        from.extend(tc.map(|tc| tc.at.clone()));
        // A DSCP that the map lacks has the default traffic class: SAI_SWITCH_ATTR_QOS_DEFAULT_TC is 0.
        let tc = tc.map_or(0, |tc| tc.value);
        let (queue, at) = self.mapped(&switch.tc_to_queue, tc, |port| port.queue_map.as_ref());
        from.extend(at);
        let (group, at) = self.mapped(&switch.tc_to_pg, tc, |port| port.group_map.as_ref());
        from.extend(at);
        // PFC pauses priorities; without a map of its own, a priority is a traffic class.
        let is_lossless = self.lossless.contains_key(&tc) || self.lossless.contains_key(&group);
        Some((tc, Class { queue, group, lossless: is_lossless, from }))
    }

    fn mapped(
        &self,
        maps: &BTreeMap<String, BTreeMap<u8, Said<u8>>>,
        tc: u8,
        of: impl Fn(&Port) -> Option<&Said<String>>,
    ) -> (u8, Option<Place>) {
        let name = self.ports.iter().find_map(|(_, port)| of(port)).map(|said| &said.value);
        let map = name.and_then(|name| maps.get(name)).or_else(|| maps.values().next());
        map.and_then(|map| map.get(&tc)).map_or((tc, None), |said| (said.value, Some(said.at.clone())))
    }

    /// A DSCP that leads to the class of data: the one that NICs send, else the first one.
    pub(crate) fn dscp_of_data(&self) -> Option<u8> {
        let data = self.class.as_ref()?;
        let leads = |dscp: &u8| {
            let class = self.class_of(*dscp).map(|(_, class)| class);
            class.is_some_and(|class| class.queue == data.queue && class.lossless == data.lossless)
        };
        self.dscp.into_iter().chain(0..64).find(leads)
    }

    fn lossless_priorities(&self) -> BTreeMap<u8, Place> {
        let mut all = BTreeMap::new();
        for (_, port) in &self.ports {
            for priority in port.pfc.iter().flat_map(|pfc| &pfc.value) {
                all.entry(*priority).or_insert_with(|| port.pfc.as_ref().expect("it has").at.clone());
            }
            for (groups, profile) in &port.groups {
                if self.is_lossless(&profile.value) {
                    for group in groups {
                        all.entry(*group).or_insert_with(|| profile.at.clone());
                    }
                }
            }
        }
        all
    }

    /// True for a profile of a lossless priority group: it has room for packets after a pause, or a name that says so.
    pub(crate) fn is_lossless(&self, profile: &str) -> bool {
        let has_xoff = self.switch.profiles.get(profile).is_some_and(|fields| fields.contains_key("xoff"));
        !profile.contains("lossy") && (has_xoff || profile == "NULL" || profile.contains("lossless"))
    }

    /// True if a table says which priorities are lossless.
    pub(crate) fn says_pfc(&self) -> bool {
        ["PORT_QOS_MAP", "BUFFER_PG"].iter().any(|table| self.switch.tables.contains(*table))
    }

    /// The class of data: by its DSCP if NICs say it, else the first lossless one, else that of DSCP 0.
    fn class_of_data(&self, dscp: Option<&Said<u8>>) -> Option<Class> {
        if let Some(dscp) = dscp
            && let Some((_, mut class)) = self.class_of(dscp.value)
        {
            class.from.push(dscp.at.clone());
            return Some(class);
        }
        if let Some((priority, at)) =
            self.lossless.iter().next().map(|(priority, at)| (*priority, at.clone()))
        {
            let (queue, place) =
                self.mapped(&self.switch.tc_to_queue, priority, |port| port.queue_map.as_ref());
            let from = [Some(at), place].into_iter().flatten().collect();
            return Some(Class { queue, group: priority, lossless: true, from });
        }
        self.says_pfc().then(|| {
            let zero = self.class_of(0).map(|(_, class)| class);
            zero.unwrap_or(Class { queue: 0, group: 0, lossless: false, from: Vec::new() })
        })
    }

    /// Name, place and fields of the profile of data's priority group at a port. The fields of a profile that the switch makes by itself
    /// come from `pg_profile_lookup.ini`.
    pub(crate) fn group_profile<'p>(&self, port: &'p Port) -> Option<(Option<&'p Said<String>>, Fields)> {
        let group = self.class.as_ref()?.group;
        let named =
            port.groups.iter().find(|(groups, _)| groups.contains(&group)).map(|(_, profile)| profile);
        if let Some(fields) = named.and_then(|name| self.switch.profiles.get(&name.value)) {
            return Some((named, fields.clone()));
        }
        let speed = port.speed.as_ref()?.value / 1_000_000;
        let length = port.length.as_ref()?;
        let row = self.lookups.iter().find(|row| row.speed == speed && row.length == length.value);
        let fields: Fields = row.map(|row| row.fields.iter().cloned().collect()).unwrap_or_default();
        (named.is_some() || !fields.is_empty()).then_some((named, fields))
    }

    /// The threshold of marking in a queue of a port: the profile, or `None` with the place of the queue if it marks nothing.
    pub(crate) fn wred(
        &self,
        port: &'a Port,
        queue: u8,
    ) -> Option<Result<(&'a Said<String>, &'a Fields), Place>> {
        let queue = port.queues.get(&queue)?;
        let Some(name) = &queue.wred else { return Some(Err(queue.at.clone()?)) };
        match self.switch.wred.get(&name.value) {
            Some(fields) if marks(fields) => Some(Ok((name, fields))),
            Some(_) => Some(Err(name.at.clone())),
            None => None,
        }
    }
}

/// True if a WRED profile marks green packets; all packets are green unless a policer says otherwise.
fn marks(fields: &Fields) -> bool {
    fields.get("ecn").is_some_and(|ecn| ecn.value == "ecn_all" || ecn.value.contains("green"))
}

/// A number of bytes in a field.
pub(crate) fn bytes(fields: &Fields, field: &str) -> Option<Said<u64>> {
    fields.get(field)?.read(|text| text.parse().ok())
}
