//! Claims that a network engineer can rely on, as stories: a short scenario, a run, one claim.
//!
//! | file | claim |
//! |---|---|
//! | [`turns`] | a fabric that is computed in double windows, by two sides in turns, has the outcome of any other engine |
//! | [`twins`] | both engines give the same outcome, whatever happens on the fabric |
//! | [`fuzz`] | the same on random fabrics, settings and workloads |
//! | [`held`] | a scheme may hold packets and make control packets; the books account for all of them |
//! | [`closed_form`] | one flow on an idle fabric takes its closed-form time, to the picosecond |
//! | [`lossless`] | PFC with enough headroom loses nothing; with too little the run names the switches that dropped |
//! | [`lossy_incast`] | receivers send CNPs without marks while their port is full, and lost retransmissions wait for no timeout |
//! | [`three_tiers`] | on a fat tree Themis spreads a flow over all paths, and takes no late packet for a lost one |
//! | [`dragonfly`] | on a Dragonfly every scheme delivers, and virtual channels keep PFC from deadlock |
//! | [`endpoint`] | a sender that chooses paths moves flows without reordering, or sprays them; classes have schemes of their own |
//! | [`in_order`] | under Flowcut no packet overtakes another, on any fabric, or at most as many as allowed |
//! | [`drains`] | Flowcut drains a flow only for its own delays; losses and overflowing counters block no flow forever |
//! | [`many_paths`] | flowlets, flowcells and MP-RDMA spread a flow as specified, and keep their bounds |
//! | [`deadlock`] | a run in which nothing moves ends, and names the causes |
//! | [`rerouting`] | CONGA keeps flowlets off slow links; ConWeave moves a flow without reordering at its receiver |
//! | [`servers`] | ports of one host share nothing but triggers, which cross from port to port in no time |
//! | [`tasks`] | tasks take their time on their streams, and start messages and each other in no time |
//! | [`long_haul`] | at the edge of a datacentre, a switch that answers for the far end spares local flows |
//! | [`cells`] | a switch whose packets take whole cells pauses and drops at the cell that the law of its buffer gives |
//! | [`classes`] | classes of a table get the service, the caps, the pauses and the marks that the table gives them |
//! | [`nic_classes`] | classes of a NIC keep a message of one class from waiting for others at its own host |
//! | [`own_queues`] | flows with a queue of their own neither wait behind others nor make them wait, and keep its rules |
//! | [`cuts`] | a switch that cuts data sends every header on while headers fit; it loses and counts the rest |
//! | [`penalties`] | a receiver's penalty leaves its sender one packet per round trip until it is over |
//! | [`port_status`] | NICs tell their peers which ports are down; both ends leave these planes, and take them back at once |
//! | [`probes`] | where switches drop data without a word, probes find the losses long before timers |
//! | [`short_links`] | short links inside racks do not make the windows of the whole fabric short |
//! | [`conservation`] | every packet and every byte is accounted for, even in a run that is cut short |
//! | [`memory`] | a run ends before memory runs out, and names the queue that has grown |
//! | [`message_rates`] | a NIC begins as many messages per second as its limits allow, and no fewer |
//! | [`slow_receivers`] | a NIC whose host takes data slowly pauses its link or discards, and gets what its host takes |
//! | [`ingress`] | a NIC whose port is nearly full loses data in bursts at the share that was asked for |
//! | [`reads`] | a READ takes the time of its request and its data, and so many under way give their sizes per round trip |
//! | [`ethereal`] | subflows fill all uplinks evenly, and leave a dead path after a timeout |
//! | [`failures`] | links go down, come back and slow down to the picosecond, and schemes find the remaining paths |
//! | [`detection`] | switches that learn of a failure by themselves lose packets in black holes and circles until the news has arrived |
//! | [`flaps`] | flaps drawn by rate and distribution do what the same outages do that are written one by one |
//! | [`frozen`] | replies with entropies of their own outlive a dead cable in frozen routes |
//! | [`listed_losses`] | a listed packet is lost as often as listed, and the recovery mode retransmits it |
//! | [`noise`] | noise loses frames of all kinds in bursts or with their codewords, and each loss has its cause |
//! | [`telemetry`] | data packets report the load of their links; HPCC empties queues with it, Swift keeps delays near a target |
//! | [`rate_control`] | DCQCN's rates rise by a timer and by bytes sent, and a port counts the CNPs of all its queue pairs |
//! | [`receivers`] | a receiver may wait with its ACKs until a timer fires, or complete messages by counting packets |
//! | [`returned`] | where receivers send headers back, a cut packet is sent again once per cut; messages complete by counting |
//! | [`grants`] | a host that grants credit shares its link among its senders and keeps the queue before it short |
//! | [`pulls`] | a receiver that pulls a packet for each one that arrives bounds the packets in flight and keeps its link busy |
//! | [`arrivals`] | flows start when the workload says, and a loaded fabric behaves as queueing theory predicts |
//! | [`htsim`] | flows of connection matrices start when their triggers fire |
//! | [`chakra`] | traces of ASTRA-sim compute and communicate in the order of their graph |
//! | [`experts`] | dispatch and combine of experts take the times that were measured for DeepEP's kernels |
//! | [`graph`] | tasks of a scenario start when those before them have ended |
//! | [`goal`] | schedules of LogGOPSim compute, send and receive in the order that they state |
//! | [`live`] | a program that posts messages as the run goes on gets the run that a plan with these messages gets |
//! | [`collectives`] | all-reduce and all-to-all send what the textbook says, and runs repeat exactly |
//!
//! All stories are one test binary, so that the engine is compiled for them once. [`lab`] holds the tools.

mod arrivals;
mod cells;
mod chakra;
mod classes;
mod closed_form;
mod collectives;
mod conservation;
mod credits;
mod cuts;
mod deadlock;
mod detection;
mod dragonfly;
mod drains;
mod endpoint;
mod ethereal;
mod experts;
mod failover;
mod failures;
mod flaps;
mod frozen;
mod fuzz;
mod goal;
mod gpu_collectives;
mod grants;
mod graph;
mod held;
mod htsim;
mod in_order;
mod ingress;
mod lab;
mod listed_losses;
mod live;
mod long_haul;
mod lossless;
mod lossy_incast;
mod many_paths;
mod memory;
mod message_rates;
mod nccl_costs;
mod nic_classes;
mod noise;
mod own_queues;
mod penalties;
mod port_by_port;
mod port_status;
mod probes;
mod pulls;
mod rate_control;
mod reads;
mod receivers;
mod records;
mod rerouting;
mod retries;
mod returned;
mod servers;
mod short_links;
mod slow_receivers;
mod storms;
mod tasks;
mod telemetry;
mod three_tiers;
mod training;
mod turns;
mod twins;
