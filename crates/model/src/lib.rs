//! The vocabulary that every part of ropewalk shares: units, identifiers, packets, the fabric, the plan of a
//! run, and the traits behind which the pluggable parts stand.
//!
//! This crate holds no algorithm: no scheme, no transport, no congestion control and no engine. A part is a
//! pure state machine: time and randomness are arguments, and a handler sees its own node and nothing else.
//!
//! | file | what it defines |
//! |---|---|
//! | [`units`] | [`Time`], [`Rate`], [`Bytes`], [`Pace`], [`Probability`]: integers with a unit |
//! | [`ids`] | node, host, port, queue-pair and message numbers |
//! | [`packet`] | the 16-byte [`Packet`] that crosses links by value |
//! | [`annex`] | what packets carry besides, in runs whose ends need it |
//! | [`telemetry`] | what switches write on data packets about their links (INT) |
//! | [`route_state`] | how a packet crosses a fabric of groups |
//! | [`wire`] | frame sizes and transmission times |
//! | [`fabric`] | nodes, links, equal-cost routes |
//! | [`failure`] | links that go down, come back or slow down, and what routing makes of it |
//! | [`plan`] | everything one run needs, checked: what `scenario` makes and the engine obeys |
//! | [`draw`] | keyed random numbers: (seed, purpose, entity, ordinal) |
//! | [`scheme`] | trait [`Scheme`]: load balancing inside a switch |
//! | [`steering`] | trait [`Steering`]: load balancing in the sending NIC |
//! | [`transport`] | traits [`Sender`] and [`Receiver`]: loss recovery of one queue pair |
//! | [`congestion`] | trait [`Congestion`]: rate and window of one queue pair |
//! | [`parts`] | trait [`Parts`]: the bundle of pluggable parts that a run is made of |

pub mod annex;
pub mod congestion;
pub mod draw;
pub mod fabric;
pub mod failure;
pub mod ids;
pub mod packet;
pub mod parts;
pub mod plan;
pub mod quantity;
pub mod record;
pub mod route_state;
pub mod scheme;
pub mod steering;
pub mod telemetry;
pub mod transport;
pub mod units;
pub mod wire;

pub use annex::{Annex, Parcel, Stamp, Traced};
pub use congestion::{Allowance, Congestion, Feedback};
pub use fabric::{Fabric, FabricBuilder, FabricError, Routing};
pub use failure::Failures;
pub use ids::{HostId, LinkId, MessageId, NodeId, PortIndex, QpId};
pub use packet::{Kind, Packet};
pub use parts::Parts;
pub use plan::Plan;
pub use route_state::{Detour, RouteState};
pub use scheme::{Cx, Interest, QpSite, Reroute, Scheme, Site, Verdict};
pub use steering::Steering;
pub use themis::Psn;
pub use transport::{Receiver, Sender};
pub use units::{Bytes, Pace, Probability, Rate, Time};
pub use wire::Wire;
