//! GOAL as binary file, little-endian.
//!
//! | part | content |
//! |---|---|
//! | cookie | u64 4223; all offsets count from its end |
//! | header | u32 ranks, u8 largest cpu, u8 largest NIC, then u64 start and u64 end of every rank's block |
//! | block | u32 operations, u32 roots, the roots as u32, the operations, then the successors of all operations as u32 |
//! | operation | 39 bytes: u32 predecessors, i8 kind (1 send, 2 receive, 3 compute), u32 peer, u64 size, u32 tag, u8 cpu, u8 NIC, then number (u32) and first index (u32) of the successors at its end, and the same of those at its start |
//!
//! The roots are the operations without predecessors.

use super::{Dependency, Kind, MOST_RANKS, On, Operation, Program, Schedule};
use finding::{Finding, code};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};

const COOKIE: u64 = 4223;
/// Cookie of a file whose blocks a simulator overwrites while it runs.
const CONSUMED: u64 = 2342;
/// Bytes before the offsets' zero.
const ZERO: u64 = 8;
/// Bytes of the header before the blocks' places.
const HEADER: u64 = 6;
const OPERATION: u64 = 39;

/// True if a file that starts with these 8 bytes is a binary schedule.
pub fn is_binary(start: &[u8]) -> bool {
    [COOKIE, CONSUMED].iter().any(|cookie| start == cookie.to_le_bytes())
}

/// Reads a schedule of `size` bytes rank by rank; messages call it `file`.
pub fn read(file: &str, source: &mut (impl Read + Seek), size: u64) -> Result<Schedule, Finding> {
    let at = |byte: u64, text: String| code::CONTENT.at("file", format!("{file}: byte {byte}: {text}"));
    let mut bytes = Vec::new();
    let fill = |source: &mut dyn Read, n: u64, bytes: &mut Vec<u8>| -> Result<(), Finding> {
        bytes.clear();
        source.take(n).read_to_end(bytes).map_err(|e| at(0, format!("cannot be read: {e}")))?;
        if (bytes.len() as u64) < n {
            return Err(at(size, "the file ends too early".into()));
        }
        Ok(())
    };
    fill(source, ZERO + HEADER, &mut bytes)?;
    match Fields(&bytes).u64() {
        COOKIE => {}
        CONSUMED => {
            let text = "a simulator has overwritten this file (cookie 2342); make it anew from its text";
            return Err(at(0, text.into()));
        }
        other => return Err(at(0, format!("expected the cookie {COOKIE}, found {other}"))),
    }
    let mut header = Fields(&bytes[ZERO as usize..]);
    let (ranks, most) = (header.u32(), (header.u8(), header.u8()));
    let table = ZERO + HEADER;
    let room = (size - table) / 16;
    if ranks == 0 || ranks > MOST_RANKS || u64::from(ranks) > room {
        let most = room.min(MOST_RANKS.into());
        let text = format!(
            "expected a number of ranks from 1 to {most}, as the file has {size} bytes, found {ranks}"
        );
        return Err(at(ZERO, text));
    }
    fill(source, u64::from(ranks) * 16, &mut bytes)?;
    let blocks = places(&bytes, ranks, size)
        .map_err(|(rank, text)| at(table + 16 * u64::from(rank), format!("rank {rank}: {text}")))?;
    let mut schedule = Schedule { ranks, programs: BTreeMap::new() };
    for (rank, (start, length)) in (0..).zip(blocks) {
        source.seek(SeekFrom::Start(start)).map_err(|e| at(start, format!("cannot be read: {e}")))?;
        fill(source, length, &mut bytes)?;
        let program = block(&bytes, ranks, most)
            .map_err(|(offset, text)| at(start + offset, format!("rank {rank}: {text}")))?;
        if !program.operations.is_empty() {
            schedule.programs.insert(rank, program);
        }
    }
    Ok(schedule)
}

/// Start in the file and length of every rank's block; the error names the rank.
fn places(table: &[u8], ranks: u32, size: u64) -> Result<Vec<(u64, u64)>, (u32, String)> {
    let mut fields = Fields(table);
    let mut places = Vec::with_capacity(ranks as usize);
    let first = HEADER + 16 * u64::from(ranks);
    for rank in 0..ranks {
        let (start, end) = (fields.u64(), fields.u64());
        if start < first || end < start || end > size - ZERO {
            let text =
                format!("expected a block between {first} and {}, found {start} to {end}", size - ZERO);
            return Err((rank, text));
        }
        places.push((start + ZERO, end - start));
    }
    let mut by_start: Vec<u32> = (0..ranks).collect();
    by_start.sort_by_key(|&rank| places[rank as usize]);
    for pair in by_start.windows(2) {
        let (one, two) = (places[pair[0] as usize], places[pair[1] as usize]);
        if one.0 + one.1 > two.0 {
            return Err((pair[1], format!("its block overlaps the block of rank {}", pair[0])));
        }
    }
    Ok(places)
}

