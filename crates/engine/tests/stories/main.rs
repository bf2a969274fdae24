//! What a network engineer may rely on, told as stories: a short scenario, a run, one claim.
//!
//! | file | what it claims |
//! |---|---|
//! | [`twins`] | both engines give the same outcome, whatever happens on the fabric |
//! | [`fuzz`] | the same on fabrics, settings and workloads that nobody thought of |
//! | [`held`] | a scheme may hold packets and make control packets; no packet gets lost in the books |
//! | [`closed_form`] | one flow on an idle fabric takes the time that a pencil gives, to the picosecond |
//! | [`lossless`] | PFC with enough headroom loses nothing, and with too little the run says who dropped |
//! | [`three_tiers`] | on a fat tree Themis deals a flow over all paths, and blames no packet that is only late |
//! | [`dragonfly`] | on groups of routers every scheme finds its way, and virtual channels keep PFC from deadlock |
//! | [`endpoint`] | a sender that chooses paths by itself moves flows without disorder, or sprays them; classes have schemes of their own |
//! | [`in_order`] | under Flowcut no packet overtakes another, on any fabric, or no more than were said to |
//! | [`drains`] | Flowcut drains a flow for what it meets; losses and counters that are full hold up none for ever |
//! | [`many_paths`] | flowlets, flowcells and MP-RDMA spread a flow as they say, and keep to their bounds |
//! | [`deadlock`] | a run in which nothing moves ends, and says what waits for what |
//! | [`rerouting`] | CONGA keeps flowlets off slow links; ConWeave moves a flow, and its receiver sees no disorder |
//! | [`long_haul`] | at the edge of a datacentre, a switch that answers for the far end spares local flows |
//! | [`conservation`] | every packet and every byte is accounted for, also in a run that is cut short |
//! | [`failures`] | links go down, come back and slow down to the picosecond, and schemes find the paths that are left |
//! | [`listed_losses`] | a listed packet is lost as often as listed, and comes back as the recovery mode has it |
//! | [`telemetry`] | data packets tell how busy their links are; HPCC empties queues with it, Swift keeps delays near a target |
//! | [`arrivals`] | flows start when the workload says, and a load does to a fabric what queueing theory says |
//! | [`collectives`] | all-reduce and all-to-all send what the textbook says, and runs repeat exactly |
//!
//! All of them are one test binary, so that the engine is compiled for them once. [`lab`] holds the tools.

mod arrivals;
mod closed_form;
mod collectives;
mod conservation;
mod deadlock;
mod dragonfly;
mod drains;
mod endpoint;
mod failures;
mod fuzz;
mod held;
mod in_order;
mod lab;
mod listed_losses;
mod long_haul;
mod lossless;
mod many_paths;
mod rerouting;
mod telemetry;
mod three_tiers;
mod twins;
