//! `ropewalk memory`.

use crate::cli::MemoryArgs;
use crate::failure::Failure;
use crate::memory::{ThemisInputs, ThemisMemory};
use crate::{print, tables};
use comfy_table::CellAlignment;

/// Prints what a scheme costs in switch memory.
///
/// # Errors
/// If there is no such scheme or key.
pub fn run(args: &MemoryArgs) -> Result<(), Failure> {
    if args.scheme != "themis" {
        let text = format!("there is no memory formula for `{}`; themis has one", args.scheme);
        return Err(Failure::Asked(text));
    }
    let mut inputs = ThemisInputs::default();
    for assignment in &args.set {
        inputs.set(assignment).map_err(Failure::Asked)?;
    }
    let memory = inputs.memory();
    print::out(&if args.json { super::json(&memory) } else { page(&memory) });
    Ok(())
}

fn page(m: &ThemisMemory) -> String {
    let i = &m.inputs;
    let mut rows = tables::table(&["Themis (APNET'25), Eq. 4".into(), "bytes".into(), "from".into()], 1);
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
        rows.add_row([what.to_owned(), tables::count(bytes), from]);
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
