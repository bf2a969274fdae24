//! Claim: classes of a NIC keep a message of one class from waiting for the messages of other classes at its own host.

use crate::lab::{agreed_on, lay};
use engine::outcome::{MessageRecord, Outcome};
use scenario::Checked;

/// Time of a full frame at 100 Gb/s, ps.
const FRAME: u64 = 121_600;

/// A message of 100 frames in class `ep` and, with `kv`, three of 1000 frames in class `kv` before it: all from one host, to four.
fn host(switch: &str, nic: &str, kv: bool) -> String {
    let links: String = (0..5).map(|host| format!("[\"host{host}\", \"s\"], ")).collect();
    let mut text = format!(
        "[topology.links]\nhosts = 5\nswitches = [\"s\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\nlinks = [{links}]\n\
         [switch]\n{switch}\n[nic]\n{nic}\n[nic.congestion.none]\n[class.ep]\n[class.kv]\n[[workload]]\nname = \"ep\"\nclass = \"ep\"\n\
         flows = {{ list = [{{ from = \"host0\", to = \"host1\", bytes = \"143800B\", start = \"50us\" }}] }}\n"
    );
    if kv {
        let flows = [2, 3, 4]
            .map(|to| format!("{{ from = \"host0\", to = \"host{to}\", bytes = \"1438000B\" }}"))
            .join(", ");
        text += &format!("[[workload]]\nname = \"kv\"\nclass = \"kv\"\nflows = {{ list = [{flows}] }}\n");
    }
    text
}

/// The records of all messages in a class.
fn records<'r>(
    checked: &'r Checked,
    run: &'r Outcome,
    class: &'r str,
) -> impl Iterator<Item = &'r MessageRecord> {
    let all = checked.plan.messages.iter().zip(&run.messages);
    all.filter(move |(message, _)| {
        checked.plan.traffic_classes[usize::from(checked.plan.class_of(message.qp))] == class
    })
    .map(|(_, record)| record)
}

/// Time of the message of `ep`, and the end of the last one of `kv`, ps.
fn times(switch: &str, nic: &str, kv: bool) -> (u64, u64) {
    let text = host(switch, nic, kv);
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert_eq!(run.ending.name(), "finished");
    let time = |record: &MessageRecord| (record.acked - record.start).ps();
    let ep: Vec<u64> = records(&checked, &run, "ep").map(time).collect();
    (ep[0], records(&checked, &run, "kv").map(|record| record.acked.ps()).max().unwrap_or(0))
}

#[test]
fn a_message_waits_for_the_others_of_its_host_unless_it_has_a_class() {
    let (alone, _) = times("", "", false);
    assert_eq!(
        alone,
        4_000_000 + 101 * FRAME + 2 * 6880,
        "100 frames, and one more with its ACK on two links"
    );
    // Classes at switches change nothing, as nobody waits there.
    let switch = "classes = [{ kinds = [\"cnp\", \"ack\", \"nack\"] }, { kinds = [\"data\"], weight = 1 }, \
                  { kinds = [\"data\"], of = [\"ep\"], weight = 8 }]";
    for switch in ["", switch] {
        let (shared, end) = times(switch, "", true);
        assert!(shared.abs_diff(alone + 300 * FRAME) <= 4 * FRAME, "{shared} ps");
        let (strict, strict_end) = times(switch, "classes = [{ of = [\"ep\"] }, {}]", true);
        assert!((alone..=alone + FRAME).contains(&strict), "{strict} ps");
        assert_eq!(strict_end, end, "the link is never idle");
        // With weights of 3 and 1 it takes 4/3 of its time on the wire.
        let (weighted, _) = times(switch, "classes = [{ of = [\"ep\"], weight = 3 }, { weight = 1 }]", true);
        assert!(weighted.abs_diff(alone + 100 * FRAME / 3) <= 2 * FRAME, "{weighted} ps");
        // KV at 25 Gb/s takes every fourth frame, and waits for the 100 of EP.
        let (limited, end) = times(switch, "classes = [{ of = [\"ep\"] }, { rate = \"25Gbps\" }]", true);
        assert!((alone..=alone + FRAME).contains(&limited), "{limited} ps");
        assert!(end.abs_diff((4 * 3000 + 100) * FRAME) < 10 * FRAME + 4_000_000, "{end} ps");
    }
}

#[test]
fn a_pause_of_one_class_leaves_the_link_to_the_others() {
    // Seven hosts send to host 9 and pause it; host 0 has the paused class first, and sends to host 8, too.
    let links: String = (0..10).map(|host| format!("[\"host{host}\", \"s\"], ")).collect();
    let list = |flows: &[(usize, usize, &str)]| -> String {
        flows
            .iter()
            .map(|(from, to, bytes)| {
                format!("{{ from = \"host{from}\", to = \"host{to}\", bytes = \"{bytes}\" }}, ")
            })
            .collect()
    };
    let text = format!(
        "[topology.links]\nhosts = 10\nswitches = [\"s\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\nlinks = [{links}]\n\
         [switch]\nbuffer = \"1200kB\"\nclasses = [{{ kinds = [\"cnp\", \"ack\", \"nack\"] }}, {{ kinds = [\"data\"] }}, \
         {{ kinds = [\"data\"], of = [\"kv\"] }}]\n[nic]\nclasses = [{{ of = [\"kv\"] }}, {{}}]\n[nic.congestion.none]\n[class.ep]\n[class.kv]\n\
         [[workload]]\nname = \"kv\"\nclass = \"kv\"\nflows = {{ list = [{}] }}\n\
         [[workload]]\nname = \"ep\"\nclass = \"ep\"\nflows = {{ list = [{}] }}\n",
        list(&[0, 1, 2, 3, 4, 5, 6].map(|from| (from, 9, "2MB"))),
        list(&[(0, 8, "1438000B")]),
    );
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert!(run.control.pause > 0 && run.ending.name() == "finished");
    // KV gets a seventh of the link, and EP the rest; at most the buffer leaves ahead of it.
    let ep: Vec<u64> = records(&checked, &run, "ep").map(|record| record.acked.ps()).collect();
    assert!(ep[0] < 1000 * FRAME * 7 / 6 + 4_000_000 + 1_200_000 * 80 / 7, "{} ps", ep[0]);
    assert!(records(&checked, &run, "kv").all(|record| record.acked.ps() > 3 * ep[0]));
}
