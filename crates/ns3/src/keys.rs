//! Keys of configuration files, one entry per key. The import reads and warns by this table, and the documentation prints it.

use serde::Serialize;

/// A key.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Programs that read it.
    pub of: Of,
    /// Meaning in these programs, with the value that holds without the key.
    pub meaning: &'static str,
    /// Setting of a scenario, or the consequence if there is none.
    pub here: &'static str,
    #[serde(skip)]
    pub(crate) takes: Takes,
    /// Value without the key, in HPCC's program and in ConWeave's; empty if there is none, or none that is possible here.
    #[serde(skip)]
    pub(crate) absent: [&'static str; 2],
    #[serde(skip)]
    pub(crate) fate: Fate,
}

/// Programs that read a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Of {
    /// All of them.
    #[serde(rename = "all")]
    All,
    /// HPCC's program and those that come from it, but not ConWeave's.
    #[serde(rename = "HPCC")]
    Hpcc,
    /// ConWeave's program.
    #[serde(rename = "ConWeave")]
    Conweave,
    /// SimAI's ns-3.
    #[serde(rename = "SimAI")]
    Simai,
    /// The prototype of the long-haul system Themis.
    #[serde(rename = "long-haul prototype")]
    Prototype,
}

/// Words after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Words(usize),
    /// A number, then so many pairs.
    Pairs,
}

/// Treatment of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// The import reads it.
    Read,
    /// It changes no packet.
    Quiet,
    /// One value alone is possible here, under these values of CC_MODE (or any); others are a warning with this consequence.
    Only { value: f64, under: &'static [u32], consequence: &'static str },
}

const ANY: &[u32] = &[];
const HPCC: &[u32] = &[3];

const fn key(name: &'static str, of: Of, meaning: &'static str, here: &'static str) -> Key {
    Key { name, of, meaning, here, takes: Takes::Words(1), absent: ["", ""], fate: Fate::Read }
}

const fn quiet(name: &'static str, of: Of, meaning: &'static str) -> Key {
    Key { fate: Fate::Quiet, ..key(name, of, meaning, "no effect on packets") }
}

impl Key {
    const fn without(self, hpcc: &'static str, conweave: &'static str) -> Key {
        Key { absent: [hpcc, conweave], ..self }
    }

    const fn takes(self, takes: Takes) -> Key {
        Key { takes, ..self }
    }

    const fn only(self, value: f64, under: &'static [u32]) -> Key {
        Key { fate: Fate::Only { value, under, consequence: self.here }, ..self }
    }
}

