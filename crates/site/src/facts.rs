//! What the files of a site say, before anything is decided.

use crate::ledger::Ledger;
use crate::said::{Place, Said};
use crate::sonic::Switch;
use std::rc::Rc;

/// All that the readers found.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) switches: Vec<Switch>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) nodes: Vec<Known>,
    pub(crate) nic: Vec<NicSetting>,
    /// The class that NICs give to data.
    pub(crate) dscp: Option<Said<u8>>,
    /// Priorities that NICs pause.
    pub(crate) nic_pfc: Vec<Said<Vec<u8>>>,
    pub(crate) lookups: Vec<Lookup>,
    pub(crate) servers: Option<Servers>,
    pub(crate) ledger: Ledger,
}

/// A cable between two ports.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) ends: [End; 2],
    /// Bits per second.
    pub(crate) rate: Option<Said<u64>>,
    /// Picoseconds.
    pub(crate) delay: Option<Said<u64>>,
    pub(crate) at: Place,
}

/// An end of a cable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End {
    pub(crate) node: String,
    pub(crate) port: Option<String>,
}

impl End {
    pub(crate) fn new(node: &str, port: Option<&str>) -> Self {
        let port = port.map(str::trim).filter(|port| !port.is_empty()).map(files::printable::name);
        End { node: files::printable::name(node.trim()), port }
    }
}

/// A node of which a file says what it is.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) is_host: bool,
    /// Role of a switch, as its file calls it.
    pub(crate) role: Option<String>,
}

/// A setting of NICs, as a key below `[nic]` or `[nccl]` and its value in TOML.
#[derive(Clone, Debug)]
pub(crate) struct NicSetting {
    pub(crate) key: String,
    pub(crate) toml: String,
    pub(crate) at: Place,
}

/// A row of `pg_profile_lookup.ini`.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    /// Folder of the file, whose switches the table belongs to.
    pub(crate) folder: Rc<str>,
    /// Mb/s.
    pub(crate) speed: u64,
    /// Metres.
    pub(crate) length: u64,
    pub(crate) fields: Vec<(String, Said<String>)>,
}

/// The servers of a fabric, all alike.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    pub(crate) gpus: usize,
    /// Bits per second of a GPU's port, if GPUs are joined.
    pub(crate) nvlink: Option<u64>,
    /// NICs of a server, once its cables are counted.
    pub(crate) nics: Option<usize>,
    pub(crate) at: Place,
}
