//! Lines of what tools print. No counter is known here, only how tools lay out names and numbers.

use super::dump::{Dump, fits};

/// Columns of watermarks by queue and by priority group.
const NUMBERED: [&str; 4] = ["UC#", "MC#", "ALL#", "PG#"];

/// What earlier lines say of the next one.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) dump: Dump,
    device: String,
    /// Names of the columns of a table; that of a column which is no count is empty.
    columns: Vec<String>,
    /// `shared ` or `headroom `: SONiC prints watermarks of both under the same names.
    room: &'static str,
    /// The port of Junos, and the heading under which its counts stand, such as `Transmitted`.
    port: String,
    heading: String,
}

impl Lines {
    pub(crate) fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => self.columns.clear(),
            // `ethtool -S` names no device; a line such as `eth0:` before it does, or the command itself.
            ["NIC", "statistics:"] => {}
            [.., command, "-S", device] if command.ends_with("ethtool") => self.title(device),
            // `rdma statistic`: link mlx5_0/1 rx_write_requests 0 out_of_sequence 7
            ["link", link, ref pairs @ ..] => {
                pairs.chunks_exact(2).for_each(|pair| self.dump.add(link, pair[0], pair[1]));
            }
            ["Port", "Rx" | "Tx", ref names @ ..] if !names.is_empty() => {
                self.columns = names.iter().map(|name| format!("{} {name}", words[1])).collect();
            }
            // `show queue watermark` and `show priority-group watermark`: Port UC0 UC1
            ["Port" | "Interface", ref names @ ..]
                if !names.is_empty()
                    && names.iter().all(|name| NUMBERED.iter().any(|all| fits(all, name))) =>
            {
                let room = if names[0].starts_with("PG") { self.room } else { "" };
                self.columns = names.iter().map(|name| format!("{room}{name}")).collect();
            }
            // `pfcwd show stats`: QUEUE  STATUS  STORM DETECTED/RESTORED
            ["QUEUE", "STATUS", ..] => self.columns = headings(line).skip(1).collect(),
            ["Port", _, ref names @ ..] if names.iter().any(|name| name.contains('/')) => {
                self.columns = std::iter::once("").chain(names.iter().copied()).map(str::to_owned).collect();
            }
            [port, ref cells @ ..] if !self.columns.is_empty() && cells.len() == self.columns.len() => {
                self.row(port, cells);
            }
            _ if line.contains("occupancy per ") || line.contains("headroom per ") => self.title(line),
            // `show interfaces` of Junos
            ["Physical", "interface:", port, ..] => {
                // A colon would look like that of a queue.
                self.port = port.trim_end_matches(',').replace(':', "_");
                (self.device, self.heading) = (self.port.clone(), String::new());
            }
            ["Queue:", number, ..] if !self.port.is_empty() => {
                self.device = format!("{} {}", self.port, number.trim_end_matches(','));
                self.heading.clear();
            }
            ["Priority", ":", number, received, sent] => {
                for (direction, count) in [("rx", received), ("tx", sent)] {
                    self.dump.add(&self.device, &format!("PFC priority {number} {direction}"), count);
                }
            }
            _ if line.trim_end().ends_with(':') => {
                let name = line.trim().trim_end_matches(':').trim();
                match line.starts_with([' ', '\t']) {
                    true => name.clone_into(&mut self.heading),
                    false => self.title(line),
                }
            }
            [name, value] if !name.contains(':') => {
                let room = if name.ends_with("_pool") { self.room } else { "" };
                self.dump.add(&self.device, &format!("{room}{name}"), value);
            }
            _ => {
                if let Some((name, rest)) = line.split_once(':') {
                    let value = rest.split_whitespace().next().unwrap_or_default();
                    self.dump.add(&self.device, &self.under_heading(name.trim()), value);
                }
            }
        }
    }

    /// A row of a table.
    fn row(&mut self, port: &str, cells: &[&str]) {
        // The queue is a part of the row's name.
        let row = if self.columns[0].is_empty() { format!("{port} {}", cells[0]) } else { port.to_owned() };
        let cells = self.columns.iter().zip(cells).filter(|(name, _)| !name.is_empty());
        cells.for_each(|(name, cell)| self.dump.add(&row, name, cell));
    }

    /// The title of a table, or the name of a device.
    fn title(&mut self, line: &str) {
        let name = line.trim().trim_end_matches(':').trim();
        let lower = name.to_lowercase();
        self.room = match () {
            () if lower.contains("headroom") => "headroom ",
            () if lower.contains("shared pool") => "shared ",
            () => "",
        };
        name.clone_into(&mut self.device);
        self.heading.clear();
    }

    /// A count of Junos with its heading, without which `Packets` and `Peak` say nothing.
    fn under_heading(&self, name: &str) -> String {
        match name {
            "Packets" | "Bytes" | "Peak" if !self.heading.is_empty() => {
                format!("{} {}", self.heading, name.to_lowercase())
            }
            _ => name.to_owned(),
        }
    }
}

/// The headings of a table whose columns stand two spaces apart.
fn headings(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split("  ").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
}