/// The program in a block; the error has its offset in the block.
fn block(bytes: &[u8], ranks: u32, most: (u8, u8)) -> Result<Program, (u64, String)> {
    let size = bytes.len() as u64;
    if size < 8 {
        return Err((0, format!("expected a block of at least 8 bytes, found {size}")));
    }
    let mut fields = Fields(bytes);
    let (operations, roots) = (u64::from(fields.u32()), u64::from(fields.u32()));
    let start = 8 + 4 * roots;
    let fixed = start + OPERATION * operations;
    if fixed > size {
        let text =
            format!("{operations} operations and {roots} roots need {fixed} bytes; the block has {size}");
        return Err((0, text));
    }
    if !(size - fixed).is_multiple_of(4) {
        return Err((fixed, format!("expected successors of 4 bytes each, found {} bytes", size - fixed)));
    }
    let successors = Fields(&bytes[fixed as usize..]);
    let mut waits = vec![0u32; operations as usize];
    let mut program =
        Program { operations: Vec::with_capacity(operations as usize), dependencies: Vec::new() };
    let mut claimed = 0u64;
    let mut fields = Fields(&bytes[start as usize..fixed as usize]);
    for number in 0..operations as u32 {
        let at = start + OPERATION * u64::from(number);
        let wrong = |text: String| (at, format!("operation {number}: {text}"));
        waits[number as usize] = fields.u32();
        program.operations.push(operation(&mut fields, ranks, most).map_err(wrong)?);
        for on in [On::Finish, On::Start] {
            let (count, first) = (fields.u32(), fields.u32());
            claimed += u64::from(count);
            let end = u64::from(first) + u64::from(count);
            let here = (size - fixed) / 4;
            if claimed > here || count > 0 && end > here {
                let text =
                    format!("expected at most {here} successors in the block, found {count} from {first} on");
                return Err(wrong(text));
            }
            for index in (0..count).map(|i| first + i) {
                let then = successors.u32_at(index);
                if u64::from(then) >= operations {
                    let text =
                        format!("its successor {then} does not exist; the block has {operations} operations");
                    return Err(wrong(text));
                }
                program.dependencies.push(Dependency { first: number, then, on });
            }
        }
    }
    if claimed != (size - fixed) / 4 {
        let text =
            format!("the operations have {claimed} successors; the block holds {}", (size - fixed) / 4);
        return Err((fixed, text));
    }
    check_waits(&program, waits, start)?;
    check_roots(&program, Fields(&bytes[8..start as usize]), roots)?;
    if let Some(cycle) = program.cycle() {
        let name = |number: u32| format!("{number}");
        let at = start + OPERATION * u64::from(cycle.first().map_or(0, |&d| program.dependencies[d].first));
        return Err((at, program.cycle_text(&cycle, &name)));
    }
    Ok(program)
}

/// The fields of an operation between its number of predecessors and its successors.
fn operation(fields: &mut Fields<'_>, ranks: u32, most: (u8, u8)) -> Result<Operation, String> {
    let kind = fields.u8();
    let (peer, size, tag, cpu, nic) = (fields.u32(), fields.u64(), fields.u32(), fields.u8(), fields.u8());
    let kind = match kind {
        1 => Kind::Send,
        2 => Kind::Receive,
        3 => Kind::Compute,
        other => {
            return Err(format!("expected the kind 1 (send), 2 (receive) or 3 (compute), found {other}"));
        }
    };
    if kind != Kind::Compute && peer >= ranks && (kind == Kind::Send || peer != super::ANY) {
        return Err(format!("there is no rank {peer}; the last one is {}", ranks - 1));
    }
    if cpu > most.0 || nic > most.1 {
        return Err(format!("cpu {cpu} and NIC {nic} exceed the header's {} and {}", most.0, most.1));
    }
    Ok(match kind {
        Kind::Compute => Operation { kind, peer: 0, tag: 0, size, cpu, nic: 0 },
        _ => Operation { kind, peer, tag, size, cpu, nic },
    })
}

/// Checks the numbers of predecessors.
fn check_waits(program: &Program, mut waits: Vec<u32>, start: u64) -> Result<(), (u64, String)> {
    let told = waits.clone();
    for dependency in &program.dependencies {
        let left = &mut waits[dependency.then as usize];
        *left = left.wrapping_sub(1);
    }
    let Some(number) = waits.iter().position(|&left| left != 0) else { return Ok(()) };
    let found = told[number].wrapping_sub(waits[number]);
    let text = format!(
        "operation {number}: it has {} predecessors by its own count, {found} by their lists",
        told[number]
    );
    Err((start + OPERATION * number as u64, text))
}

