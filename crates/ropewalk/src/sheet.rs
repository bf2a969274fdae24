//! A scenario on one screen: size, tiers, thresholds, parts, and what a run takes.

use lab::failure::Failure;
use results::text::{bytes, count, number, table};
use scenario::Survey;
use scenario::sheet::{Part, Thresholds, Tier};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// Packet-hops per second of one core, least and most, as docs/speed.md measures on most fabrics.
const HOPS_PER_S: (f64, f64) = (5e6, 50e6);
/// Seconds of a core from which the sheet says how to shorten a run. Our choice.
const LONG_S: f64 = 60.0;

/// The sheet, as `--json` has it.
#[derive(Serialize)]
pub(crate) struct Sheet {
    tiers: Vec<Tier>,
    thresholds: Vec<Thresholds>,
    parts: Vec<Part>,
    /// Sum of the costs, if the table has all of them.
    cost: Option<f64>,
    /// What would be served: lines of a label and its parts; left out if nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    serving: Vec<crate::serving::Line>,
    /// Estimated packet-hops of a run.
    packet_hops: f64,
    /// Estimated seconds of a core, least and most.
    pub(crate) core_s: (f64, f64),
}

/// Prices of parts.
#[derive(Default)]
pub(crate) struct Costs(toml::Table);

impl Costs {
    /// Reads a table of costs: tables `switch`, `cable`, `optic` and `nic` with a price for each role or rate.
    ///
    /// # Errors
    /// If the file cannot be read, or is no such table.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::Asked(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        let costs: toml::Table =
            toml::from_str(&text).map_err(|e| wrong(e.to_string().trim_end().to_owned()))?;
        let kinds = ["switch", "cable", "optic", "nic"];
        for (kind, prices) in &costs {
            if !kinds.contains(&kind.as_str()) {
                return Err(wrong(format!("unknown part `{kind}`; {}", scenario::suggestion(kind, &kinds))));
            }
            let number = |price: &toml::Value| price.as_float().is_some() || price.as_integer().is_some();
            let found = prices.as_table().and_then(|prices| prices.iter().find(|(_, price)| !number(price)));
            if let Some((part, price)) = found {
                return Err(wrong(format!("expected a number for {kind}.{part}, found {price}")));
            }
            if !prices.is_table() {
                return Err(wrong(format!("expected a table of prices for `{kind}`, such as [{kind}]")));
            }
        }
        Ok(Costs(costs))
    }

    fn price(&self, part: &str) -> Option<f64> {
        let (kind, which) = part.split_once('.')?;
        let price = self.0.get(kind)?.get(which)?;
        price.as_float().or_else(|| price.as_integer().map(|whole| whole as f64))
    }
}

impl Sheet {
    pub(crate) fn of(survey: &Survey, costs: &Costs) -> Self {
        let checked = survey.checked();
        let parts = checked.parts(|part| costs.price(part));
        let priced: Option<Vec<f64>> = parts.iter().map(|part| part.cost).collect();
        let replies = 1.0 + 1.0 / f64::from(checked.scenario.nic.ack_every.max(1));
        let packet_hops = survey.traffic.packets as f64 * checked.mean_links() * replies;
        Sheet {
            tiers: checked.tiers(),
            thresholds: checked.thresholds(),
            cost: priced.map(|prices| prices.iter().sum()),
            parts,
            serving: checked.serving().map_or_else(Vec::new, |laid| crate::serving::of_scenario(&laid)),
            packet_hops,
            core_s: (packet_hops / HOPS_PER_S.1, packet_hops / HOPS_PER_S.0),
        }
    }

    /// The sheet as text.
    pub(crate) fn text(&self, survey: &Survey) -> String {
        let mut text = self.tiers();
        text += &self.ports();
        text += &self.bill();
        text += &self.run(survey);
        text
    }

