//! A switch with SONiC: the tables of `config_db.json`, or of parts of it.

use crate::said::{Place, Said, mbps, metres};
use files::printable;
use files::tree::{Node, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A value of a table: the table, the key of the entry, the field, and the value.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) table: String,
    pub(crate) field: String,
    pub(crate) at: Place,
}

/// A switch and what its configuration says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switch {
    pub(crate) name: String,
    /// Folder of the file.
    pub(crate) folder: Rc<str>,
    /// Every value, for the list of what is read and ignored.
    pub(crate) cells: Vec<Cell>,
    /// Tables that have entries.
    pub(crate) tables: BTreeSet<String>,
    /// `type` of DEVICE_METADATA.
    pub(crate) kind: Option<Said<String>>,
    pub(crate) hwsku: Option<Said<String>>,
    pub(crate) ports: BTreeMap<String, Port>,
    pub(crate) neighbours: Vec<Neighbour>,
    /// By name, what a neighbour is.
    pub(crate) neighbour_kinds: BTreeMap<String, Said<String>>,
    pub(crate) pools: BTreeMap<String, BTreeMap<String, Said<String>>>,
    pub(crate) profiles: BTreeMap<String, BTreeMap<String, Said<String>>>,
    pub(crate) wred: BTreeMap<String, BTreeMap<String, Said<String>>>,
    pub(crate) schedulers: BTreeMap<String, BTreeMap<String, Said<String>>>,
    /// By map and DSCP, the traffic class.
    pub(crate) dscp_to_tc: BTreeMap<String, BTreeMap<u8, Said<u8>>>,
    pub(crate) tc_to_queue: BTreeMap<String, BTreeMap<u8, Said<u8>>>,
    pub(crate) tc_to_pg: BTreeMap<String, BTreeMap<u8, Said<u8>>>,
    /// The map of ports that name none.
    pub(crate) global_dscp_map: Option<Said<String>>,
    pub(crate) poll: Option<Said<u64>>,
    pub(crate) trimming: BTreeMap<String, Said<String>>,
    pub(crate) hash: BTreeMap<String, Said<String>>,
    pub(crate) buckets: Option<Said<u64>>,
    pub(crate) ars_profiles: BTreeMap<String, BTreeMap<String, Said<String>>>,
    pub(crate) ars_objects: BTreeMap<String, BTreeMap<String, Said<String>>>,
    /// Ports with ARS.
    pub(crate) ars_interfaces: BTreeMap<String, BTreeMap<String, Said<String>>>,
    pub(crate) over_subscription: Option<Said<String>>,
    /// Settings that another kind of file says as a whole: key below `[switch]` and value in TOML.
    pub(crate) direct: Vec<(&'static str, Said<String>)>,
}

/// A port of a switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Port {
    /// Bits per second.
    pub(crate) speed: Option<Said<u64>>,
    pub(crate) alias: Option<String>,
    pub(crate) fec: Option<Said<String>>,
    pub(crate) mtu: Option<Said<u64>>,
    pub(crate) is_down: bool,
    /// Metres.
    pub(crate) length: Option<Said<u64>>,
    pub(crate) pfc: Option<Said<Vec<u8>>>,
    /// Priority groups with their profiles.
    pub(crate) groups: Vec<(Vec<u8>, Said<String>)>,
    pub(crate) queues: BTreeMap<u8, Queue>,
    pub(crate) buffer_queues: BTreeMap<u8, Said<String>>,
    pub(crate) dscp_map: Option<Said<String>>,
    pub(crate) queue_map: Option<Said<String>>,
    pub(crate) group_map: Option<Said<String>>,
    /// Detection and restoration time of the watchdog in ms, and its action.
    pub(crate) watchdog: Option<Said<u64>>,
    pub(crate) restoration: Option<Said<u64>>,
    pub(crate) on_storm: Option<Said<String>>,
}

/// A queue of a port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) wred: Option<Said<String>>,
    pub(crate) scheduler: Option<Said<String>>,
    pub(crate) at: Option<Place>,
}

/// What a port is joined with.
#[derive(Clone, Debug)]
pub(crate) struct Neighbour {
    pub(crate) port: String,
    pub(crate) name: Said<String>,
    pub(crate) peer_port: Option<String>,
}