/// All keys.
pub const KEYS: &[Key] = &[
    key(
        "CC_MODE",
        Of::All,
        "Congestion control: 1 DCQCN (default), 3 HPCC, 7 TIMELY, 8 DCTCP, 10 HPCC-PINT (not in ConWeave's program); any other number: none.",
        "`nic.congestion`. In inet-tub's programs the command line selects PowerTCP, which ropewalk lacks: 3 is HPCC, with a warning.",
    )
    .without("1", "1"),
    key(
        "LB_MODE",
        Of::Conweave,
        "Load balancing: 0 ECMP (default), 2 DRILL, 3 CONGA, 6 LetFlow, 9 ConWeave. The program fixes the constants of CONGA (flowlets 100 us, DRE 50 us with 0.2, 3 bits, ageing 500 us) and of LetFlow (100 us).",
        "`scheme`: `ecmp` with the program's hash, `drill`, `conga`, `flowlet`, `conweave`, with these constants.",
    )
    .without("", "0"),
    key(
        "CONWEAVE_REPLY_TIMEOUT_EXTRA",
        Of::Conweave,
        "Time in us beyond the idle round trip of two ToRs (4 us on two tiers, up to 8 us on three) after which a reply is late. Default 4.",
        "`scheme.conweave.theta-reply`. With 4 it is unset, so every pair of ToRs has its own deadline; otherwise the longest round trip of two ToRs plus this time.",
    )
    .without("", "4"),
    key(
        "CONWEAVE_PATH_PAUSE_TIME",
        Of::Conweave,
        "Time in us for which a congested path is left out. Default 8; the authors' script sets 16.",
        "`scheme.conweave.theta-path-busy`",
    )
    .without("", "8"),
    key(
        "CONWEAVE_TX_EXPIRY_TIME",
        Of::Conweave,
        "Silence in us after which a flow starts a new epoch. Default 1000; the authors' script sets 300 on two tiers.",
        "`scheme.conweave.theta-inactive`",
    )
    .without("", "1000"),
    key(
        "CONWEAVE_DEFAULT_VOQ_WAITING_TIME",
        Of::Conweave,
        "Time in us after which a reorder queue is flushed without a history. Default 500; the authors' script sets 200 on two tiers.",
        "`scheme.conweave.resume-default`",
    )
    .without("", "500"),
    key(
        "CONWEAVE_EXTRA_VOQ_FLUSH_TIME",
        Of::Conweave,
        "Margin in us of that time with a history. Default 32; the authors' script sets 16 on two tiers.",
        "`scheme.conweave.resume-extra`",
    )
    .without("", "32"),
    key(
        "ENABLE_IRN",
        Of::Conweave,
        "1: IRN. At most the bandwidth-delay product is outstanding, by the name of the topology file (104000 or 156000 B). At the first gap, and at a timeout, the sender repeats all packets that are not reported as arrived. Timeout 320 us, 100 us with at most 3 packets outstanding, none with PFC. Default 0: go-back-N with a timeout of 4 ms.",
        "`nic.transport.irn` with `bdp-cap`, `on-gap` and `on-timeout`; `nic.timeout`. For topology files of other names, at which the program stops, the topology's largest one, with a warning.",
    )
    .without("", "0"),
    key(
        "LINK_DOWN",
        Of::All,
        "`t a b`: t us after 2 s (FLOWGEN_START_TIME in ConWeave's program) the link between nodes a and b fails for good, and all routes change at once. Default: t = 0, no failure.",
        "`[[failure]]`, and `routing.detection = \"0s\"`",
    )
    .takes(Takes::Words(3)),
    key(
        "BUFFER_SIZE",
        Of::All,
        "Buffer of a switch in MiB. Default 16; in ConWeave's program 0, which stands for 375 kB per port. HPCC's program sums headrooms in 32 bits, so a buffer that is smaller than them counts as about 4 GB. inet-tub's programs add the headrooms.",
        "`switch.buffer`, or the buffer of a role for switches that differ",
    )
    .without("16", "0"),
    key(
        "ENABLE_PFC",
        Of::Conweave,
        "0: no PFC, and one egress queue may take the free buffer. Default 1. HPCC's program always has PFC: a port pauses at 1/8 of the free buffer, doubled with each doubling of its rate over that of NICs; headroom 3 x rate x delay. In ConWeave's program: at 1/16.",
        "`switch.pfc`, with `alpha`, `alpha-at-rate` and `headroom`. ConWeave's headroom of 2 x rate x delay + 2 frames is ropewalk's default, which adds the time of a pause frame.",
    )
    .without("1", "1"),
    key("ENABLE_QCN", Of::All, "0: switches mark no packet. Default 1.", "`switch.ecn`").without("1", "1"),
    key(
        "KMIN_MAP",
        Of::All,
        "`n (rate kB)*n`: queue length up to which a port of that rate marks no packet; kB are 1000 B, and the packet that leaves does not count. The program stops if a rate of a switch's link is missing.",
        "`switch.ecn.at-rate`. If a rate is missing: the thresholds that `switch.ecn` has for it, with a warning.",
    )
    .takes(Takes::Pairs),
    key("KMAX_MAP", Of::All, "Queue length above which it marks every packet; as KMIN_MAP.", "`switch.ecn.at-rate`")
        .takes(Takes::Pairs),
    key("PMAX_MAP", Of::All, "Probability of a mark just below it; as KMIN_MAP.", "`switch.ecn.at-rate`")
        .takes(Takes::Pairs),
    key(
        "ACK_HIGH_PRIO",
        Of::Hpcc,
        "Not 0: a pause of data does not stop the ACKs of a NIC; in switches they still share the queue of data. Default 0. In the full long-haul artefact, whose topologies have loops, they also have a class of their own in switches. In ConWeave's program they always have one.",
        "`switch.classes`: \"one\" where ACKs share the queue of data, else \"strict\". With 1 in HPCC's program ACKs of a paused NIC wait here, with a warning.",
    )
    .without("0", ""),
    key(
        "HAS_WIN",
        Of::All,
        "1 (default): a window of the bandwidth-delay product bounds the bytes in flight. The full long-haul artefact ignores the key.",
        "`nic.window`. HPCC here always has its window, as with 1.",
    )
    .without("1", "1"),
    key(
        "GLOBAL_T",
        Of::All,
        "1 (default): window and base round trip are the largest of any two hosts; 0: those of the flow's hosts.",
        "`nic.window`, `nic.congestion.hpcc.base-rtt`",
    )
    .without("1", "1"),
    key(
        "VAR_WIN",
        Of::All,
        "1: the window shrinks with the rate. Default 0.",
        "`nic.window-scales-with-rate`. HPCC's window here always does, as with 1.",
    )
    .without("0", "0"),
    key(
        "ALPHA_RESUME_INTERVAL",
        Of::All,
        "DCQCN: time in us between two updates of alpha. Default 55.",
        "`nic.congestion.dcqcn-hpcc.alpha-timer`",
    )
    .without("55", "55"),
    key(
        "RATE_DECREASE_INTERVAL",
        Of::All,
        "DCQCN: least time in us between two cuts. Default 4.",
        "`nic.congestion.dcqcn-hpcc.rate-decrease-interval`",
    )
    .without("4", "4"),
    key(
        "RP_TIMER",
        Of::All,
        "DCQCN: time in us between two increases. Default 300 in ConWeave's program, 0 in others, where it never ends.",
        "`nic.congestion.dcqcn-hpcc.rate-increase-timer`",
    )
    .without("", "300"),
    key(
        "EWMA_GAIN",
        Of::All,
        "DCQCN and DCTCP: gain of alpha. Default 0, an integer 1/16, so alpha stays 1.",
        "`gain` of the control; without the key ropewalk's default",
    ),
    key(
        "FAST_RECOVERY_TIMES",
        Of::All,
        "DCQCN: increases towards the target before additive ones. Default 1 in ConWeave's program, 5 in others.",
        "`nic.congestion.dcqcn-hpcc.fast-recovery`",
    )
    .without("5", "1"),
    key(
        "CLAMP_TARGET_RATE",
        Of::All,
        "DCQCN: 1: every cut lowers the target. Default 0.",
        "`nic.congestion.dcqcn-hpcc.clamp-target-rate`",
    )
    .without("0", "0"),
    key(
        "RATE_AI",
        Of::All,
        "Additive increase of DCQCN, HPCC, TIMELY and HPCC-PINT. No default: the program stops.",
        "`additive-increase` of the control, not scaled by line rate",
    ),
    key(
        "RATE_HAI",
        Of::All,
        "Hyper increase of DCQCN and TIMELY. No default: the program stops.",
        "`hyper-increase` of the control, not scaled by line rate",
    ),
    key("MIN_RATE", Of::All, "Lower bound of a rate. Default 100Mb/s.", "`min-rate` of the control")
        .without("100Mb/s", "100Mb/s"),
    key(
        "DCTCP_RATE_AI",
        Of::All,
        "Additive increase of DCTCP. Default 1000Mb/s.",
        "`nic.congestion.dctcp.additive-increase`",
    )
    .without("1000Mb/s", "1000Mb/s"),
    key(
        "U_TARGET",
        Of::All,
        "HPCC and HPCC-PINT: utilisation at which they aim. Default 0.95.",
        "`target-utilization` of the control",
    )
    .without("0.95", "0.95"),
    key("MI_THRESH", Of::All, "HPCC and HPCC-PINT: additive steps in a row. Default 5.", "`max-stage` of the control")
        .without("5", "5"),
    key(
        "PINT_LOG_BASE",
        Of::Hpcc,
        "HPCC-PINT: base of the code. Default 1.05.",
        "`nic.congestion.pint.log-base`",
    )
    .without("1.05", ""),
    key(
        "PINT_PROB",
        Of::Hpcc,
        "HPCC-PINT: share of ACKs that the sender uses. Default 1.",
        "`nic.congestion.pint.probability`; here the switches draw, once per packet",
    )
    .without("1.0", ""),
    key(
        "FAST_REACT",
        Of::All,
        "HPCC: 1 (default): every ACK changes the rate; 0: one ACK per round trip.",
        "1 alone: HPCC changes its rate with every ACK",
    )
    .without("1", "1")
    .only(1.0, HPCC),
    key(
        "MULTI_RATE",
        Of::All,
        "HPCC: 1 (default): a rate for each hop, of which the least holds; 0: one rate.",
        "0 alone: HPCC has one rate, by the busiest hop",
    )
    .without("1", "1")
    .only(0.0, HPCC),
    key(
        "SAMPLE_FEEDBACK",
        Of::All,
        "HPCC: 1: only ACKs with a queue, or one per round trip, count. Default 0.",
        "0 alone: HPCC reads every ACK",
    )
    .without("0", "0")
    .only(0.0, HPCC),
    key(
        "INT_MULTI",
        Of::All,
        "HPCC: factor of the units of telemetry, 80 B of queue and 128 B sent. Default 1.",
        "1 alone: telemetry has units of 80 B and 128 B",
    )
    .without("1", "1")
    .only(1.0, HPCC),
    key(
        "RATE_BOUND",
        Of::All,
        "0: packets leave at line rate, and the window alone limits. Default 1.",
        "1 alone: packets are paced at the rate of the control",
    )
    .without("1", "1")
    .only(1.0, ANY),
    key(
        "L2_ACK_INTERVAL",
        Of::All,
        "Bytes after which a receiver starts to send ACKs, one per packet. Default 0: it sends them at the ends of chunks only, so a flow of another length never ends.",
        "1 alone: `nic.ack-every = 1`",
    ),
    key(
        "L2_BACK_TO_ZERO",
        Of::All,
        "1: after a loss the sender goes back to the start of a chunk of L2_CHUNK_SIZE; a flow of another length never ends. The file config_doc.txt has 0 and 1 swapped. Default 0: go-back-N.",
        "0 alone: the sender goes back to the lost packet",
    )
    .without("0", "0")
    .only(0.0, ANY),
    key(
        "ERROR_RATE_PER_LINK",
        Of::All,
        "Share of frames that a receiving device loses, ACKs among them; a link's own rate above 0 replaces it. Default 0.",
        "`links.loss`, and `links.lose-replies = true`; CNPs and pause frames are never lost here",
    )
    .without("0", "0"),
    key("PACKET_PAYLOAD_SIZE", Of::All, "Payload of a packet in bytes. Default 1000.", "`wire.payload`")
        .without("1000", "1000"),
    key("RANDOM_SEED", Of::Conweave, "Seed. Default 1.", "`seed`; the draws themselves differ").without("", "1"),
    key(
        "FLOWGEN_START_TIME",
        Of::Conweave,
        "Time in s from which LINK_DOWN counts, and at which monitors start. Default 2.",
        "the time of `[[failure]]`",
    )
    .without("", "2.0"),
    key(
        "FLOWGEN_STOP_TIME",
        Of::Conweave,
        "The run ends 10 s after this time in s, or with its last flow. Default 2.5.",
        "`stop.after`",
    )
    .without("", "2.5"),
    key(
        "SIMULATOR_STOP_TIME",
        Of::Hpcc,
        "The run ends at this time in s. Default 3.01.",
        "`stop.after`; above 1,000,000 s, as in SimAI.conf, the run ends with its last flow",
    )
    .without("3.01", ""),
    key(
        "ENABLE_THEMIS",
        Of::Prototype,
        "1: switches 48 and 49 have the long-haul system: a CNP for every marked packet, a second one after 10 us, and a further turn in the queue of the port for flows with CNPs.",
        "The role `external` of these switches, with `feedback.long-haul = { notification = \"prototype\", interval = \"10us\", reaction = \"prototype\" }`. A port with few other packets then stands still, as there, and flows may never finish: `reaction = \"off\"` leaves that out.",
    ),
    key(
        "TOPOLOGY_FILE",
        Of::All,
        "Name of the topology file. With ENABLE_IRN it selects the bandwidth-delay product.",
        "`nic.transport.irn.bdp-cap`, with ENABLE_IRN; the file itself is that of `--topology`",
    ),
    quiet("FLOW_FILE", Of::All, "Name of the flow file; `--flows` names it."),
    quiet("FLOW_INPUT_FILE", Of::Conweave, "File to which the flows are written."),
    quiet("L2_CHUNK_SIZE", Of::All, "Chunk of L2_BACK_TO_ZERO and L2_ACK_INTERVAL 0."),
    quiet("USE_DYNAMIC_PFC_THRESHOLD", Of::All, "Sets an attribute that nothing reads."),
    quiet("NIC_TOTAL_PAUSE_TIME", Of::Simai, "Stored, and never read."),
    quiet("PAUSE_TIME", Of::All, "Time in a pause frame; pauses last until a resume."),
    quiet("DATA_RATE", Of::All, "Not used: the topology has the rates."),
    quiet("LINK_DELAY", Of::All, "Not used: the topology has the delays."),
    quiet("LOAD", Of::Conweave, "Load of the flow generator, for the output."),
    quiet("SW_MONITORING_INTERVAL", Of::Conweave, "Interval of monitors."),
    quiet("ENABLE_TRACE", Of::Hpcc, "Trace of packets."),
    quiet("TRACE_FILE", Of::Hpcc, "Nodes to trace."),
    quiet("TRACE_OUTPUT_FILE", Of::Hpcc, "Output."),
    quiet("FCT_OUTPUT_FILE", Of::All, "Output."),
    quiet("PFC_OUTPUT_FILE", Of::All, "Output."),
    quiet("CNP_OUTPUT_FILE", Of::Conweave, "Output."),
    quiet("EST_ERROR_MON_FILE", Of::Conweave, "Output."),
    quiet("VOQ_MON_FILE", Of::Conweave, "Output."),
    quiet("VOQ_MON_DETAIL_FILE", Of::Conweave, "Output."),
    quiet("UPLINK_MON_FILE", Of::Conweave, "Output."),
    quiet("CONN_MON_FILE", Of::Conweave, "Output."),
    quiet("QLEN_MON_FILE", Of::All, "Output."),
    quiet("QLEN_MON_START", Of::All, "Start of a monitor."),
    quiet("QLEN_MON_END", Of::All, "End of a monitor."),
    quiet("BW_MON_FILE", Of::Simai, "Output."),
    quiet("RATE_MON_FILE", Of::Simai, "Output."),
    quiet("CNP_MON_FILE", Of::Simai, "Output."),
    quiet("MON_START", Of::Simai, "Start of monitors."),
    quiet("MON_END", Of::Simai, "End of monitors."),
    quiet("QP_MON_INTERVAL", Of::Simai, "Interval of a monitor."),
    quiet("QLEN_MON_INTERVAL", Of::Simai, "Interval of a monitor."),
    quiet("BW_MON_INTERVAL", Of::Simai, "Interval of a monitor."),
];

/// The key of this name.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}
