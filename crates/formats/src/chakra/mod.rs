//! Chakra execution traces: per rank, a graph of computations, messages and collectives.
//!
//! A file is a stream of messages in the wire format of protocol buffers, each after its length: first the metadata of the
//! file, then the nodes. The file may be compressed by gzip. Node ids are sparse and have any order, and a node may depend on one that comes later.

mod attribute;
mod files;
mod groups;
mod notes;
mod wire;
mod write;

pub use files::{files_of, is_name, is_start, rank_files, rank_of, read_file, stem};
pub use groups::{Groups, groups_file};
pub use notes::warnings;
pub use write::compressed;

use ::files::printable;
use attribute::Attribute;
use collective::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use wire::{Message, Mistake};

/// The trace of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Nodes by rising id.
    pub nodes: Vec<Node>,
    /// Process groups that the trace defines itself, by their names.
    pub groups: Groups,
    /// Attributes that have no effect, with their numbers of nodes.
    pub unused: BTreeMap<String, u64>,
    /// Findings that deserve a warning.
    pub notes: Notes,
}

/// Numbers of findings in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Dependencies on nodes that do not exist, and the first of them: (node, missing node).
    pub dangling: u64,
    /// The first of these: a node, and the node that it names.
    pub first_dangling: Option<(u64, u64)>,
    /// Fields of nodes that the schema does not have.
    pub unknown_fields: u64,
    /// Collectives that leave out dimensions of the system.
    pub partial: u64,
    /// Messages and collectives that are marked as CPU operations.
    pub on_cpu: u64,
    /// Launches of communication on the CPU.
    pub launches: u64,
    /// Nodes of the type `INVALID_NODE`.
    pub invalid: u64,
    /// Schema of the file, if it is not one of [`SCHEMAS`]; empty if the file has none.
    pub schema: Option<String>,
    /// Process groups that could not be read.
    pub bad_groups: u64,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Number of the node in its trace.
    pub id: u64,
    /// Name of the operation.
    pub name: String,
    /// What it does.
    pub work: Work,
    /// Recorded duration, us.
    pub micros: u64,
    /// Nodes on which this one depends.
    pub dependencies: Vec<Dependency>,
}

/// A node for which another one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Index of the node.
    pub on: u32,
    /// True if data flows; false for an order that the program sets.
    pub data: bool,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing: metadata, or an invalid node.
    Nothing,
    /// Bytes move from or to a remote memory.
    Memory {
        /// Number of bytes.
        bytes: u64,
    },
    /// Computation.
    Compute {
        /// True on the CPU, false on the GPU.
        cpu: bool,
        /// Operations, for the roofline.
        operations: u64,
        /// Bytes that the computation reads and writes, for the roofline.
        bytes: u64,
    },
    /// A message to a rank.
    Send(Peer),
    /// A message from a rank.
    Receive(Peer),
    /// A collective.
    Collective {
        /// The collective; `None` for a barrier.
        kind: Option<Kind>,
        /// Bytes as the trace counts them.
        bytes: u64,
        /// Name of the group; empty for all ranks.
        group: String,
    },
}

/// The other end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The other rank.
    pub rank: u32,
    /// Tag, which tells messages between the same ranks apart.
    pub tag: u32,
    /// Bytes of the message.
    pub bytes: u64,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name: String = self.name.chars().filter(|c| !c.is_control()).take(60).collect();
        write!(f, "node {} `{name}`", self.id)
    }
}

/// True if a file that starts with these bytes, unpacked, looks like a trace: its first message holds a version, an attribute of
/// the file, or the id and the name of a node.
pub fn is_trace(start: &[u8]) -> bool {
    let mut stream = Message::new(start, 0);
    let Ok(length) = stream.varint() else { return false };
    let mut first = Message::new(&start[stream.at() as usize..], 0);
    let Ok(Some(field)) = first.field() else { return false };
    if first.at() > length {
        return false;
    }
    let is_word = |field: &wire::Field<'_>| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b".-_".contains(&b);
        field.text("").is_ok_and(|text| !text.is_empty() && text.bytes().all(plain))
    };
    match (field.number, field.value) {
        (1, wire::Value::Varint(_)) => matches!(first.field(), Ok(Some(name)) if name.number == 2),
        (1, _) => is_word(&field),
        (2, wire::Value::Bytes(mut attribute)) => {
            matches!(attribute.field(), Ok(Some(name)) if name.number == 1 && is_word(&name))
        }
        _ => false,
    }
}

/// A node whose dependencies are still ids.
struct Raw {
    node: Node,
    control: Vec<u64>,
    data: Vec<u64>,
    at: u64,
}