/// Tables by which a part of `config_db.json` is known. Any of them with entries is enough.
pub(crate) const SIGNS: &[&str] = &[
    "ARS_INTERFACES",
    "ARS_OBJECT",
    "ARS_PROFILE",
    "BUFFER_PG",
    "BUFFER_POOL",
    "BUFFER_PROFILE",
    "BUFFER_QUEUE",
    "CABLE_LENGTH",
    "DEVICE_METADATA",
    "DEVICE_NEIGHBOR",
    "DSCP_TO_TC_MAP",
    "FEATURE",
    "INTERFACE",
    "LLR_PORT",
    "LLR_PROFILE",
    "LOOPBACK_INTERFACE",
    "MGMT_INTERFACE",
    "PFC_WD",
    "PORT",
    "PORT_QOS_MAP",
    "QUEUE",
    "SCHEDULER",
    "SWITCH_HASH",
    "SWITCH_TRIMMING",
    "SYSLOG_CONFIG",
    "SYSLOG_SERVER",
    "TC_TO_QUEUE_MAP",
    "VERSIONS",
    "VLAN",
    "WRED_PROFILE",
];

/// Largest priority, queue or class: 3 bits for priorities; SONiC's chassis have queue 8.
const MOST: u8 = 15;

impl Switch {
    /// Reads the tables of one file.
    pub(crate) fn read(file: &Rc<str>, folder: &Rc<str>, root: &Node) -> Switch {
        let mut switch = Switch { folder: Rc::clone(folder), ..Switch::default() };
        switch.add(file, root);
        switch
    }

    /// Adds the tables of another part of the same switch's configuration.
    pub(crate) fn add(&mut self, file: &Rc<str>, root: &Node) {
        for (table, node) in root.entries() {
            // Dumps of the database join table and key: `PORT|Ethernet0`.
            match table.split_once('|') {
                Some((table, key)) => self.entry(file, table, key, node),
                None => match &node.value {
                    Value::Map(entries) if entries.is_empty() => self.cell(file, table, "", "", node.line()),
                    Value::Map(entries) => {
                        entries.iter().for_each(|(key, node)| self.entry(file, table, key, node));
                    }
                    _ => self.cell(file, table, "", "", node.line()),
                },
            }
        }
    }

    /// True if both say something of a table.
    pub(crate) fn overlaps(&self, root: &Node) -> bool {
        root.entries().iter().any(|(table, _)| self.tables.contains(table.split('|').next().unwrap_or(table)))
    }

    fn cell(&mut self, file: &Rc<str>, table: &str, key: &str, field: &str, line: usize) {
        let path =
            [table, key, field].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("|");
        let path = printable::on_one_line(&path);
        self.tables.insert(table.to_owned());
        let place = Place { file: Rc::clone(file), line, path };
        self.cells.push(Cell { table: table.to_owned(), field: field.to_owned(), at: place });
    }

    fn entry(&mut self, file: &Rc<str>, table: &str, key: &str, node: &Node) {
        let fields = node.entries();
        if fields.is_empty() {
            self.cell(file, table, key, "", node.line());
            self.field(table, key, "", &Said { value: String::new(), at: self.last() });
        }
        for (field, value) in fields {
            self.cell(file, table, key, field, value.line());
            let text = match &value.value {
                Value::Text(text) => text.trim().to_owned(),
                Value::List(items) => items.iter().filter_map(Node::text).collect::<Vec<_>>().join(","),
                Value::Null | Value::Map(_) => String::new(),
            };
            let said = Said { value: unlinked(&text), at: self.last() };
            self.field(table, key, field, &said);
        }
    }

    fn last(&self) -> Place {
        self.cells.last().map(|cell| cell.at.clone()).expect("a value was noted before")
    }

