//! Tables of LLDP neighbours: `show lldp table` of SONiC, and `lldpcli show neighbors` (plain and `-f keyvalue`).

use super::File;
use crate::facts::{Edge, End, Facts};
use std::collections::BTreeMap;

const READ: &str = "links of [topology.links]";

pub(super) fn read(facts: &mut Facts, file: &File<'_>, root: &str) {
    let of_folder = || {
        let mut own =
            facts.switches.iter().filter(|switch| switch.folder == file.folder && *file.folder != *root);
        own.next().map(|switch| switch.name.clone())
    };
    let device = prompt(file.text).or_else(of_folder).unwrap_or_else(|| file.device(root));
    match () {
        () if file.text.contains("RemoteDevice") => table(facts, file, &device),
        () if is_keys(file.text) => keys(facts, file, &device),
        () => blocks(facts, file, &device),
    }
}

/// True for the output of `lldpcli -f keyvalue show neighbors`.
pub(crate) fn is_keys(text: &str) -> bool {
    let of_lldp = |line: &str| line.starts_with("lldp.") && line.contains('=');
    text.lines().find(|line| !line.trim().is_empty()).is_some_and(of_lldp)
}

/// Why a line says nothing of a cable.
const OTHER: &str = "it is no name and no port of a neighbour";

/// Lines such as `lldp.swp1.chassis.name=spine1`.
fn keys(facts: &mut Facts, file: &File<'_>, device: &str) {
    let mut of: BTreeMap<&str, (usize, Option<&str>, Option<&str>)> = BTreeMap::new();
    for (line, text) in file.lines() {
        let path = text.trim().strip_prefix("lldp.").and_then(|rest| rest.split_once('='));
        let parts = path.and_then(|(path, value)| {
            let at = [".chassis.", ".port."].iter().find_map(|word| path.find(word))?;
            Some((&path[..at], &path[at + 1..], value.trim().trim_matches('"')))
        });
        match parts {
            Some((port, field @ ("chassis.name" | "port.ifname" | "port.local" | "port.descr"), value)) => {
                let own = of.entry(port).or_insert((line, None, None));
                match field {
                    "chassis.name" => own.1 = Some(value),
                    "port.descr" => own.2 = own.2.or(Some(value)),
                    _ => own.2 = Some(value),
                }
            }
            Some((_, field, _)) => {
                let field = files::printable::on_one_line(&field.replace('.', " "));
                facts.ledger.ignored(&file.line(line), &field, OTHER);
            }
            None => {
                let field = path.and_then(|(path, _)| path.rsplit('.').next()).unwrap_or("a line");
                facts.ledger.ignored(&file.line(line), &files::printable::on_one_line(field), OTHER);
            }
        }
    }
    for (port, (line, peer, id)) in of {
        match peer {
            Some(peer) => add(facts, file, line, device, port, peer, id),
            None => facts.ledger.ignored(&file.line(line), "neighbour", NAMELESS),
        }
    }
}

/// Why a neighbour is no end of a cable.
const NAMELESS: &str = "it has no name (SysName)";

/// The name in a prompt such as `admin@leaf1:~$ show lldp table`.
fn prompt(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.contains('@') && line.contains("lldp"))?;
    let host = line.split_once('@')?.1;
    let end = host.find([':', '#', '$', ' ', '>']).unwrap_or(host.len());
    let name = files::printable::name(&host[..end]);
    (!name.is_empty()).then_some(name)
}

/// Columns start where the header has them; `show lldp table` pads with spaces.
fn table(facts: &mut Facts, file: &File<'_>, device: &str) {
    let mut columns: Option<Vec<(usize, &str)>> = None;
    for (line, text) in file.lines() {
        if text.contains("LocalPort") {
            let starts =
                text.split_whitespace().map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word));
            columns = Some(starts.collect());
            continue;
        }
        let is_rule = text.trim_start().starts_with("---");
        let Some(columns) =
            columns.as_ref().filter(|_| !text.starts_with("Total entries") && !text.contains('@'))
        else {
            if !is_rule {
                facts.ledger.ignored(&file.line(line), "a line", "it is no row of the table");
            }
            continue;
        };
        if is_rule {
            continue;
        }
        let cell = |name: &str| {
            let i = columns.iter().position(|(_, column)| *column == name)?;
            let start = columns[i].0;
            let end = columns.get(i + 1).map_or(text.len(), |(start, _)| *start);
            let cell = text.get(start..end.min(text.len()))?.trim();
            (!cell.is_empty()).then_some(cell)
        };
        let at = file.line(line);
        let (Some(port), Some(peer)) = (cell("LocalPort"), cell("RemoteDevice")) else {
            facts.ledger.ignored(&at, "a line", "expected LocalPort and RemoteDevice");
            continue;
        };
        // A description is a name where the ID is an address.
        let id = cell("RemotePortID").filter(|id| !id.contains(':')).or(cell("RemotePortDescr"));
        add(facts, file, line, device, port, peer, id);
        facts.ledger.ignored(&at, "Capability", "hosts with lldpd say the same as switches");
    }
}

/// Blocks of `lldpcli`: a local interface, then what its neighbour says.
fn blocks(facts: &mut Facts, file: &File<'_>, device: &str) {
    #[derive(Default)]
    struct Block<'t> {
        local: Option<(usize, &'t str)>,
        peer: Option<&'t str>,
        port: Option<&'t str>,
    }
    let done = |facts: &mut Facts, block: Block<'_>| match (block.local, block.peer) {
        (Some((line, local)), Some(peer)) => add(facts, file, line, device, local, peer, block.port),
        (Some((line, _)), None) => facts.ledger.ignored(&file.line(line), "neighbour", NAMELESS),
        (None, _) => {}
    };
    let mut block = Block::default();
    for (line, text) in file.lines() {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let (name, value) = (name.trim(), value.trim());
        match name {
            "Interface" => {
                done(facts, std::mem::take(&mut block));
                block.local = Some((line, value.split(',').next().unwrap_or(value)));
            }
            "SysName" if block.local.is_some() => block.peer = Some(value),
            "PortID" if block.local.is_some() => {
                let named = value.strip_prefix("ifname ").or(value.strip_prefix("local "));
                match named {
                    Some(named) => block.port = Some(named),
                    None => facts.ledger.ignored(&file.line(line), name, "its kind is no name of a port"),
                }
            }
            "PortDescr" if block.local.is_some() => block.port = block.port.or(Some(value)),
            "LLDP neighbors" => {}
            _ if name.starts_with("---") => {}
            _ => {
                let known = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b' ' || b == b'-');
                let name = if known && text.contains(':') { name } else { "a line" };
                facts.ledger.ignored(&file.line(line), name, OTHER);
            }
        }
    }
    done(facts, block);
}

fn add(
    facts: &mut Facts,
    file: &File<'_>,
    line: usize,
    device: &str,
    port: &str,
    peer: &str,
    id: Option<&str>,
) {
    let at = file.line(line);
    if port.starts_with("eth") && peer.contains("mgmt") || port.starts_with("Management") {
        facts.ledger.ignored(&at, "neighbour", "it is on the port of management");
        return;
    }
    facts.ledger.read(&at, "neighbour", READ);
    facts.edges.push(Edge {
        ends: [End::new(device, Some(port)), End::new(peer, id)],
        rate: None,
        delay: None,
        at,
    });
}
