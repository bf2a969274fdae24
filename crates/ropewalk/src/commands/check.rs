//! `ropewalk check`.

use crate::cli::CheckArgs;
use crate::print;
use lab::failure::Failure;
use scenario::room::Room;
use scenario::{Checked, Possible, amount};

/// Checks a scenario and prints it with all defaults.
///
/// # Errors
/// The first error of the scenario.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let checked = crate::input::load(&args.scenario, None)?.checked;
    let (plan, fabric) = (&checked.plan, &checked.plan.fabric);
    let packets: u64 = plan.messages.iter().map(|m| plan.wire.packets(m.bytes)).sum();
    if let Some(note) = note(&checked, Room::now()) {
        print::note(&note);
    }
    print::out(&format!(
        "# {}: {} hosts, {} switches, {} queue pairs, {} flows, {} data packets; about {:.0} MB of memory{}.\n# Configuration {}.\n\n{}",
        checked.name,
        fabric.hosts(),
        fabric.switch_count(),
        plan.qps.len(),
        plan.messages.len(),
        packets,
        checked.memory as f64 / 1e6,
        more(&checked),
        checked.hash(),
        checked.annotated()
    ))
}

/// The memory that a run may need in addition, if it is as much as the estimate or more.
fn more(checked: &Checked) -> String {
    match checked.possible.total {
        total if total < checked.memory => String::new(),
        total => format!(", and up to {} more if queues and links fill", amount(total)),
    }
}

/// A note if a run may need more memory than is left.
fn note(checked: &Checked, room: Option<Room>) -> Option<String> {
    let Possible { queues, in_flight, records, total } = checked.possible;
    let Room { left, limit } = room?;
    let [queues, in_flight, records] = [queues, in_flight, records].map(amount);
    (checked.memory.saturating_add(total) > left).then(|| {
        format!(
            "note: {limit} has {} left, and the run may need more: up to {queues} for packets in queues, {in_flight} for \
             packets on links and {records} for records. If memory runs out, the run stops with a summary and exit code 3",
            amount(left)
        )
    })
}