    /// Takes a field. A row here says where a field goes; what becomes of it is in `settings` and `rules`.
    fn field(&mut self, table: &str, key: &str, field: &str, said: &Said<String>) {
        let number = || said.read(|text| text.parse::<u64>().ok());
        let small = || said.read(|text| text.parse::<u8>().ok().filter(|n| *n <= MOST));
        let named = |map: &mut BTreeMap<String, BTreeMap<String, Said<String>>>| {
            map.entry(key.to_owned()).or_default().insert(field.to_owned(), said.clone());
        };
        match (table, field) {
            ("DEVICE_METADATA", "hostname") if key == "localhost" => {
                self.name = printable::name(&said.value);
            }
            ("DEVICE_METADATA", "type") if key == "localhost" => self.kind = said.read(filled),
            ("DEVICE_METADATA", "hwsku") if key == "localhost" => self.hwsku = said.read(filled),
            ("PORT", _) => {
                let port = self.ports.entry(key.to_owned()).or_default();
                match field {
                    "speed" => port.speed = said.read(|text| mbps(text)),
                    "alias" => port.alias = Some(said.value.clone()),
                    "fec" => port.fec = said.read(filled),
                    "mtu" => port.mtu = number(),
                    "admin_status" => port.is_down = said.value == "down",
                    _ => {}
                }
            }
            ("CABLE_LENGTH", _) => {
                self.ports.entry(field.to_owned()).or_default().length =
                    said.read(|text| metres(text).filter(|m| *m > 0));
            }
            ("DEVICE_NEIGHBOR", _) => self.neighbour(key, field, said),
            ("DEVICE_NEIGHBOR_METADATA", "type") => {
                self.neighbour_kinds.insert(printable::name(key), said.clone());
            }
            ("BUFFER_POOL", _) => named(&mut self.pools),
            ("BUFFER_PROFILE", _) => named(&mut self.profiles),
            ("WRED_PROFILE", _) => named(&mut self.wred),
            ("SCHEDULER", _) => named(&mut self.schedulers),
            ("BUFFER_PG", "profile") => {
                for (port, groups) in of_ports(key) {
                    self.ports.entry(port).or_default().groups.push((groups, said.clone()));
                }
            }
            ("BUFFER_QUEUE", "profile") => {
                for (port, queues) in of_ports(key) {
                    let port = self.ports.entry(port).or_default();
                    queues.into_iter().for_each(|queue| drop(port.buffer_queues.insert(queue, said.clone())));
                }
            }
            ("QUEUE", _) => {
                for (port, queues) in of_ports(key) {
                    let port = self.ports.entry(port).or_default();
                    for queue in queues {
                        let queue = port.queues.entry(queue).or_default();
                        queue.at = Some(said.at.clone());
                        match field {
                            "wred_profile" => queue.wred = said.read(filled),
                            "scheduler" => queue.scheduler = said.read(filled),
                            _ => {}
                        }
                    }
                }
            }
            ("PORT_QOS_MAP", "dscp_to_tc_map") if key == "global" => {
                self.global_dscp_map = Some(said.clone());
            }
            ("PORT_QOS_MAP", _) if key != "global" => {
                for port in key.split(',') {
                    let port = self.ports.entry(port.to_owned()).or_default();
                    match field {
                        "pfc_enable" => port.pfc = said.read(|text| Some(priorities(text))),
                        "dscp_to_tc_map" => port.dscp_map = Some(said.clone()),
                        "tc_to_queue_map" => port.queue_map = Some(said.clone()),
                        "tc_to_pg_map" => port.group_map = Some(said.clone()),
                        _ => {}
                    }
                }
            }
            ("DSCP_TO_TC_MAP", _) => in_map(&mut self.dscp_to_tc, key, field, 63, small()),
            ("TC_TO_QUEUE_MAP", _) => in_map(&mut self.tc_to_queue, key, field, MOST, small()),
            ("TC_TO_PRIORITY_GROUP_MAP", _) => in_map(&mut self.tc_to_pg, key, field, MOST, small()),
            ("PFC_WD", "POLL_INTERVAL") => self.poll = number(),
            ("PFC_WD", "detection_time") => {
                self.ports.entry(key.to_owned()).or_default().watchdog = number();
            }
            ("PFC_WD", "restoration_time") => {
                self.ports.entry(key.to_owned()).or_default().restoration = number();
            }
            ("PFC_WD", "action") => {
                self.ports.entry(key.to_owned()).or_default().on_storm = Some(said.clone());
            }
            ("SWITCH_TRIMMING", _) => drop(self.trimming.insert(field.to_owned(), said.clone())),
            ("SWITCH_HASH", _) => drop(self.hash.insert(field.to_owned(), said.clone())),
            ("FG_NHG", "bucket_size") => self.buckets = number(),
            ("ARS_PROFILE", _) => named(&mut self.ars_profiles),
            ("ARS_OBJECT", _) => named(&mut self.ars_objects),
            ("ARS_INTERFACES", _) => named(&mut self.ars_interfaces),
            ("DEFAULT_LOSSLESS_BUFFER_PARAMETER", "over_subscribe_ratio") => {
                self.over_subscription = Some(said.clone());
            }
            _ => {}
        }
    }

