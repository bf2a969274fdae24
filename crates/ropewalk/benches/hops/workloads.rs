//! The named workloads of the bench, shared with `tests/stories/twins.rs`, which runs them scaled down on every engine.

/// A workload: a scenario whose length can be changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    /// Name.
    pub(crate) name: &'static str,
    /// Description in one line.
    pub(crate) what: &'static str,
    /// Scenario as TOML.
    pub(crate) scenario: fn() -> String,
    /// Key of every job that sets its amount of data.
    key: &'static str,
    /// Value of that key for measured runs, bytes.
    bytes: u64,
    /// Two values of that key for runs under valgrind, which is fifty times slower. Their difference is counted.
    counted: (u64, u64),
    /// Settings that make the workload small enough for the reference engine.
    small: &'static [&'static str],
    /// True if the workload runs on request only.
    pub(crate) on_demand: bool,
}

/// Length of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// The length for measured runs.
    Whole,
    /// The shorter length for runs under valgrind.
    Short,
    /// The longer length for runs under valgrind.
    Long,
    /// On a small fabric, a few dozen packets per message.
    Small,
    /// On the small fabric, with as many bytes as stated.
    SmallOf(u64),
}

/// A run that leaves out what repeats, with an error of 1 %.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fast {
    /// Name.
    pub(crate) name: &'static str,
    /// Description in one line.
    pub(crate) what: &'static str,
    /// Scenario as TOML.
    scenario: &'static str,
    /// Settings that replace those of the scenario.
    set: &'static [&'static str],
    /// True if it runs on request only.
    pub(crate) on_demand: bool,
}

impl Fast {
    pub(crate) fn resolved(&self) -> Result<scenario::Resolved, scenario::Finding> {
        let set: Vec<String> = self.set.iter().map(|&set| set.to_owned()).collect();
        scenario::Resolved::of(&scenario::Source::new(self.name, self.scenario.to_owned()), &set)
    }
}

/// A training step on 128 GPUs.
const GPT_13B: &str = include_str!("../../../../scenarios/gpt-13b.toml");

/// The fast runs of the bench.
pub(crate) const FAST: &[Fast] = &[
    Fast {
        name: "fast-rails",
        what: "`gpt-13b --fast`: training step on 128 GPUs, rails",
        scenario: GPT_13B,
        set: &[],
        on_demand: false,
    },
    Fast {
        name: "fast-per-server",
        what: "as `fast-rails`, with a ToR per two servers; Themis",
        scenario: GPT_13B,
        set: &[
            "topology.rails.kind=per-server",
            "topology.rails.servers-per-segment=2",
            "scheme={ themis = {} }",
        ],
        on_demand: false,
    },
    Fast {
        name: "fast-16384",
        what: "`--fast`: training step of Llama-3-405B on 16,384 GPUs (tensor 8, pipeline 16), rails",
        scenario: GPT_13B,
        set: &[
            "topology.rails.servers=2048",
            "topology.rails.servers-per-segment=128",
            "topology.rails.spines=128",
            "workload.0.training={ model = \"llama-3.1-405b\", parallel = { tp = 8, pp = 16 }, \
             batch = { global = 4096, sequence = 8192 }, compute = { flops = \"400TFLOPS\" } }",
        ],
        on_demand: true,
    },
];

impl Workload {
    /// The scenario with this length.
    pub(crate) fn checked(&self, length: Length) -> Result<scenario::Checked, scenario::Finding> {
        let text = (self.scenario)();
        let jobs = text.matches("[[workload]]").count();
        let of_jobs = |bytes: u64| (0..jobs).map(|i| format!("workload.{i}.{}={bytes}B", self.key)).collect();
        let small = || self.small.iter().map(|&set| set.to_owned());
        let set: Vec<String> = match length {
            Length::Whole => of_jobs(self.bytes),
            Length::Short => of_jobs(self.counted.0),
            Length::Long => of_jobs(self.counted.1),
            Length::Small => small().collect(),
            Length::SmallOf(bytes) => small().chain(of_jobs(bytes)).collect(),
        };
        scenario::check(&scenario::Source::new(self.name, text), &set)
    }
}