/// Checks that the roots are the operations without predecessors.
fn check_roots(program: &Program, mut fields: Fields<'_>, roots: u64) -> Result<(), (u64, String)> {
    let mut is_root = vec![true; program.operations.len()];
    program.dependencies.iter().for_each(|d| is_root[d.then as usize] = false);
    for i in 0..roots {
        let root = fields.u32();
        match is_root.get_mut(root as usize) {
            Some(is) if *is => *is = false,
            _ => return Err((8 + 4 * i, format!("operation {root} is listed as a root, wrongly or twice"))),
        }
    }
    match is_root.iter().position(|&is| is) {
        Some(missing) => {
            Err((4, format!("operation {missing} has no predecessor and is no root, so nothing starts it")))
        }
        None => Ok(()),
    }
}

/// Numbers at the front of a slice. Missing bytes count as 0; callers check lengths first.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (front, rest) =
            self.0.split_first_chunk().map_or(([0; N], &[][..]), |(front, rest)| (*front, rest));
        self.0 = rest;
        front
    }

    fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// The `index`-th number of a list.
    fn u32_at(&self, index: u32) -> u32 {
        Fields(self.0.get(4 * index as usize..).unwrap_or_default()).u32()
    }
}

/// Writes a schedule.
///
/// # Errors
/// If the output cannot be written.
pub fn write(schedule: &Schedule, to: &mut impl Write) -> io::Result<()> {
    let all = || schedule.programs.values().flat_map(|program| &program.operations);
    to.write_all(&COOKIE.to_le_bytes())?;
    to.write_all(&schedule.ranks.to_le_bytes())?;
    to.write_all(&[all().map(|o| o.cpu).max().unwrap_or(0), all().map(|o| o.nic).max().unwrap_or(0)])?;
    let mut at = HEADER + 16 * u64::from(schedule.ranks);
    for rank in 0..schedule.ranks {
        to.write_all(&at.to_le_bytes())?;
        at += schedule.programs.get(&rank).map_or(8, length);
        to.write_all(&at.to_le_bytes())?;
    }
    let nothing = Program::default();
    for rank in 0..schedule.ranks {
        write_block(schedule.programs.get(&rank).unwrap_or(&nothing), to)?;
    }
    Ok(())
}

/// Numbers of predecessors of all operations.
fn predecessors(program: &Program) -> Vec<u32> {
    let mut waits = vec![0u32; program.operations.len()];
    program.dependencies.iter().for_each(|d| waits[d.then as usize] += 1);
    waits
}

/// Length of a block.
fn length(program: &Program) -> u64 {
    let roots = predecessors(program).iter().filter(|&&waits| waits == 0).count() as u64;
    8 + 4 * (roots + program.dependencies.len() as u64) + OPERATION * program.operations.len() as u64
}

fn write_block(program: &Program, to: &mut impl Write) -> io::Result<()> {
    let waits = predecessors(program);
    let roots: Vec<u32> = (0..waits.len() as u32).filter(|&i| waits[i as usize] == 0).collect();
    let mut successors: Vec<&Dependency> = program.dependencies.iter().collect();
    successors.sort_by_key(|d| (d.first, d.on));
    for number in [program.operations.len() as u32, roots.len() as u32].iter().chain(&roots) {
        to.write_all(&number.to_le_bytes())?;
    }
    let mut next = 0usize;
    for (number, (operation, waits)) in (0u32..).zip(program.operations.iter().zip(&waits)) {
        to.write_all(&waits.to_le_bytes())?;
        let kind = match operation.kind {
            Kind::Send => 1u8,
            Kind::Receive => 2,
            Kind::Compute => 3,
        };
        to.write_all(&[kind])?;
        to.write_all(&operation.peer.to_le_bytes())?;
        to.write_all(&operation.size.to_le_bytes())?;
        to.write_all(&operation.tag.to_le_bytes())?;
        to.write_all(&[operation.cpu, operation.nic])?;
        for on in [On::Finish, On::Start] {
            let mine = successors[next..].iter().take_while(|d| (d.first, d.on) == (number, on)).count();
            to.write_all(&(mine as u32).to_le_bytes())?;
            to.write_all(&(next as u32).to_le_bytes())?;
            next += mine;
        }
    }
    successors.iter().try_for_each(|d| to.write_all(&d.then.to_le_bytes()))
}