    /// A field of DEVICE_NEIGHBOR: keyed by port with `name` and `port`, or, in old files, by name with `local_port`.
    fn neighbour(&mut self, key: &str, field: &str, said: &Said<String>) {
        let same = self.neighbours.iter().position(|it| it.port == key);
        match (field, same) {
            ("name", None) => {
                let name = said.read(|name| filled(&printable::name(name)));
                let Some(name) = name else { return };
                self.neighbours.push(Neighbour { port: key.to_owned(), name, peer_port: None });
            }
            ("name", Some(i)) => self.neighbours[i].name = said.clone(),
            ("port", _) => {
                let old = |it: &Neighbour| it.name.value == printable::name(key);
                match same.or_else(|| self.neighbours.iter().position(old)) {
                    Some(i) => self.neighbours[i].peer_port = Some(said.value.clone()),
                    // The name of the neighbour comes later.
                    None => self.neighbours.push(Neighbour {
                        port: key.to_owned(),
                        name: Said { value: String::new(), at: said.at.clone() },
                        peer_port: Some(said.value.clone()),
                    }),
                }
            }
            ("local_port", _) => {
                let name = Said { value: printable::name(key), at: said.at.clone() };
                match same {
                    Some(i) => {
                        self.neighbours[i].port.clone_from(&said.value);
                        self.neighbours[i].name = name;
                    }
                    None => {
                        self.neighbours.push(Neighbour { port: said.value.clone(), name, peer_port: None });
                    }
                }
            }
            ("type", _) if !key.starts_with("Ethernet") => {
                self.neighbour_kinds.insert(printable::name(key), said.clone());
            }
            _ => {}
        }
    }
}

fn filled(text: &String) -> Option<String> {
    (!text.is_empty() && text != "None" && text != "none").then(|| text.clone())
}

/// The name behind `[TABLE|name]`, as old files refer to entries.
fn unlinked(text: &str) -> String {
    let inside = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inside.and_then(|inside| inside.split_once('|')).map_or(text, |(_, name)| name).to_owned()
}

fn in_map(
    maps: &mut BTreeMap<String, BTreeMap<u8, Said<u8>>>,
    name: &str,
    from: &str,
    most: u8,
    to: Option<Said<u8>>,
) {
    if let (Some(from), Some(to)) = (from.parse::<u8>().ok().filter(|from| *from <= most), to) {
        maps.entry(name.to_owned()).or_default().insert(from, to);
    }
}

/// The ports of a key such as `Ethernet0,Ethernet4|3-4`, each with the numbers behind the bar.
fn of_ports(key: &str) -> Vec<(String, Vec<u8>)> {
    let Some((ports, numbers)) = key.rsplit_once('|') else { return Vec::new() };
    let numbers = priorities(numbers);
    // On a chassis the name of the system port has bars of its own: host|asic|port.
    let ports = ports.rsplit('|').next().unwrap_or(ports);
    ports.split(',').map(|port| (port.to_owned(), numbers.clone())).collect()
}

/// The numbers of `3,4` or `3-4`.
pub(crate) fn priorities(text: &str) -> Vec<u8> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once('-') {
            Some((from, to)) => {
                if let (Ok(from), Ok(to)) = (from.trim().parse::<u8>(), to.trim().parse::<u8>()) {
                    all.extend(from..=to.min(MOST));
                }
            }
            None => all.extend(part.parse::<u8>().ok().filter(|n| *n <= MOST)),
        }
    }
    all
}