/// Eight GPUs per server; every two servers share a ToR, so that all traffic of data parallelism crosses spines.
fn training() -> String {
    "[server]\n[topology.rails]\nservers = 16\nkind = \"per-server\"\nservers-per-segment = 2\nspines = 16\n\
     [wire]\npayload = \"4KiB\"\n[scheme.themis]\n[[workload]]\n[workload.training]\n\
     model = { hidden = 2048, layers = 8, heads = 16, ffn = 8192, vocab = 32000 }\nparallel = { tp = 8 }\n\
     batch = { global = 32, sequence = 1024 }\nbucket = \"25MB\"\ncompute = { flops = \"400TFLOPS\" }\n"
        .to_owned()
}

/// 16 leaves x 16 spines x 16 hosts, 400 Gb/s, 1 us: the fabric of the Themis paper (section 5). The rest is
/// ropewalk's default, the full model: DCQCN, ECN at dequeue, a shared buffer with PFC armed, an ACK per packet,
/// and separate classes for CNPs and ACKs.
const LEAF_SPINE: &str = r#"
[topology.leaf-spine]
leaves = 16
spines = 16
hosts-per-leaf = 16
rate = "400Gbps"
delay = "1us"
[record]
flows = 0
links = 0
"#;

const SMALL_LEAF_SPINE: [&str; 3] =
    ["topology.leaf-spine.leaves=4", "topology.leaf-spine.spines=4", "topology.leaf-spine.hosts-per-leaf=4"];

const SMALL: &[&str] =
    &[SMALL_LEAF_SPINE[0], SMALL_LEAF_SPINE[1], SMALL_LEAF_SPINE[2], "workload.0.bytes=60kB"];

const SMALL_INCAST: &[&str] = &[
    SMALL_LEAF_SPINE[0],
    SMALL_LEAF_SPINE[1],
    SMALL_LEAF_SPINE[2],
    "workload.0.senders=15",
    "workload.0.bytes=200kB",
];

fn leaf_spine(rest: &str) -> String {
    format!("{LEAF_SPINE}{rest}")
}

/// A random permutation across racks, with these settings.
fn cross_rack(settings: &str) -> String {
    leaf_spine(&format!("{settings}[[workload]]\npermutation = {{ kind = \"cross-rack\" }}\n"))
}

/// Cores of a fat tree with radix `k` in three tiers, k^3 / 4 hosts.
fn fat_tree(k: usize) -> String {
    format!(
        r#"
[topology.fat-tree]
k = {k}
tiers = 3
rate = "400Gbps"
delay = "1us"
[record]
flows = 0
links = 0
[scheme.themis]
[[workload]]
permutation = {{ kind = "cross-rack" }}
"#
    )
}

/// A random permutation across racks of 320 hosts on the fabric of `dlbf.toml`: links of 100 ns and frames of 4 KiB.
fn short_links(settings: &str) -> String {
    format!(
        r#"
[topology.fat-tree]
k = 8
hosts-per-edge = 10
rate = "400Gbps"
delay = "100ns"
[wire]
payload = "4096B"
[switch]
buffer = "32MB"
[record]
flows = 0
links = 0
{settings}
[[workload]]
permutation = {{ kind = "cross-rack" }}
"#
    )
}

const SMALL_SHORT_LINKS: &[&str] =
    &["topology.fat-tree.k=4", "topology.fat-tree.hosts-per-edge=3", "workload.0.bytes=120kB"];

/// A random permutation of ports across racks, on the leaves and spines of [`LEAF_SPINE`]. Each host has a port to each of
/// two neighbouring leaves.
fn dual_homed(hosts: usize) -> String {
    let leaves = 16;
    let names = |what: &str| (0..leaves).map(|i| format!("\"{what}{i}\"")).collect::<Vec<_>>().join(", ");
    let mut links = String::new();
    for leaf in 0..leaves {
        for spine in 0..leaves {
            links += &format!("[\"leaf{leaf}\", \"spine{spine}\"],\n");
        }
    }
    for host in 0..hosts {
        for leaf in 0..2 {
            links += &format!("[\"host{host}\", \"leaf{}\"],\n", host * 2 % leaves + leaf);
        }
    }
    format!(
        r#"
[topology.links]
hosts = {hosts}
switches = [{}, {}]
rate = "400Gbps"
delay = "1us"
links = [
{links}]
[record]
flows = 0
links = 0
[scheme.themis]
[[workload]]
permutation = {{ kind = "cross-rack" }}
"#,
        names("leaf"),
        names("spine")
    )
}

