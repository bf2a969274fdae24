//! Tables of LLDP neighbours: `show lldp table` of SONiC, and `lldpcli show neighbors` (plain and `-f keyvalue`).

use super::File;
use crate::facts::{Edge, End, Facts};

const READ: &str = "links of [topology.links]";

pub(super) fn read(facts: &mut Facts, file: &File<'_>, root: &str) {
    let of_folder = || {
        let mut own =
            facts.switches.iter().filter(|switch| switch.folder == file.folder && *file.folder != *root);
        own.next().map(|switch| switch.name.clone())
    };
    let device = prompt(file.text).or_else(of_folder).unwrap_or_else(|| file.device(root));
    match file.text.contains("RemoteDevice") {
        true => table(facts, file, &device),
        false => blocks(facts, file, &device),
    }
}

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
        let Some(columns) = &columns else { continue };
        if text.trim_start().starts_with("---") || text.starts_with("Total entries") || text.contains('@') {
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
    let mut current: Option<(usize, String)> = None;
    let (mut peer, mut port) = (None, None);
    let mut done =
        |current: &mut Option<(usize, String)>, peer: &mut Option<String>, port: &mut Option<String>| {
            if let (Some((line, local)), Some(peer)) = (current.take(), peer.take()) {
                add(facts, file, line, device, &local, &peer, port.as_deref());
            }
            *port = None;
        };
    for (line, text) in file.lines() {
        let Some((name, value)) = text.split_once(':') else { continue };
        let value = value.trim();
        match name.trim() {
            "Interface" => {
                done(&mut current, &mut peer, &mut port);
                current = Some((line, value.split(',').next().unwrap_or(value).to_owned()));
            }
            "SysName" => peer = Some(value.to_owned()),
            "PortID" => {
                port = value
                    .strip_prefix("ifname ")
                    .or(value.strip_prefix("local "))
                    .map(str::to_owned)
                    .or(port);
            }
            "PortDescr" => port = port.or(Some(value.to_owned())),
            _ => {}
        }
    }
    done(&mut current, &mut peer, &mut port);
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
