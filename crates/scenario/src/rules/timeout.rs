//! No sender times out before an ACK can come back.

use super::case::Case;
use finding::{Finding, code};
use rnic::Acks;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    case.of_nics(|waits| {
        let (key, shortest) = &waits.shortest;
        let ack = waits.ack.filter(|ack| ack.time > *shortest)?;
        let [from, to] = [ack.from, ack.to].map(|host| case.plan.fabric.host_name(host));
        let what = match waits.nic.transport.facts().acks {
            Acks::Messages(_) => "time from the last packet of a message until its ACK comes back:",
            Acks::Bytes { .. } if waits.packets_per_ack(case.plan) > 1 => {
                "time until an ACK (`ack-bytes`) comes back:"
            }
            Acks::Packets if waits.nic.ack_per_message => {
                "time until the only ACK of a message (`nic.ack-per-message`) comes back:"
            }
            Acks::Packets if waits.nic.ack_every > 1 => "time until an ACK (`nic.ack-every`) comes back:",
            _ => "round trip of",
        };
        let text = format!(
            "the retransmission timeout of {shortest} (`{key}`) is shorter than the {what} {:.1} us from {from} to {to}; \
             packets are sent again although none is lost",
            ack.time.as_us(),
        );
        Some(code::TIMEOUT.at(key.trim_start_matches("nic."), text))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::far_apart;
    use crate::{Source, check};

    #[test]
    fn a_timeout_shorter_than_the_round_trip_is_warned_of() {
        let warning = |delay: &str| far_apart(delay, "").warnings().join("\n");
        assert_eq!(warning("400us"), "");
        let text = warning("4ms");
        assert!(
            text.starts_with(
                "the retransmission timeout of 1ms (`nic.timeout`) is shorter than the round trip of 8000.1 us"
            ),
            "{text}"
        );
        assert!(
            text.ends_with("from host0 to host1; packets are sent again although none is lost"),
            "{text}"
        );
        let low = far_apart("60us", "[nic.transport.irn]\n").warnings().join("\n");
        assert!(
            low.starts_with(
                "the retransmission timeout of 100us (`nic.transport.irn.low-timeout`) is shorter"
            ),
            "{low}"
        );
        let long = far_apart("4ms", "[nic]\ntimeout = { fixed = \"20ms\" }\n");
        assert_eq!(long.warnings(), [""; 0]);
    }

    /// 1 MB takes 84.6 us at 100 Gb/s; the ACK of its first packet would be back after 2 us.
    #[test]
    fn a_timeout_shorter_than_a_whole_message_is_warned_of_if_only_its_end_is_acknowledged() {
        let warning = |settings: &str| far_apart("1us", settings).warnings().join("\n");
        let short = "[nic]\ntimeout = { fixed = \"50us\" }\n";
        assert_eq!(warning(short), "");
        let text = warning(&format!("{short}ack-per-message = true\n"));
        let begin = "the retransmission timeout of 50us (`nic.timeout`) is shorter than the time until the only ACK of a message \
                     (`nic.ack-per-message`) comes back: 86.";
        assert!(text.starts_with(begin), "{text}");
        assert_eq!(warning(&format!("{short}ack-every = 100\n")), "");
        let text = warning(&format!("{short}ack-every = 500\n"));
        assert!(text.contains("the time until an ACK (`nic.ack-every`) comes back: 62."), "{text}");
    }

    /// The timer of a mode that acknowledges whole messages runs from the last packet on. Then the rest of the message waits for a
    /// slow link, and the sender's own time does not count.
    #[test]
    fn where_acks_concern_messages_the_wait_begins_with_the_last_packet() {
        let warnings = |rate: &str, bytes: &str, own: &str| {
            let text = format!(
                "[topology.links]\nhosts = 2\nswitches = [\"s\"]\nlinks = [[\"host0\", \"s\", \"100Gbps\"],\n\
                 [\"s\", \"host1\", \"{rate}\"]]\n[nic.transport.dcp]\n{own}\n[[workload]]\n\
                 back-to-back = {{ bytes = \"{bytes}\", messages = 1 }}\n"
            );
            check(&Source::new("s.toml", text), &[]).unwrap().warnings().join("\n")
        };
        assert_eq!(warnings("100Gbps", "100MB", ""), "", "it takes 8 ms to send");
        let slow = warnings("10Gbps", "2MB", "");
        assert!(
            slow.contains("shorter than the time from the last packet of a message until its ACK"),
            "{slow}"
        );
        assert_eq!(warnings("10Gbps", "1MB", ""), "", "0.77 ms");
        assert_eq!(warnings("10Gbps", "2MB", "message-packets = 100"), "", "each part has its own wait");
    }

    /// ECMP may take the longer of two parallel links, though the ideal flow takes the shorter one.
    #[test]
    fn the_longest_of_several_paths_counts() {
        let text = "[topology.links]\nhosts = 2\nswitches = [\"a\", \"b\"]\nlinks = [[\"host0\", \"a\"], [\"host1\", \"b\"],\n\
                    [\"a\", \"b\"], [\"a\", \"b\", \"1Gbps\", \"100ms\"]]\n[[workload]]\nback-to-back = {}\n";
        let checked = check(&Source::new("s.toml", text), &[]).unwrap();
        assert!(checked.plan.no_progress > model::Time::from_ms(2000), "{}", checked.plan.no_progress);
        assert!(
            checked.warnings().join("\n").contains("shorter than the round trip of 200"),
            "{:?}",
            checked.warnings()
        );
    }
}
