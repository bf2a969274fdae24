//! Double windows in turns: in most fabrics the nodes have two sides, and every link leads from one side to the other.
//!
//! A node that is computed up to some time reaches the other side one window later. So the sides take turns: one is computed
//! up to one window, the other up to two, the first up to three, and so on. Each visit spans two windows, has twice as many
//! packets, and needs the lanes of the last turn alone. The number of a turn stands in the place of a window's number.
//!
//! Buffers are sampled at the end of each window, so a visit notes the state of its switch at its middle. In rare cases that state is
//! unknown, and the visit is split there. The checks for a stall need the state of all nodes at one instant.
//! So a run in turns that may be about to stall begins anew, with windows.

use super::out::Window;
use super::setup::Setup;
use crate::setup::{LONGEST_WINDOW, least_reach};
use model::NodeId;
use model::plan::{FlowControl, SwitchSettings};

/// Fewer frames of data than this in a window make turns worth while. Our choice, measured: an incast, at most of whose ports
/// little happens, gains a fifth with 33 frames, and a permutation loses nothing.
const FEW: u64 = 64;

/// Number of the side of each node, if the plan can and should be computed in turns.
pub(super) fn sides(setup: &Setup<'_>) -> Option<Vec<u8>> {
    let (plan, window) = (setup.plan, setup.window);
    let frames = window / setup.time_on_wire(0, plan.wire.max_frame()).max(1);
    let suits = frames < FEW
        && 2 * window <= LONGEST_WINDOW
        && least_reach(plan) >= window
        && plan.switches.iter().all(counts_bytes)
        && setup.plain_queues;
    // These need the state of all nodes at one instant, or of frames in order of time.
    let looks = plan.record.is_blind()
        && plan.stop_after.is_none()
        && plan.posted.is_none()
        && setup.failing.is_empty()
        && !setup.follows_any()
        && !setup.ports.iter().any(|port| port.tapped)
        && !plan.jobs.iter().any(|job| job.background);
    if suits && looks { divide(setup) } else { None }
}

/// True if the bytes in the buffer of a switch follow from its queues, and nobody looks at them between two visits.
fn counts_bytes(settings: &SwitchSettings) -> bool {
    let plain = settings.memory.is_plain() && settings.flow_control.watchdog().is_none();
    plain && !matches!(settings.flow_control, FlowControl::Credits(_))
}

/// Gives every node a side, so that each link joins both sides; `None` if that is impossible.
fn divide(setup: &Setup<'_>) -> Option<Vec<u8>> {
    const NONE: u8 = u8::MAX;
    let fabric = setup.fabric();
    let mut sides = vec![NONE; fabric.nodes()];
    let mut reached = Vec::new();
    for node in 0..fabric.nodes() as u32 {
        if sides[node as usize] == NONE {
            sides[node as usize] = 0;
            reached.push(NodeId(node));
        }
        while let Some(node) = reached.pop() {
            let other = 1 - sides[node.index()];
            for link in fabric.ports(node) {
                let side = &mut sides[link.to.index()];
                if *side == NONE {
                    *side = other;
                    reached.push(link.to);
                } else if *side != other {
                    return None;
                }
            }
        }
    }
    Some(sides)
}

/// Turn `number` as a window, if windows have this length. The first turn has a single one.
pub(super) fn turn(number: u64, length: u64) -> Window {
    let (opened, close) = (number.saturating_sub(1) * length, (number + 1) * length);
    let (next, span) = (number * length, 2 * length);
    Window { number, opened, close, length: close - opened, next, span, again: close }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_reads_what_the_turn_before_sends_and_follows_on_the_last_one_of_its_side() {
        for number in 0..9 {
            let (own, reader, again) = (turn(number, 10), turn(number + 1, 10), turn(number + 2, 10));
            assert_eq!((own.next, own.span), (reader.opened, reader.length));
            assert_eq!((own.close, own.again), (again.opened, again.opened));
            assert!(own.close <= reader.opened + 20 && own.opened + 10 >= reader.opened);
        }
        assert_eq!((turn(0, 10).length, turn(1, 10).length, turn(3, 10).opened), (10, 20, 20));
    }
}