/// A random permutation across racks of 128 hosts with Ultra Ethernet's NICs, whose window comes from delays and marks. The
/// fabric and the caps are those of uet-htsim's permutations at 400 Gb/s: one bandwidth-delay product per queue, beyond which
/// switches cut data.
fn trimmed() -> String {
    "[topology.leaf-spine]\nleaves = 8\nspines = 16\nhosts-per-leaf = 16\nrate = \"400Gbps\"\ndelay = \"500ns\"\n\
     [wire]\npayload = \"4096B\"\nheader = \"110B\"\nack = \"82B\"\n\
     [switch]\npfc = \"off\"\ncut = { victim = \"even\" }\nqueue-cap = \"217kB\"\n\
     ecn = { kmin = \"11kB\", kmax = \"44kB\", pmax = 1.0 }\n\
     classes = [{ kinds = [\"ack\", \"nack\", \"cnp\", \"control\", \"trimmed\"] }, { kinds = [\"data\"] }]\n\
     [nic]\ntimeout = { fixed = \"50us\" }\n[nic.transport.uec]\n[nic.congestion.nscc]\n[scheme.entropy-mixed]\n\
     [record]\nflows = 0\nlinks = 0\n[[workload]]\npermutation = { kind = \"cross-rack\" }\n"
        .to_owned()
}

/// Nine simultaneous permutations with at most three packets in flight per queue pair: 27 packets in a round trip of
/// 8.2 us are 10 % of 400 Gb/s. They start one after the other within a round trip, so that the load is even.
fn sparse() -> String {
    let jobs = (0..9u64).map(|i| {
        format!("[[workload]]\nstart = \"{}ns\"\npermutation = {{ kind = \"cross-rack\" }}\n", i * 910)
    });
    let head = leaf_spine("[nic.transport.nic-sr]\nmax-outstanding = 3\n[scheme.themis]\n");
    head + &jobs.collect::<String>()
}

