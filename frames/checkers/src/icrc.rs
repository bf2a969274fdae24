//! Checker 2: checksums.
//!
//! * `icrc-wrong`: a host sent a packet with a wrong ICRC.
//! * `icrc-broken`: a packet went in with a right ICRC and left with a wrong one, and no injected event did it.
//! * `corrupt-accepted`: a receiver acknowledged a packet that it has got in corrupted form only.

use crate::capture::Way;
use crate::connections::{Act, Connection, Connections, Reply};
use crate::log::Log;
use crate::report::{Report, Verdict};
use wire::Psn;

/// Looks at all packets.
pub fn check(connections: &Connections, log: Option<&Log>, report: &mut Report) {
    let verdict = &mut report.whole;
    let mut corrupted = log.map(|log| log.corrupted.clone()).unwrap_or_default();
    let mut wrong = 0;
    for packet in connections.packets.iter().filter(|packet| !packet.intact) {
        wrong += 1;
        let (qp, psn, opcode) = (packet.roce.qp.value(), packet.roce.psn.value(), packet.roce.opcode);
        let name = format!("opcode {opcode:#04x} qp {qp} psn {psn}");
        // An event corrupts any of a packet's last 16 bytes, so its fields are still its own.
        let injected = corrupted.get_mut(&(qp, opcode, psn)).filter(|count| **count > 0);
        match (packet.way, injected) {
            (Way::Out, Some(count)) => *count -= 1,
            (Way::Out, None) => {
                let same = |other: &&crate::connections::Packet| {
                    other.way == Way::In
                        && other.roce.qp == packet.roce.qp
                        && other.roce.psn == packet.roce.psn
                        && other.roce.source == packet.roce.source
                };
                if connections.packets.iter().filter(same).any(|other| other.intact) {
                    verdict.breach("icrc-broken", packet.frame, format!("the switch changed {name}"));
                }
            }
            (Way::In | Way::Through, _) => verdict.breach("icrc-wrong", packet.frame, name),
        }
    }
    verdict.fact("wrong ICRCs", wrong);
}

/// Looks at the receiver of a connection.
pub fn check_connection(connection: &Connection, verdict: &mut Verdict) {
    let mut corrupt: Vec<Psn> = Vec::new();
    let mut got = std::collections::BTreeSet::new();
    for step in &connection.steps {
        match step.act {
            Act::Delivered { psn, intact: true, .. } => {
                got.insert(psn.value());
                corrupt.retain(|other| *other != psn);
            }
            Act::Delivered { psn, intact: false, .. } if !got.contains(&psn.value()) => corrupt.push(psn),
            Act::Replied(Reply::Ack(acked)) => {
                for psn in corrupt.iter().filter(|psn| !psn.is_after(acked)) {
                    let text = format!("ACK {acked} covers {psn}, which arrived corrupted only");
                    verdict.breach("corrupt-accepted", step.frame, text);
                }
                corrupt.retain(|psn| psn.is_after(acked));
            }
            _ => {}
        }
    }
}
