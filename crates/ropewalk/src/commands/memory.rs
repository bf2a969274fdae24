//! `ropewalk memory`.

use crate::cli::MemoryArgs;
use crate::print;
use comfy_table::CellAlignment;
use lab::failure::Failure;
use papers::memory::{FlowcutInputs, FlowcutMemory, ThemisInputs, ThemisMemory};
use results::text;

/// Prints the switch memory of a scheme.
///
/// # Errors
/// If there is no such scheme or key.
pub fn run(args: &MemoryArgs) -> Result<(), Failure> {
    match args.scheme.as_str() {
        "themis" => {
            let mut inputs = ThemisInputs::default();
            args.set.iter().try_for_each(|set| inputs.set(set)).map_err(Failure::Asked)?;
            show(args, &inputs.memory(), themis)
        }
        "flowcut" => {
            let mut inputs = FlowcutInputs::default();
            args.set.iter().try_for_each(|set| inputs.set(set)).map_err(Failure::Asked)?;
            show(args, &inputs.memory(), flowcut)
        }
        other => {
            let text = format!("there is no memory formula for `{other}`; themis and flowcut have one");
            Err(Failure::Asked(text))
        }
    }
}

fn show<T: serde::Serialize>(args: &MemoryArgs, memory: &T, page: fn(&T) -> String) -> Result<(), Failure> {
    print::out(&if args.json { print::json(memory) } else { page(memory) })
}

fn flowcut(m: &FlowcutMemory) -> String {
    let i = &m.inputs;
    let header = ["Flowcut, Eq. 1", "bytes", "active flows", "bytes per flow", "in"].map(str::to_owned);
    let mut rows = text::table(&header, 1);
    if let Some(place) = rows.column_mut(4) {
        place.set_cell_alignment(CellAlignment::Left);
    }
    for cost in &m.costs {
        let place = match cost.scheme {
            "flowcut-nic" => "a NIC".to_owned(),
            "flowcut-ingress" => format!("a ToR of {} hosts", i.hosts_per_tor),
            _ => format!("a switch crossed by flows of {} hosts", i.hosts),
        };
        rows.add_row([
            cost.scheme.to_owned(),
            text::count(cost.total_bytes),
            text::number(cost.active),
            cost.entry_bytes.to_string(),
            place,
        ]);
    }
    let most = m.costs.iter().map(|cost| cost.total_bytes).max().unwrap_or(0);
    format!(
        "{rows}\nA host has {} active flows: {} x {} / {}, or its number of flows if that is smaller.\nThe largest table takes \
         {:.2} % of {}. The ACKs of switches add {:.2} % to the payload of packets of {}.\n",
        text::number(m.flows_under_way),
        i.rate,
        i.rtt,
        i.packet,
        100.0 * results::stats::share(most, i.sram.get()),
        i.sram,
        100.0 * m.wire_overhead,
        i.payload,
    )
}

fn themis(m: &ThemisMemory) -> String {
    let i = &m.inputs;
    let mut rows = text::table(&["Themis (APNET'25), Eq. 4".into(), "bytes".into(), "from".into()], 1);
    if let Some(from) = rows.column_mut(2) {
        from.set_cell_alignment(CellAlignment::Left);
    }
    let ring = match i.ring {
        Some(n) => format!("{n} entries, as set"),
        None => format!(
            "ceil({} x {} x {} / {})",
            i.rate,
            model::Time(2 * i.last_hop_delay.ps()),
            i.factor,
            i.frame
        ),
    };
    let mut row = |what: &str, bytes: u64, from: String| {
        rows.add_row([what.to_owned(), text::count(bytes), from]);
    };
    row("PathMap", m.path_map_bytes, format!("{} paths x 2", i.paths));
    row(
        "ring of a queue pair",
        m.qp_bytes - 20,
        format!("{} entries of {} bits: {ring}", m.ring_entries, i.psn_bits),
    );
    row("queue pair", m.qp_bytes, "20 + ring".into());
    let queue_pairs = format!("{} NICs x {} queue pairs", i.nics, i.qps_per_nic);
    row("all queue pairs", m.total_bytes - m.path_map_bytes, queue_pairs);
    row("switch", m.total_bytes, format!("{:.2} % of {}", 100.0 * m.share_of_sram, i.sram));
    format!("{rows}\n")
}