    fn tiers(&self) -> String {
        let header =
            ["switches", "number", "ports used", "to hosts\nGb/s", "upwards\nGb/s", "oversubscription"];
        let mut rows = table(&header.map(str::to_owned), 1);
        for tier in &self.tiers {
            let used = match tier.ports {
                (a, b) if a == b => b.to_string(),
                (a, b) => format!("{a} to {b}"),
            };
            let ports = match tier.ports_of_model {
                Some(all) => format!("{used} of {all}"),
                None => used,
            };
            rows.add_row([
                tier.role.clone(),
                count(tier.switches as u64),
                ports,
                number(tier.down_gbps),
                if tier.up_gbps > 0.0 { number(tier.up_gbps) } else { "-".to_owned() },
                tier.ratio(),
            ]);
        }
        plain(&rows.to_string())
    }

    fn ports(&self) -> String {
        let header = [
            "ports of",
            "rate\nGb/s",
            "Kmin",
            "Kmax",
            "xoff, one\nport full",
            "xoff, all\nports full",
            "xon, one\nport full",
            "headroom",
            "drop, one\nport full",
        ];
        let cells = self.thresholds.iter().any(|of| of.cell.is_some());
        let header = if cells { &header[..] } else { &header[..header.len() - 1] };
        let mut rows = table(&header.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>(), 1);
        for of in &self.thresholds {
            let size = |size: Option<u64>| size.map_or_else(|| "-".to_owned(), bytes);
            // Charges of a switch whose packets take whole cells.
            let charge = |held: Option<u64>| match (held, of.cell) {
                (Some(held), Some(cell)) => {
                    format!("{}\n{} cells", bytes(held), count(held / u64::from(cell)))
                }
                _ => size(held),
            };
            let row = [
                of.role.clone(),
                number(of.rate_mbps as f64 / 1e3),
                size(of.kmin),
                size(of.kmax),
                charge(of.xoff_alone),
                charge(of.xoff_all),
                charge(of.xon_alone),
                charge(Some(of.headroom)),
                charge(of.drop_alone),
            ];
            rows.add_row(row.into_iter().take(header.len()));
        }
        "\n".to_owned() + &plain(&rows.to_string())
    }

    fn bill(&self) -> String {
        let parts = self.parts.iter().map(|part| {
            let cost =
                part.cost.map_or_else(String::new, |cost| format!(" ({})", count(cost.round() as u64)));
            format!("{} {}{cost}", count(part.count as u64), part.part)
        });
        let mut text = "\n".to_owned();
        for (label, parts) in &self.serving {
            line(&mut text, label, &parts.join("; "));
        }
        line(&mut text, "parts", &parts.collect::<Vec<_>>().join(", "));
        if let Some(cost) = self.cost {
            line(&mut text, "cost", &count(cost.round() as u64));
        }
        text
    }

    fn run(&self, survey: &Survey) -> String {
        let mut text = String::new();
        let (memory, possible) = survey.memory();
        let more = match possible.total {
            total if total < memory => String::new(),
            total => format!(", and up to {} more if queues and links fill", scenario::amount(total)),
        };
        let (least, most) = self.core_s;
        let run = format!(
            "about {} packet-hops without retransmissions: {} to {} s of a core",
            number(self.packet_hops),
            number(least),
            number(most),
        );
        line(&mut text, "a run", &run);
        let _ = writeln!(text, "{:10}about {:.0} MB of memory{more}", "", memory as f64 / 1e6);
        if least > LONG_S {
            line(&mut text, "shorter", &shorter(survey));
        }
        text
    }
}

/// How to shorten a long run.
fn shorter(survey: &Survey) -> String {
    let workload = &survey.checked().scenario.workload;
    match workload.iter().position(|entry| entry.training.is_some()) {
        Some(i) => format!(
            "--set workload.{i}.training.scale=0.1 runs a tenth of the layers and micro-batches; results speak of the smaller step"
        ),
        None => "fewer bytes per message, or a smaller cluster that keeps the oversubscription: --slice N"
            .to_owned(),
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let wrapped = results::text::wrapped(value);
    for (i, part) in wrapped.lines().enumerate() {
        let name = if i == 0 { name } else { "" };
        let _ = writeln!(text, "{name:10}{part}");
    }
}

/// A table without blanks at the ends of its lines.
fn plain(rows: &str) -> String {
    rows.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
