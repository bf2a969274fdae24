//! What a [`crate::Tor`] is built from. [`crate::config`] reads it from TOML.

use crate::events::Rule;
use crate::guard::OnBlock;
use crate::paths::Spine;
use crate::qp::{Connection, Evidence};
use crate::queues::Classes;
use crate::spray::{Spray, Steer};
use crate::units::{PortId, Rate, Span};
use wire::ethernet::Address;

/// A fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The ports, in order of their numbers.
    pub ports: Vec<Port>,
    /// The emulated spines. Without any, ports of different ToRs are joined directly, and uplinks lead to real switches.
    pub spines: Vec<Spine>,
    /// How requests choose their path.
    pub spray: Spray,
    /// How the chosen path gets into a packet.
    pub steer: Steer,
    /// Time from the failure of a spine until the ToRs avoid it.
    pub detection: Span,
    /// Themis-D.
    pub themis: Themis,
    /// Classes, ECN, PFC and buffer.
    pub classes: Classes,
    /// Injected events, for tests.
    pub events: Vec<Rule>,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Its name in logs and counters.
    pub name: String,
    /// Number of its ToR. Frames between ports of one ToR cross no spine, and Themis leaves them alone.
    pub leaf: u16,
    /// True if the port leads to another switch instead of a host.
    pub uplink: bool,
    /// Rate; `None` for no limit.
    pub rate: Option<Rate>,
    /// Delay of the link to the host.
    pub last_hop: Span,
    /// Addresses of stations that are known to be behind the port.
    pub stations: Vec<Address>,
}

/// The mode of Themis-D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every NACK passes.
    Off,
    /// The text of Themis (APNET'25) to the letter.
    Literal,
    /// Our refinement: no NACK for a packet that is merely late.
    Sound,
}

/// Settings of Themis-D.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Themis {
    /// The mode.
    pub mode: Mode,
    /// Entries of each connection's ring.
    pub ring: u16,
    /// What becomes of a blocked NACK.
    pub on_block: OnBlock,
    /// Size of the tables.
    pub connections: usize,
    /// A connection without packets for so long is forgotten.
    pub idle: Span,
    /// Check the ICRC of requests, too, and record none that is wrong. ACKs and NACKs are always checked.
    pub verify: bool,
    /// Evidence by which connections are learnt, in this order.
    pub learning: Vec<Evidence>,
    /// Connections that an operator knows.
    pub fixed: Vec<Connection>,
}

impl Default for Themis {
    /// Our settings. 256 entries cover a last hop whose host answers after milliseconds, as an emulated guest does.
    fn default() -> Self {
        Themis {
            mode: Mode::Sound,
            ring: 256,
            on_block: OnBlock::Ack,
            connections: 4096,
            idle: Span::from_secs(60),
            verify: false,
            learning: vec![Evidence::PortAndPsn, Evidence::Psn],
            fixed: Vec::new(),
        }
    }
}

impl Themis {
    /// The rule for so many paths; `None` if the mode is off.
    pub(crate) fn rule(&self, slots: u16) -> Option<themis::Settings> {
        match self.mode {
            Mode::Off => None,
            // One-byte entries need a number of slots that divides 256; other numbers keep whole PSNs.
            Mode::Literal if slots.is_power_of_two() && slots <= 256 => {
                Some(themis::Settings::literal(slots, self.ring))
            }
            Mode::Literal => {
                let width = themis::Width::W24;
                Some(themis::Settings { width, ..themis::Settings::literal(slots, self.ring) })
            }
            Mode::Sound => Some(themis::Settings::sound(slots, self.ring)),
        }
    }
}

impl Settings {
    /// A plain switch with so many ports, each on a ToR of its own.
    pub fn of_ports(ports: u16) -> Self {
        let port = |n: u16| Port { name: format!("h{}", n + 1), leaf: n, ..Port::default() };
        Settings {
            ports: (0..ports).map(port).collect(),
            spines: Vec::new(),
            spray: Spray::Psn,
            steer: Steer::Port,
            detection: Span::ZERO,
            themis: Themis { mode: Mode::Off, ..Themis::default() },
            classes: Classes::default(),
            events: Vec::new(),
            seed: 1,
        }
    }

    /// Number of ToRs.
    pub fn leaves(&self) -> u16 {
        self.ports.iter().map(|port| port.leaf + 1).max().unwrap_or(0)
    }

    /// The ports that lead to other switches.
    pub fn uplinks(&self) -> impl Iterator<Item = PortId> {
        (0..).map(PortId).zip(&self.ports).filter(|(_, port)| port.uplink).map(|(id, _)| id)
    }
}