/// Reads an unpacked trace.
fn read(bytes: &[u8]) -> Result<Program, Mistake> {
    let mut stream = Message::new(bytes, 0);
    if stream.is_empty() {
        return Err((0, "the file is empty; expected a Chakra trace".into()));
    }
    let mut program = Program::default();
    let mut nodes = Vec::new();
    let start = stream.at();
    let first = stream.counted("a message")?;
    if is_node(first)? {
        program.notes.schema = Some(String::new());
        nodes.push(node(first, start, &mut program)?);
    } else {
        metadata(first, &mut program)?;
    }
    while !stream.is_empty() {
        let at = stream.at();
        nodes.push(node(stream.counted("a message")?, at, &mut program)?);
    }
    nodes.sort_by_key(|raw| raw.node.id);
    if let Some(pair) = nodes.windows(2).find(|pair| pair[0].node.id == pair[1].node.id) {
        let (one, two) = (&pair[0], &pair[1]);
        return Err((two.at, format!("{} has the id of {} at byte {}", two.node, one.node, one.at)));
    }
    resolve(nodes, &mut program);
    Ok(program)
}

/// True if the first message of a file is a node: it has fields that metadata lack.
fn is_node(mut message: Message<'_>) -> Result<bool, Mistake> {
    while let Some(field) = message.field()? {
        if field.number > 2 || field.number == 1 && field.varint("").is_ok() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Schemas whose fields have the numbers that this file uses.
const SCHEMAS: [&str; 2] = ["0.0.4", "1.0.0"];

fn metadata(mut message: Message<'_>, program: &mut Program) -> Result<(), Mistake> {
    let mut version = String::new();
    while let Some(field) = message.field()? {
        match field.number {
            1 => version = field.text("a version")?,
            // Attributes of the whole file describe how it was made.
            _ => drop(Attribute::read(field.message("an attribute")?, field.at)?),
        }
    }
    if !SCHEMAS.contains(&version.as_str()) {
        program.notes.schema = Some(version);
    }
    Ok(())
}

/// Replaces ids of dependencies by indices.
fn resolve(nodes: Vec<Raw>, program: &mut Program) {
    let ids: Vec<u64> = nodes.iter().map(|raw| raw.node.id).collect();
    for mut raw in nodes {
        let mut seen = BTreeSet::new();
        let all = raw.data.iter().map(|&id| (id, true)).chain(raw.control.iter().map(|&id| (id, false)));
        for (id, data) in all {
            match ids.binary_search(&id) {
                Ok(on) if seen.insert(on) => {
                    raw.node.dependencies.push(Dependency { on: on as u32, data });
                }
                Ok(_) => {}
                Err(_) => {
                    program.notes.dangling += 1;
                    program.notes.first_dangling.get_or_insert((raw.node.id, id));
                }
            }
        }
        program.nodes.push(raw.node);
    }
}

/// Names of the types of nodes.
const TYPES: [&str; 8] = [
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
];

/// Attributes that the reader knows.
#[derive(Default)]
struct Known {
    cpu: bool,
    collective: Option<Attribute>,
    bytes: Option<u64>,
    from: Option<u32>,
    to: Option<u32>,
    tag: u32,
    group: String,
    partial: bool,
    operations: u64,
    tensor: u64,
}

fn node(mut message: Message<'_>, at: u64, program: &mut Program) -> Result<Raw, Mistake> {
    let mut raw = Raw {
        node: Node { id: 0, name: String::new(), work: Work::Nothing, micros: 0, dependencies: Vec::new() },
        control: Vec::new(),
        data: Vec::new(),
        at,
    };
    let (mut kind, mut attributes, mut inputs) = (0, Vec::new(), String::new());
    while let Some(field) = message.field()? {
        match field.number {
            1 => raw.node.id = field.varint("the id of a node")?,
            2 => raw.node.name = printable::name(&field.text("the name of a node")?),
            3 => kind = field.varint("the type of a node")?,
            4 => field.numbers("the id of a node", &mut raw.control)?,
            5 => field.numbers("the id of a node", &mut raw.data)?,
            // The start that the trace recorded: here, the simulation decides when a node starts.
            6 => drop(field.varint("a start")?),
            7 => raw.node.micros = field.varint("a duration")?,
            8 => inputs = values(field.message("inputs")?)?,
            9 => drop(field.message("outputs")?),
            10 => attributes.push(Attribute::read(field.message("an attribute")?, field.at)?),
            _ => program.notes.unknown_fields += 1,
        }
    }
    let done = known(attributes, kind, program)
        .and_then(|known| work(kind, known, program).map_err(|text| (at, text)));
    raw.node.work = done.map_err(|(at, text)| (at, format!("{}: {text}", raw.node)))?;
    if kind == 1 && inputs.contains("pg_name") {
        match groups::of_metadata(&inputs) {
            Some(groups) => program.groups.extend(groups),
            None => program.notes.bad_groups += 1,
        }
    }
    Ok(raw)
}

/// The values of inputs, as text.
fn values(mut message: Message<'_>) -> Result<String, Mistake> {
    let mut values = String::new();
    while let Some(field) = message.field()? {
        if field.number == 1 {
            values = field.text("values")?;
        }
    }
    Ok(values)
}

fn known(attributes: Vec<Attribute>, kind: u64, program: &mut Program) -> Result<Known, Mistake> {
    let mut known = Known::default();
    let (is_message, is_collective) = (kind == 5 || kind == 6, kind == 7);
    for attribute in attributes {
        match attribute.name.as_str() {
            "is_cpu_op" => known.cpu = attribute.bool()?,
            "comm_type" if is_collective => known.collective = Some(attribute),
            // Traces of custom collectives repeat the type of the node here.
            "comm_type" if is_message => {}
            "comm_size" => known.bytes = Some(attribute.number("a number of bytes")?),
            "comm_src" if is_message => known.from = Some(attribute.number("a rank")?),
            "comm_dst" if is_message => known.to = Some(attribute.number("a rank")?),
            // A tag of -1 is one more tag: receives of any tag do not exist.
            "comm_tag" if is_message => known.tag = attribute.number::<i64>("a tag")? as u32,
            "pg_name" if is_collective => known.group = attribute.text()?,
            "involved_dim" if is_collective => known.partial = attribute.has_false()?,
            "num_ops" if kind == 4 => known.operations = attribute.number("a number of operations")?,
            "tensor_size" => known.tensor = attribute.number("a number of bytes")?,
            _ => *program.unused.entry(attribute.name).or_default() += 1,
        }
    }
    Ok(known)
}

/// Names of the types of collectives.
const COLLECTIVES: [(&str, Option<Kind>); 10] = [
    ("ALL_REDUCE", Some(Kind::AllReduce)),
    ("REDUCE", Some(Kind::Reduce)),
    ("ALL_GATHER", Some(Kind::AllGather)),
    ("GATHER", None),
    ("SCATTER", None),
    ("BROADCAST", Some(Kind::Broadcast)),
    ("ALL_TO_ALL", Some(Kind::AllToAll)),
    ("REDUCE_SCATTER", Some(Kind::ReduceScatter)),
    ("REDUCE_SCATTER_BLOCK", Some(Kind::ReduceScatter)),
    ("BARRIER", None),
];

/// The number of barriers in that list.
const BARRIER: u64 = 9;

/// True for a node in which the CPU launches communication. The kernel on the GPU is a node of its own, and only that node tells
/// what it does: which collective, or with whom.
fn is_launch(kind: u64, known: &Known) -> bool {
    let silent = match kind {
        5 => known.to.is_none(),
        6 => known.from.is_none(),
        7 => known.collective.is_none(),
        _ => false,
    };
    known.cpu && silent
}

fn work(kind: u64, known: Known, program: &mut Program) -> Result<Work, String> {
    if is_launch(kind, &known) {
        program.notes.launches += 1;
        return Ok(Work::Compute { cpu: true, operations: 0, bytes: 0 });
    }
    let Known { cpu, bytes, tag, .. } = known;
    if cpu && kind >= 5 {
        program.notes.on_cpu += 1;
    }
    let size = || bytes.ok_or_else(|| "the attribute `comm_size` is missing".to_owned());
    let peer = |rank: Option<u32>, attribute: &str| {
        let rank = rank.ok_or_else(|| format!("the attribute `{attribute}` is missing"))?;
        Ok::<Peer, String>(Peer { rank, tag, bytes: size()? })
    };
    Ok(match kind {
        0 => {
            program.notes.invalid += 1;
            Work::Nothing
        }
        1 => Work::Nothing,
        2 | 3 => Work::Memory { bytes: known.tensor },
        4 => Work::Compute { cpu, operations: known.operations, bytes: known.tensor },
        5 => Work::Send(peer(known.to, "comm_dst")?),
        6 => Work::Receive(peer(known.from, "comm_src")?),
        7 => {
            let attribute = known.collective.ok_or("the attribute `comm_type` is missing")?;
            let number: u64 = attribute.number("a type of collective").map_err(|(_, text)| text)?;
            let Some(&(name, kind)) = COLLECTIVES.get(number as usize) else {
                return Err(format!(
                    "expected a `comm_type` from 0 to {}, found {number}",
                    COLLECTIVES.len() - 1
                ));
            };
            if kind.is_none() && number != BARRIER {
                return Err(format!("the collective {name} cannot run, as the trace does not name its root"));
            }
            program.notes.partial += u64::from(known.partial);
            let bytes = if number == BARRIER { 0 } else { size()? };
            Work::Collective { kind, bytes, group: known.group }
        }
        other => {
            let last = TYPES.len() - 1;
            return Err(format!("expected a type of node from 0 to {last} ({}), found {other}", TYPES[last]));
        }
    })
}

#[cfg(test)]
mod tests;
