//! Tables of flow sets: flows with equal hashes share an entry, and so a port.

use model::{Detour, PortIndex, Time};

/// State of a flow set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Its port; [`PortIndex::VIRTUAL`] in an empty entry.
    pub(super) port: PortIndex,
    /// Detour behind the port.
    pub(super) via: Option<Detour>,
    /// Arrival of its last packet.
    pub(super) last: Time,
}

impl Entry {
    const EMPTY: Entry = Entry { port: PortIndex::VIRTUAL, via: None, last: Time::ZERO };

    pub(super) fn is_taken(self) -> bool {
        self.port != PortIndex::VIRTUAL
    }
}

/// Tables of one switch, one for each group of next hops that has room.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    size: usize,
    /// Entries of every group; a table is allocated with its first entry.
    tables: Vec<Vec<Entry>>,
    /// Ports that each group has given away in turn.
    turns: Vec<usize>,
}

impl Tables {
    /// Tables of `size` entries for as many of `groups` as `entries` can hold.
    pub(super) fn new(groups: usize, size: u32, entries: u32) -> Self {
        let room = groups.min((entries / size.max(1)) as usize);
        Tables { size: size.max(1) as usize, tables: vec![Vec::new(); room], turns: vec![0; room] }
    }

    /// Entries of a table.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// True if the group has a table.
    pub(super) fn has(&self, group: usize) -> bool {
        group < self.tables.len()
    }

    pub(super) fn get(&self, group: usize, slot: usize) -> Entry {
        self.tables[group].get(slot).copied().unwrap_or(Entry::EMPTY)
    }

    pub(super) fn set(&mut self, group: usize, slot: usize, entry: Entry) {
        let table = &mut self.tables[group];
        if table.is_empty() {
            table.resize(self.size, Entry::EMPTY);
        }
        table[slot] = entry;
    }

    /// Number of the next flow of a group.
    pub(super) fn turn(&mut self, group: usize) -> usize {
        let turn = &mut self.turns[group];
        *turn += 1;
        *turn - 1
    }
}
