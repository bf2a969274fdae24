//! NCCL's topology as XML (`NCCL_TOPO_DUMP_FILE`).

use crate::log::{Log, Net};
use roxmltree::{Document, Node};

/// Most elements inside each other. Our choice: topologies have about ten, and the parser takes stack for each.
const DEEPEST: usize = 200;

/// The line at which elements stand too deep in each other.
fn too_deep(text: &str) -> Option<usize> {
    let (mut rest, mut depth) = (text, 0usize);
    while let Some(at) = rest.find('<') {
        let tag = &rest[at..];
        // What a comment or a section of text holds is no element.
        let skipped =
            [("<!--", "-->"), ("<![CDATA[", "]]>")].into_iter().find(|(start, _)| tag.starts_with(start));
        if let Some((_, end)) = skipped {
            rest = tag.split_once(end)?.1;
            continue;
        }
        // A tag ends at the first `>` outside of quotes.
        let mut quote = None;
        let end = tag.char_indices().find(|(_, c)| match (quote, c) {
            (None, '"' | '\'') => {
                quote = Some(*c);
                false
            }
            (Some(open), c) if open == *c => {
                quote = None;
                false
            }
            (None, '>') => true,
            _ => false,
        });
        let (end, _) = end?;
        match tag.as_bytes().get(1) {
            Some(b'/') => depth = depth.saturating_sub(1),
            Some(b'!' | b'?') => {}
            _ if tag[..end].ends_with('/') => {}
            _ => depth += 1,
        }
        if depth > DEEPEST {
            return Some(text[..text.len() - tag.len()].matches('\n').count() + 1);
        }
        rest = &tag[end + 1..];
    }
    None
}

/// Reads a text that is XML.
pub(super) fn read(text: &str, log: &mut Log) {
    if let Some(line) = too_deep(text) {
        let shown = text.lines().nth(line - 1).unwrap_or_default().to_owned();
        return log.quote(line, &shown, format!("expected at most {DEEPEST} elements inside each other"));
    }
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
    let text = lines[..=last].join("\n");
    if let Some(line) = too_deep(&text) {
        let shown = lines.get(line - 1).copied().unwrap_or_default();
        log.quote(first - 1 + line, shown, format!("expected at most {DEEPEST} elements inside each other"));
        return first + last;
    }
    match Document::parse(&text) {
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
