//! Lists of cables as CSV: NetBox's export, and lists such as `StartDevice,StartPort,EndDevice,EndPort,BandWidth`.

use super::File;
use crate::facts::{Edge, End, Facts};
use crate::ledger::WHOLE_FILE;
use crate::said::{Said, metres, rate};
use scenario::headroom::METRE;

/// Columns by what they are: all spellings that we know, in lower case without `_`, `-`, spaces and dots.
const COLUMNS: &[(What, &[&str])] = &[
    (
        What::Node(0),
        &[
            "sideadevice",
            "startdevice",
            "devicea",
            "adevice",
            "sourcedevice",
            "source",
            "from",
            "device1",
            "localdevice",
            "terminationadevice",
            "src",
            "node1",
            "a",
        ],
    ),
    (
        What::Port(0),
        &[
            "sideaname",
            "startport",
            "porta",
            "aport",
            "sourceport",
            "port1",
            "localport",
            "sourceinterface",
            "terminationaname",
            "interfacea",
            "srcport",
            "sideaterminations",
        ],
    ),
    (
        What::Node(1),
        &[
            "sidebdevice",
            "enddevice",
            "deviceb",
            "bdevice",
            "destinationdevice",
            "destination",
            "target",
            "to",
            "device2",
            "remotedevice",
            "terminationbdevice",
            "dst",
            "node2",
            "b",
        ],
    ),
    (
        What::Port(1),
        &[
            "sidebname",
            "endport",
            "portb",
            "bport",
            "destinationport",
            "port2",
            "remoteport",
            "destinationinterface",
            "terminationbname",
            "interfaceb",
            "dstport",
            "sidebterminations",
        ],
    ),
    (What::Rate, &["bandwidth", "speed", "rate", "linkspeed"]),
    (What::Length, &["length", "cablelength"]),
    (What::Unit, &["lengthunit"]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Node(usize),
    Port(usize),
    Rate,
    Length,
    Unit,
}

/// Columns of lists that are no cables of a fabric.
const OTHER: &[(&str, &str)] = &[
    ("baudrate", "serial consoles"),
    ("consoletype", "consoles"),
    ("endfeed", "power feeds"),
    ("bmcip", "management controllers"),
];

pub(super) fn read(facts: &mut Facts, file: &File<'_>) {
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(file.text.as_bytes());
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(error) => return facts.ledger.ignored(&file.line(1), WHOLE_FILE, &format!("no CSV: {error}")),
    };
    let simple = |name: &str| {
        name.trim_start_matches('\u{feff}')
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric())
            .collect::<String>()
    };
    let names: Vec<String> = header.iter().map(simple).collect();
    if let Some((_, what)) = OTHER.iter().find(|(sign, _)| names.iter().any(|name| name == sign)) {
        let why = format!(
            "this looks like a list of {what}, which is not read: they carry no traffic of the fabric"
        );
        return facts.ledger.ignored(&file.line(1), WHOLE_FILE, &why);
    }
    let what = |name: &String| {
        COLUMNS.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(what, _)| *what)
    };
    let columns: Vec<Option<What>> = names.iter().map(what).collect();
    let has = |what: What| columns.contains(&Some(what));
    if !has(What::Node(0)) || !has(What::Node(1)) {
        let why =
            "this looks like CSV without columns for two devices, such as side_a_device and side_b_device";
        return facts.ledger.ignored(&file.line(1), WHOLE_FILE, why);
    }
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(1, |at| at.line() as usize);
                facts.ledger.ignored(&file.line(line), "a line", &format!("no CSV: {error}"));
                continue;
            }
        };
        let line = record.position().map_or(1, |at| at.line() as usize);
        let at = file.line(line);
        let cell = |what: What| {
            let cells = columns
                .iter()
                .zip(&record)
                .filter(|(column, cell)| **column == Some(what) && !cell.is_empty());
            cells.map(|(_, cell)| cell).next()
        };
        let (Some(a), Some(b)) = (cell(What::Node(0)), cell(What::Node(1))) else {
            facts.ledger.ignored(&at, "a line", "one of its two devices is missing");
            continue;
        };
        let metres = cell(What::Length).and_then(|length| match cell(What::Unit) {
            Some("m") => length.parse::<f64>().ok(),
            Some("cm") => length.parse::<f64>().ok().map(|cm| cm / 100.0),
            Some("ft") => length.parse::<f64>().ok().map(|feet| feet * 0.3048),
            None => metres(length).map(|m| m as f64).or_else(|| length.parse().ok()),
            Some(_) => None,
        });
        let ps = metres.filter(|m| (0.001..2e6).contains(m)).map(|m| (m * METRE as f64) as u64);
        facts.edges.push(Edge {
            ends: [End::new(a, cell(What::Port(0))), End::new(b, cell(What::Port(1)))],
            rate: cell(What::Rate).and_then(rate).map(|value| Said { value, at: at.clone() }),
            delay: ps.map(|value| Said { value, at: at.clone() }),
            at: at.clone(),
        });
        for (i, name) in
            header.iter().enumerate().filter(|(i, _)| record.get(*i).is_some_and(|cell| !cell.is_empty()))
        {
            let name = files::printable::on_one_line(name);
            match columns[i] {
                Some(What::Rate) if cell(What::Rate).and_then(rate).is_none() => {
                    facts.ledger.ignored(&at, &name, "it is no rate such as 400G")
                }
                Some(What::Length | What::Unit) if ps.is_none() => {
                    facts.ledger.ignored(&at, &name, "it is no length in m, cm or ft")
                }
                Some(What::Rate) => facts.ledger.read(&at, &name, "rates of [topology.links]"),
                Some(What::Length | What::Unit) => {
                    facts.ledger.read(&at, &name, "delays of [topology.links]")
                }
                Some(_) => facts.ledger.read(&at, &name, "links of [topology.links]"),
                None => facts.ledger.ignored(&at, &name, "it is no end, rate or length of a cable"),
            }
        }
    }
}
