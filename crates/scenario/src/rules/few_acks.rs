//! A window holds as many packets as a receiver waits for before it owes an ACK; else the sender waits for its timer.

use super::case::Case;
use crate::Plan;
use finding::{Finding, code};
use model::plan::Qp;
use rnic::window::Window;
use rnic::{Acks, NicConfig};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    case.of_nics(|waits| unanswered(&waits.nic, case.plan))
}

fn unanswered(nic: &NicConfig, plan: &Plan) -> Option<Finding> {
    if nic.transport.facts().acks != Acks::Packets {
        return None; // senders ask for ACKs when their window is full
    }
    let longest = plan.messages.iter().map(|message| plan.wire.packets(message.bytes)).max().unwrap_or(0);
    let (owed, key, value) = match nic.ack_per_message {
        true => (longest, "ack-per-message", "true".to_owned()),
        false => (longest.min(nic.ack_every.into()), "ack-every", nic.ack_every.to_string()),
    };
    let window = match &nic.window {
        Some(window) if (nic.window_scales_with_rate && owed > 1) || least(window, nic, plan) < owed => {
            Some("`nic.window`".to_owned())
        }
        _ => (nic.build().most_outstanding(plan.wire.payload) < owed)
            .then(|| format!("the window of `{}`", nic.transport.name())),
    };
    let control = || {
        let in_replies = nic.congestion.facts().evidence.is_in_replies();
        in_replies.then(|| format!("the window of `{}`", nic.congestion.name()))
    };
    let window = window.or_else(control).filter(|_| owed > 1)?;
    let text = format!(
        "with `nic.{key} = {value}` an ACK comes after up to {owed} packets; where {window} holds fewer, a sender waits for its \
         retransmission timeout"
    );
    Some(code::FEW_ACKS.at(key, text))
}

/// Least number of packets that `window` lets a queue pair have outstanding at line rate.
fn least(window: &Window, nic: &NicConfig, plan: &Plan) -> u64 {
    if let Window::Bytes(_) = window {
        return nic.build().most_outstanding(plan.wire.payload);
    }
    let (paths, path_of) = crate::parts::paths_of(plan);
    let packets = |(qp, path): (&Qp, &u32)| window.packets(plan.line(qp.from), &paths[*path as usize]);
    plan.qps.iter().zip(&path_of).map(packets).min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::testing::far_apart;

    /// The sender waits for an ACK, and the receiver for more packets.
    #[test]
    fn a_window_smaller_than_what_the_receiver_acknowledges_is_warned_of() {
        let warning =
            |settings: &str| far_apart("1us", &format!("[nic]\n{settings}\n")).warnings().join("\n");
        let end = "holds fewer, a sender waits for its retransmission timeout";
        let swift = "[nic.congestion.swift]\nmax-window = 1";
        assert_eq!(
            warning(&format!("ack-every = 2\n{swift}")),
            format!(
                "with `nic.ack-every = 2` an ACK comes after up to 2 packets; where the window of `swift` {end}"
            )
        );
        assert_eq!(
            warning("ack-every = 9\nwindow = { bytes = \"9kB\" }"),
            format!("with `nic.ack-every = 9` an ACK comes after up to 9 packets; where `nic.window` {end}")
        );
        assert!(warning("ack-per-message = true\nwindow = \"bdp\"").contains("up to 696 packets"));
        // In a round trip of two links of 1 us, line rate sends 18 packets.
        assert!(warning("ack-every = 40\nwindow = \"bdp\"").contains("where `nic.window` holds fewer"));
        assert!(
            warning("ack-every = 2\nwindow = \"bdp\"\nwindow-scales-with-rate = true")
                .contains("`nic.window`")
        );
        // The window of adaptive routing holds 64 packets.
        let few = warning("ack-per-message = true\n[nic.transport.adaptive-routing]");
        assert!(few.contains("696 packets; where the window of `adaptive-routing` holds fewer"), "{few}");
        assert_eq!(warning("ack-every = 64\n[nic.transport.adaptive-routing]"), "");
        // The scheme brings its own control with a window.
        let own = warning("ack-per-message = true\n[scheme.mp-rdma]");
        assert!(own.contains("where the window of `mp-rdma` holds fewer"), "{own}");
        for fine in [swift, "ack-every = 4\nwindow = \"bdp\"", "ack-every = 6\nwindow = { bytes = \"9kB\" }"]
        {
            assert_eq!(warning(fine), "", "{fine}");
        }
    }
}
