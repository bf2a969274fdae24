//! The vocabulary that all crates of ropewalk share: units, identifiers, packets, the fabric, the plan of a run, and the
//! traits of the pluggable parts.
//!
//! This crate contains no scheme, transport, congestion control or engine. A part is a pure state machine: time and
//! randomness are arguments, and a handler sees only its own node.
//!
//! | file | what it defines |
//! |---|---|
//! | [`units`] | [`Time`], [`Rate`], [`Bytes`], [`Pace`], [`Probability`]: integers with a unit |
//! | [`quantity`] | how these are read from text, such as `"400Gbps"` |
//! | [`ids`] | node, host, port, queue-pair and message numbers |
//! | [`packet`] | the 16-byte [`Packet`] that crosses links by value |
//! | [`advice`] | what a switch tells a sender in a CNP |
//! | [`annex`] | further fields of packets, in runs whose parts need them |
//! | [`digest`] | telemetry that switches fold into one number per packet |
//! | [`telemetry`] | in-band network telemetry (INT): records of switches on data packets |
//! | [`route_state`] | detour and leg of a packet in a fabric of groups |
//! | [`wire`] | frame sizes and transmission times |
//! | [`fabric`] | nodes, links, equal-cost routes |
//! | [`failure`] | links that go down, come back or slow down, and the changes of routes that follow |
//! | [`noise`] | codewords that cannot be repaired, and bursts of losses |
//! | [`plan`] | the checked input of a run: `scenario` makes it, the engine runs it |
//! | [`record`] | the series, events and frames that a run records |
//! | [`draw`] | keyed random numbers: (seed, purpose, entity, ordinal) |
//! | [`sharing`] | NICs with several ports whose queue pairs may change ports |
//! | [`scheme`] | trait [`Scheme`]: load balancing inside a switch |
//! | [`steering`] | trait [`Steering`]: load balancing in the sending NIC |
//! | [`transport`] | traits [`Sender`] and [`Receiver`]: loss recovery of one queue pair |
//! | [`congestion`] | trait [`Congestion`]: rate and window of one queue pair |
//! | [`parts`] | trait [`Parts`]: the pluggable parts of a run |

#![forbid(unsafe_code)]

pub mod advice;
pub mod annex;
pub mod congestion;
pub mod digest;
pub mod draw;
pub mod fabric;
pub mod failure;
pub mod granter;
pub mod ids;
pub mod noise;
pub mod packet;
pub mod parts;
pub mod plan;
pub mod quantity;
pub mod record;
pub mod route_state;
pub mod scheme;
pub mod sharing;
pub mod steering;
pub mod telemetry;
pub mod transport;
pub mod units;
pub mod wire;

pub use advice::Advice;
pub use annex::{Annex, Dialogue, Parcel, SackStamp, Stamp, Stamped, Switched, TelemetryStamp};
pub use congestion::{Allowance, Congestion, Delivery, Demand, Feedback};
pub use fabric::{Fabric, FabricBuilder, FabricError, Routing};
pub use failure::Failures;
pub use granter::Granter;
pub use ids::{HostId, LinkId, MessageId, NodeId, PortIndex, QpId, TaskId};
pub use noise::Noise;
pub use packet::{Kind, Packet};
pub use parts::{IngressLosses, MessageGaps, Parts};
pub use plan::Plan;
pub use route_state::{Detour, RouteState};
pub use scheme::{Cx, Interest, QpSite, Reroute, Scheme, Site, Verdict};
pub use sharing::{PortChoice, PortSharing, Resilience};
pub use steering::Steering;
pub use themis::Psn;
pub use transport::{Receiver, Sender};
pub use units::{Bytes, MessageRate, Pace, Probability, Rate, Time};
pub use wire::Wire;
