//! NCCL's topology as XML (`NCCL_TOPO_DUMP_FILE`).

use crate::log::{Log, Net};
use roxmltree::{Document, Node};

/// Reads a text that is XML.
pub(super) fn read(text: &str, log: &mut Log) {
    match Document::parse(text) {
        Ok(document) => whole(&document, 0, log),
        Err(error) => {
            let line = error.pos().row as usize;
            let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned();
            log.quote(line, &shown, format!("the XML breaks off: {error}"));
        }
    }
}

/// Reads a topology that begins in a line, and returns its last line.
pub(super) fn inside(text: &str, first: usize, log: &mut Log) -> usize {
    let lines: Vec<&str> = text.lines().skip(first - 1).collect();
    let Some(last) = lines.iter().position(|line| line.contains("</system>")) else {
        log.quote(first, lines.first().unwrap_or(&""), "expected `</system>` behind this line");
        return first;
    };
    match Document::parse(&lines[..=last].join("\n")) {
        Ok(document) => whole(&document, first - 1, log),
        Err(error) => {
            let row = error.pos().row as usize;
            let shown = lines.get(row.saturating_sub(1)).copied().unwrap_or_default();
            log.quote(first - 1 + row, shown, format!("the XML breaks off: {error}"));
        }
    }
    first + last
}

fn whole(document: &Document<'_>, before: usize, log: &mut Log) {
    log.kinds.insert("topology");
    let line = |node: &Node<'_, '_>| document.text_pos_at(node.range().start).row as usize + before;
    let gpus: Vec<Node<'_, '_>> = document.descendants().filter(|node| node.has_tag_name("gpu")).collect();
    if !gpus.is_empty() {
        log.facts.topology_gpus = Some(gpus.len() as u32);
    }
    if let Some(gpu) = gpus.iter().find(|gpu| gpu.attribute("gdr") == Some("0")) {
        log.facts.gdr = log.told(line(gpu), false);
    }
    for net in document.descendants().filter(|node| node.has_tag_name("net")) {
        let mbps = net.attribute("speed").and_then(|speed| speed.parse::<f64>().ok()).unwrap_or(0.0);
        let above: Vec<Node<'_, '_>> = net.ancestors().filter(|node| node.has_tag_name("pci")).collect();
        // The root port stands above the switch; only a switch that has a GPU as well brings both together.
        let near_gpu = above.iter().any(|pci| pci.descendants().any(|node| node.has_tag_name("gpu")));
        log.facts.nets.push(Net {
            name: net.attribute("name").unwrap_or("?").to_owned(),
            gbps: if mbps.is_finite() { mbps / 1e3 } else { 0.0 },
            gdr: net.attribute("gdr").map(|gdr| gdr != "0"),
            pcie: above.iter().filter_map(pcie).reduce(f64::min),
            near_gpu,
            at: log.at(line(&net)),
        });
    }
}

/// The rate of a PCIe link with NCCL's share of its raw rate: 12, 24 and 48 GB/s for 16 lanes of generation 3, 4 and 5 (NCCL, `topo.h`).
fn pcie(pci: &Node<'_, '_>) -> Option<f64> {
    let speed: f64 = pci.attribute("link_speed")?.split_whitespace().next()?.parse().ok()?;
    let width: f64 = pci.attribute("link_width")?.parse().ok()?;
    (speed > 0.0 && width > 0.0 && speed.is_finite()).then_some(speed * width * 12.0 / (8.0 * 16.0))
}
