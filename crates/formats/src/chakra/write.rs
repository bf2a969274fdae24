//! Writing traces: what counts of a program, in the wire format that [`read`](super::read) reads.

use super::groups::Groups;
use super::{BARRIER, COLLECTIVES, Node, Peer, Program, Work};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// The version that written files state: that of the examples of ASTRA-sim.
const SCHEMA: &str = "0.0.4";

/// A trace as a compressed file. It has all nodes with what decides a run, and nothing else.
pub fn compressed(program: &Program) -> io::Result<Vec<u8>> {
    let mut to = GzEncoder::new(Vec::new(), Compression::default());
    to.write_all(&plain(program))?;
    to.finish()
}

/// A trace before its compression.
pub(super) fn plain(program: &Program) -> Vec<u8> {
    let mut file = Vec::new();
    let mut metadata = Message::default();
    metadata.bytes(1, SCHEMA.as_bytes());
    metadata.end(&mut file);
    // Groups stand in any metadata node; those of a trace were in at least one.
    let holder = program.nodes.iter().position(|node| node.work == Work::Nothing);
    for (i, node) in program.nodes.iter().enumerate() {
        let groups = (holder == Some(i) && !program.groups.is_empty()).then_some(&program.groups);
        message(program, node, groups).end(&mut file);
    }
    file
}

/// A node.
fn message(program: &Program, node: &Node, groups: Option<&Groups>) -> Message {
    let mut to = Message::default();
    to.number(1, node.id);
    to.bytes(2, node.name.as_bytes());
    let kind = match node.work {
        Work::Nothing => 1,
        Work::Memory { .. } => 2,
        Work::Compute { .. } => 4,
        Work::Send(_) => 5,
        Work::Receive(_) => 6,
        Work::Collective { .. } => 7,
    };
    to.number(3, kind);
    for (field, data) in [(4, false), (5, true)] {
        let mut packed = Message::default();
        let mine = node.dependencies.iter().filter(|dependency| dependency.data == data);
        mine.for_each(|dependency| packed.varint(program.nodes[dependency.on as usize].id));
        to.bytes(field, &packed.0);
    }
    to.number(7, node.micros);
    if let Some(groups) = groups {
        let mut inputs = Message::default();
        inputs.bytes(1, listed(groups).as_bytes());
        to.bytes(8, &inputs.0);
    }
    attributes(&mut to, &node.work);
    to
}

/// Groups as PyTorch records them: the text of a list with one text, which is JSON.
fn listed(groups: &Groups) -> String {
    let all = groups.iter().map(|(name, ranks)| serde_json::json!({ "pg_name": name, "ranks": ranks }));
    format!("['{}']", serde_json::Value::Array(all.collect()))
}

/// Types of values of attributes: the numbers of their fields.
const INT32: u64 = 7;
const INT64: u64 = 9;
const UINT32: u64 = 11;
const UINT64: u64 = 13;
const BOOL: u64 = 27;
const STRING: u64 = 29;

fn attributes(to: &mut Message, work: &Work) {
    match work {
        Work::Nothing => {}
        &Work::Memory { bytes } => to.attribute("tensor_size", UINT64, bytes),
        &Work::Compute { cpu, operations, bytes } => {
            for (name, kind, value) in [
                ("is_cpu_op", BOOL, cpu.into()),
                ("num_ops", UINT64, operations),
                ("tensor_size", UINT64, bytes),
            ] {
                // A missing attribute is 0.
                if value > 0 {
                    to.attribute(name, kind, value);
                }
            }
        }
        Work::Send(peer) => message_attributes(to, "comm_dst", peer),
        Work::Receive(peer) => message_attributes(to, "comm_src", peer),
        Work::Collective { kind, bytes, group } => {
            let number = COLLECTIVES.iter().position(|(_, known)| kind.is_some() && known == kind);
            to.attribute("comm_type", INT64, number.map_or(BARRIER, |number| number as u64));
            size(to, *bytes);
            if !group.is_empty() {
                let mut attribute = Message::default();
                attribute.bytes(1, b"pg_name");
                attribute.bytes(STRING, group.as_bytes());
                to.bytes(10, &attribute.0);
            }
        }
    }
}

fn message_attributes(to: &mut Message, peer: &str, &Peer { rank, tag, bytes }: &Peer) {
    let kind = if i32::try_from(rank).is_ok() { INT32 } else { UINT32 };
    to.attribute(peer, kind, rank.into());
    size(to, bytes);
    // Tags have a sign; a negative number takes 64 bits on the wire.
    to.attribute("comm_tag", INT32, i64::from(tag as i32) as u64);
}

/// Bytes have a sign in most traces.
fn size(to: &mut Message, bytes: u64) {
    to.attribute("comm_size", if i64::try_from(bytes).is_ok() { INT64 } else { UINT64 }, bytes);
}

/// A message of the wire format.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A field with a number; 0 is left out, as it is what a missing field means.
    fn number(&mut self, field: u64, number: u64) {
        if number > 0 {
            self.varint(field << 3);
            self.varint(number);
        }
    }

    /// A field with bytes; without bytes it is left out.
    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.varint(field << 3 | 2);
            self.varint(bytes.len() as u64);
            self.0.extend_from_slice(bytes);
        }
    }

    /// An attribute with a number, also if it is 0.
    fn attribute(&mut self, name: &str, kind: u64, number: u64) {
        let mut attribute = Message::default();
        attribute.bytes(1, name.as_bytes());
        attribute.varint(kind << 3);
        attribute.varint(number);
        self.bytes(10, &attribute.0);
    }

    /// Adds the message behind its length to a file.
    fn end(self, file: &mut Vec<u8>) {
        let mut length = Message::default();
        length.varint(self.0.len() as u64);
        file.extend(length.0);
        file.extend(self.0);
    }
}