/// All workloads.
pub(crate) const ALL: &[Workload] = &[
    Workload {
        name: "permutation",
        what: "256 hosts; each sends to a host of another rack, drawn at random; Themis",
        scenario: || cross_rack("[scheme.themis]\n"),
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL,
        on_demand: false,
    },
    Workload {
        name: "short-inside",
        what: "as `permutation`, with links of 100 ns between hosts and leaves",
        scenario: || {
            let short = LEAF_SPINE.replace("delay = \"1us\"", "delay = \"100ns\"\nuplink-delay = \"1us\"");
            format!("{short}[scheme.themis]\n[[workload]]\npermutation = {{ kind = \"cross-rack\" }}\n")
        },
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL,
        on_demand: false,
    },
    Workload {
        name: "short-links",
        what: "320 hosts on three tiers (k = 8, 10 hosts per ToR), links of 100 ns, random permutation across racks; ECMP",
        scenario: || short_links("[scheme.ecmp]"),
        key: "bytes",
        bytes: 20_000_000,
        counted: (1_000_000, 2_000_000),
        small: SMALL_SHORT_LINKS,
        on_demand: false,
    },
    Workload {
        name: "short-links-dlbf",
        what: "as `short-links`, with DLBF and its NIC",
        scenario: || short_links("[nic.transport.sr-sack]\n[scheme.dlbf]"),
        key: "bytes",
        bytes: 20_000_000,
        counted: (1_000_000, 2_000_000),
        small: SMALL_SHORT_LINKS,
        on_demand: true,
    },
    Workload {
        name: "two-ports",
        what: "as `permutation`, with 128 hosts that have two ports each, to two leaves",
        scenario: || dual_homed(128),
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: &["workload.0.bytes=10kB"],
        on_demand: false,
    },
    Workload {
        name: "permutation-shift",
        what: "256 hosts; each sends to its counterpart in the next rack; Themis",
        scenario: || {
            leaf_spine("[scheme.themis]\n[[workload]]\npermutation = { kind = \"shift\", shift = 16 }\n")
        },
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: &[
            SMALL_LEAF_SPINE[0],
            SMALL_LEAF_SPINE[1],
            SMALL_LEAF_SPINE[2],
            "workload.0.shift=4",
            "workload.0.bytes=60kB",
        ],
        on_demand: false,
    },
    Workload {
        name: "permutation-one-class",
        what: "as `permutation`, with one class for all packets and marks at enqueue",
        scenario: || {
            leaf_spine(
                "[switch]\nclasses = \"one\"\necn = { mark = \"enqueue\" }\n[scheme.themis]\n\
                 [[workload]]\npermutation = { kind = \"cross-rack\" }\n",
            )
        },
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL,
        on_demand: false,
    },
    Workload {
        name: "all-to-all",
        what: "256 hosts; each sends to all others, with 255 queue pairs per host; Themis",
        scenario: || {
            leaf_spine(
                "[scheme.themis]\n[[workload]]\nall-to-all = { per-pair = \"1B\", groups = \"all\" }\n",
            )
        },
        key: "per-pair",
        bytes: 100_000,
        counted: (4_000, 8_000),
        small: &[SMALL_LEAF_SPINE[0], SMALL_LEAF_SPINE[1], SMALL_LEAF_SPINE[2], "workload.0.per-pair=10kB"],
        on_demand: false,
    },
    Workload {
        name: "fat-tree-1024",
        what: "1024 hosts on three tiers (k = 16), random permutation across racks; Themis",
        scenario: || fat_tree(16),
        key: "bytes",
        bytes: 4_000_000,
        counted: (100_000, 200_000),
        small: &["topology.fat-tree.k=4", "workload.0.bytes=60kB"],
        on_demand: false,
    },
    Workload {
        name: "fat-tree-8192",
        what: "as `fat-tree-1024`, with 8192 hosts (k = 32)",
        scenario: || fat_tree(32),
        key: "bytes",
        bytes: 1_000_000,
        counted: (25_000, 50_000),
        small: &["topology.fat-tree.k=4", "workload.0.bytes=40kB", "seed=2"],
        on_demand: false,
    },
    Workload {
        name: "fat-tree-65536",
        what: "as `fat-tree-1024`, with 65,536 hosts (k = 64)",
        scenario: || fat_tree(64),
        key: "bytes",
        bytes: 100_000,
        counted: (10_000, 20_000),
        small: &["topology.fat-tree.k=4", "workload.0.bytes=40kB", "seed=3"],
        on_demand: true,
    },
    Workload {
        name: "fat-tree-128000",
        what: "as `fat-tree-1024`, with 128,000 hosts (k = 80), sprayed over the 40 uplinks of each ToR",
        // PathMaps need powers of two.
        scenario: || fat_tree(80).replace("[scheme.themis]", "[scheme.themis]\npath-map = false"),
        key: "bytes",
        bytes: 100_000,
        counted: (10_000, 20_000),
        small: &["topology.fat-tree.k=6", "workload.0.bytes=20kB", "seed=4"],
        on_demand: true,
    },
    Workload {
        name: "incast",
        what: "255 hosts send to one host, with pauses and marks; ECMP, 16 MB buffers",
        scenario: || {
            leaf_spine(
                "[switch]\nbuffer = \"16MB\"\n[scheme.ecmp]\n\
                 [[workload]]\nincast = { receiver = \"host0\", senders = 255 }\n",
            )
        },
        key: "bytes",
        bytes: 1_000_000,
        // The whole run is measured, because an incast has no steady state.
        counted: (1_000, 1_000_000),
        small: &[
            SMALL_LEAF_SPINE[0],
            SMALL_LEAF_SPINE[1],
            SMALL_LEAF_SPINE[2],
            "switch.buffer=4MB",
            "workload.0.senders=15",
            "workload.0.bytes=600kB",
        ],
        on_demand: false,
    },
    Workload {
        name: "sparse",
        what: "10 % load: nine permutations, at most three packets outstanding per queue pair; Themis",
        scenario: sparse,
        key: "bytes",
        bytes: 1_600_000,
        counted: (40_000, 80_000),
        small: &[SMALL_LEAF_SPINE[0], SMALL_LEAF_SPINE[1], SMALL_LEAF_SPINE[2], "workload.0.bytes=20kB"],
        on_demand: false,
    },
    Workload {
        name: "themis-fig5",
        what: "ring all-reduce of 40 MB in 16 groups; Themis",
        scenario: || leaf_spine("[scheme.themis]\n[[workload]]\nall-reduce = {}\n"),
        key: "bytes",
        bytes: 40_000_000,
        counted: (1_000_000, 2_000_000),
        small: SMALL,
        on_demand: false,
    },
    Workload {
        name: "themis-fig5-full",
        what: "as `themis-fig5`, at the paper's 300 MB",
        scenario: || leaf_spine("[scheme.themis]\n[[workload]]\nall-reduce = {}\n"),
        key: "bytes",
        bytes: 300_000_000,
        counted: (1_000_000, 2_000_000),
        small: SMALL,
        on_demand: true,
    },
    Workload {
        name: "training",
        what: "training step of a small model on 16 servers of 8 GPUs with NVLink, a ToR per two servers; Themis",
        scenario: training,
        key: "gradient",
        bytes: 4,
        counted: (1, 5),
        small: &[
            "server.gpus=2",
            "topology.rails.servers=4",
            "topology.rails.spines=2",
            "workload.0.training.model={hidden=64,layers=2,heads=4,ffn=256,vocab=100}",
            "workload.0.training.parallel.tp=2",
            "workload.0.training.batch.global=8",
        ],
        on_demand: false,
    },
    Workload {
        name: "ecmp",
        what: "as `permutation`, with ECMP",
        scenario: || cross_rack("[scheme.ecmp]\n"),
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL,
        on_demand: true,
    },
    Workload {
        name: "drill",
        what: "as `permutation`, with DRILL, which reads queues for every data packet",
        scenario: || cross_rack("[scheme.drill]\n"),
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL,
        on_demand: true,
    },
    Workload {
        name: "conga",
        what: "as `permutation`, with CONGA",
        scenario: || cross_rack("[scheme.conga]\n"),
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL,
        on_demand: true,
    },
    Workload {
        name: "conweave",
        what: "as `permutation`, with ConWeave",
        scenario: || cross_rack("[scheme.conweave]\n"),
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL,
        on_demand: true,
    },
    Workload {
        name: "flowcut",
        what: "as `permutation`, with Flowcut in all switches",
        scenario: || cross_rack("[scheme.flowcut]\ndeployment = \"full\"\n"),
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL,
        on_demand: true,
    },
    Workload {
        name: "trim-permutation",
        what: "128 hosts on 8 leaves and 16 spines, links of 500 ns, random permutation across racks; Ultra Ethernet's NICs \
               (NSCC), and switches that cut data",
        scenario: trimmed,
        key: "bytes",
        bytes: 32_000_000,
        counted: (2_000_000, 4_000_000),
        small: &[
            SMALL_LEAF_SPINE[0],
            SMALL_LEAF_SPINE[1],
            SMALL_LEAF_SPINE[2],
            "switch.queue-cap=20kB",
            "workload.0.bytes=200kB",
        ],
        on_demand: false,
    },
    Workload {
        name: "cut",
        what: "16 hosts send to one host, and switches without PFC cut data; random spraying",
        scenario: || {
            leaf_spine(
                "[switch]\npfc = \"off\"\nqueue-cap = \"120kB\"\ncut = { victim = \"even\" }\n[scheme.rps]\n\
                 [[workload]]\nincast = { receiver = \"host0\", senders = 16 }\n",
            )
        },
        key: "bytes",
        bytes: 10_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL_INCAST,
        on_demand: true,
    },
    Workload {
        name: "weighted",
        what: "as `cut`, with cut packets and data in weighted classes",
        scenario: || {
            leaf_spine(
                "[switch]\npfc = \"off\"\nqueue-cap = \"120kB\"\ncut = \"on\"\n\
                 classes = [{ kinds = [\"cnp\", \"ack\", \"nack\"] }, \
                 { kinds = [\"trimmed\"], weight = 1, cap = \"20kB\" }, { kinds = [\"data\"], weight = 3 }]\n\
                 [scheme.rps]\n[[workload]]\nincast = { receiver = \"host0\", senders = 16 }\n",
            )
        },
        key: "bytes",
        bytes: 10_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL_INCAST,
        on_demand: true,
    },
    Workload {
        name: "hpcc",
        what: "as `ecmp`, with HPCC and telemetry",
        scenario: || cross_rack("[scheme.ecmp]\n[nic.congestion.hpcc]\n"),
        key: "bytes",
        bytes: 20_000_000,
        counted: (500_000, 1_000_000),
        small: SMALL,
        on_demand: true,
    },
];
