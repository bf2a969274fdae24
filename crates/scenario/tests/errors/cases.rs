//! Mistakes in a scenario's text, by topic: the text and the error that names its position.
//!
//! In a text `H` stands for four lines of a fabric, and `J` at the end for two lines of a job.

/// A text with a mistake, and the error that it gives: `file:line:column: message`.
pub(crate) type Case = (&'static str, &'static str);

/// The file as a whole: syntax, unknown keys, the choice of a topology.
pub(crate) const FILES: &[Case] = &[
    ("seed = ", "s.toml:1:8: string values must be quoted, expected literal string"),
    ("", "s.toml:1:1: the key `topology` is missing"),
    ("[topology]\nJ", "s.toml:1:1: expected exactly one `topology`, found none"),
    (
        "[topology.leaf-spine]\n[topology.links]\nJ",
        "s.toml:1:2: expected exactly one `topology`, found several",
    ),
    ("[topology.leafspine]\nJ", "s.toml:1:11: unknown name `leafspine`; did you mean `leaf-spine`?"),
    ("sed = 1\nHJ", "s.toml:1:1: unknown key `sed`; did you mean `seed`?"),
];

/// `[topology.leaf-spine]`, and presets of `[topology.rails]`.
pub(crate) const LEAF_SPINES: &[Case] = &[
    (
        "[topology.rails]\npreset = \"spectrumx\"\nJ",
        "s.toml:2:10: unknown name `spectrumx`; did you mean `spectrum-x`?",
    ),
    ("[topology.leaf-spine]\nleafs = 4\nJ", "s.toml:2:1: unknown key `leafs`; did you mean `leaves`?"),
    ("[topology.leaf-spine]\nspines = 0\nJ", "s.toml:2:10: a leaf-spine fabric needs at least 1 spine"),
    (
        "[topology.leaf-spine]\nrate = 400\nJ",
        "s.toml:2:8: expected a rate with a unit such as \"400Gbps\", found the bare number 400",
    ),
    (
        "[topology.leaf-spine]\nrate = \"400Gbs\"\nJ",
        "s.toml:2:8: unknown rate unit \"Gbs\"; did you mean \"Gbps\"?",
    ),
    (
        "[topology.leaf-spine]\nrate = \"1Mbps\"\nJ",
        "s.toml:2:8: expected a rate of at least 100Mbps, found 1Mbps",
    ),
    ("[topology.leaf-spine]\ndelay = \"0us\"\nJ", "s.toml:2:9: a link needs a delay above 0"),
    (
        "[topology.leaf-spine]\nleaves = -1\nJ",
        "s.toml:2:10: expected a whole number that is not negative, found -1",
    ),
    (
        "[topology.leaf-spine]\nleaves = 2000\nJ",
        "s.toml:2:10: a spine needs 2000 ports; a switch has at most 1023",
    ),
    (
        "[topology.leaf-spine]\nleaves = 999999999999999\nJ",
        "s.toml:2:10: a spine needs 999999999999999 ports; a switch has at most 1023",
    ),
];

/// `[topology.fat-tree]` and the roles of its switches.
pub(crate) const FAT_TREES: &[Case] = &[
    (
        "[topology.fat-tree]\nk = 7\nJ",
        "s.toml:2:5: expected an even number of ports, half of them down and half up; found 7",
    ),
    (
        "[topology.fat-tree]\nk = 0\nJ",
        "s.toml:2:5: expected an even number of ports, half of them down and half up; found 0",
    ),
    ("[topology.fat-tree]\ntiers = 4\nJ", "s.toml:2:9: expected 2 or 3 tiers, found 4"),
    (
        "[topology.fat-tree]\nk = 162\nJ",
        "s.toml:2:5: expected at most 1048576 hosts, found 1062882 (81 on each of 13122 edge switches)",
    ),
    (
        "[topology.fat-tree]\nk = 64\nhosts-per-edge = 600\nJ",
        "s.toml:3:18: expected at most 1048576 hosts, found 1228800 (600 on each of 2048 edge switches)",
    ),
    (
        "[topology.fat-tree]\nk = 1024\nJ",
        "s.toml:2:5: a switch of the role `core` needs 1024 ports; a switch has at most 1023",
    ),
    (
        "[topology.fat-tree]\nk = 999999999999998\nJ",
        "s.toml:2:5: a switch of the role `core` needs 999999999999998 ports; a switch has at most 1023",
    ),
    (
        "[topology.fat-tree]\nhosts-per-edge = 1020\nJ",
        "s.toml:2:18: a switch of the role `edge` needs 1024 ports; a switch has at most 1023",
    ),
    (
        "[topology.fat-tree]\nedge-oversubscription = \"8:1\"\nJ",
        "s.toml:2:25: expected a whole number of uplinks of 400Gbps for 4 hosts of 400Gbps at 8:1, found none",
    ),
    (
        "[topology.fat-tree]\naggregation-oversubscription = \"3:1\"\nJ",
        "s.toml:2:32: expected a whole number of uplinks of 400Gbps for 4 edge switches of 400Gbps at 3:1, found between 1 and 2",
    ),
    (
        "[topology.fat-tree]\nedge-oversubscription = \"2\"\nJ",
        "s.toml:2:25: expected an oversubscription such as \"2:1\", found \"2\"",
    ),
    (
        "[topology.fat-tree]\nedge-oversubscription = 2\nJ",
        "s.toml:2:25: expected an oversubscription such as \"2:1\", found 2",
    ),
    (
        "[topology.fat-tree]\ntiers = 2\naggregation-rate = \"100Gbps\"\nJ",
        "s.toml:3:20: a fat tree of 2 tiers has no aggregation switches; use the `core-` keys",
    ),
    (
        "[topology.fat-tree]\ncore-dleay = \"1us\"\nJ",
        "s.toml:2:1: unknown key `core-dleay`; did you mean `core-delay`?",
    ),
    ("[topology.fat-tree]\ncore-delay = \"0us\"\nJ", "s.toml:2:14: a link needs a delay above 0"),
    (
        "[topology.fat-tree]\n[switch-role.agregation]\nJ",
        "s.toml:2:14: no switch has the role `agregation`; did you mean `aggregation`?",
    ),
];

/// `[topology.dragonfly]`.
pub(crate) const DRAGONFLIES: &[Case] = &[
    ("[topology.dragonfly]\ngroups = 0\nJ", "s.toml:2:10: a Dragonfly needs at least 1 group"),
    (
        "[topology.dragonfly]\nlinks-per-pair = 0\nJ",
        "s.toml:2:18: a Dragonfly needs at least 1 link between every two groups",
    ),
    (
        "[topology.dragonfly]\nrouters = 4\nJ",
        "s.toml:2:1: unknown key `routers`; did you mean `routers-per-group`?",
    ),
    (
        "[topology.dragonfly]\nports = 32\nJ",
        "s.toml:2:9: a router needs 34 ports: 16 to hosts, 15 inside its group and 3 to other groups (48 links leave a group of 16 routers); it has 32",
    ),
    (
        "[topology.dragonfly]\nlinks-per-pair = 9000\nJ",
        "s.toml:2:18: a router needs 1719 ports: 16 to hosts, 15 inside its group and 1688 to other groups (27000 links leave a group of 16 routers); a switch has at most 1023",
    ),
    (
        "[topology.dragonfly]\ngroups = 4000\nhosts-per-router = 20\nJ",
        "s.toml:2:10: expected at most 1048576 hosts, found 1280000",
    ),
    ("[topology.dragonfly]\nchannels = 4\nJ", "s.toml:2:12: expected 1 to 3 channels, found 4"),
    (
        "[topology.dragonfly]\nminimal = \"shortest\"\nJ",
        "s.toml:2:11: unknown name `shortest`; expected one of `fewest-hops`, `any-link`",
    ),
];

/// `[topology.links]`.
pub(crate) const LINKS: &[Case] = &[
    (
        "[topology.links]\nhosts = 2\nlinks = [[\"host0\", \"host2\"]]\nJ",
        "s.toml:3:10: there is no node `host2`; did you mean `host0`?",
    ),
    (
        "[topology.links]\nhosts = 2\nlinks = [{ from = \"host0\", to = \"host2\" }]\nJ",
        "s.toml:3:33: there is no node `host2`; did you mean `host0`?",
    ),
    (
        "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\nlinks = [[\"a\", \"s\"]]\nJ",
        "s.toml:2:15: host b has no link",
    ),
];

/// `[[failure]]` and `[routing]`.
pub(crate) const FAILURES: &[Case] = &[
    (
        "H[[failure]]\nlinks = [[\"leaf0\", \"spine9\"]]\nJ",
        "s.toml:6:20: there is no node `spine9`; did you mean `spine0`?",
    ),
    ("H[[failure]]\nlinks = [[\"leaf0\", \"leaf1\"]]\nJ", "s.toml:6:20: no link joins `leaf0` and `leaf1`"),
    (
        "H[[failure]]\nlinks = [[\"host0\", \"leaf1\"]]\nJ",
        "s.toml:6:20: no link joins `host0` and `leaf1`; did you mean `leaf0`?",
    ),
    (
        "H[[failure]]\nswitch = \"sbine1\"\nJ",
        "s.toml:6:10: there is no node `sbine1`; did you mean `spine1`?",
    ),
    ("H[[failure]]\nswitch = \"host*\"\nJ", "s.toml:6:10: `host0` is a host; name its link in `links`"),
    (
        "H[[failure]]\nat = \"1us\"\nJ",
        "s.toml:5:1: no link fails; set `links`, `switch`, `random` or `storm`",
    ),
    (
        "H[[failure]]\nrandom = 1\nat = \"3us\"\nuntil = \"2us\"\nJ",
        "s.toml:8:9: the failure ends before it begins at 3us",
    ),
    ("H[[failure]]\nrandom = 9\nJ", "s.toml:6:10: expected at most 8 links, found 9"),
    (
        "H[[failure]]\nrandom = 1.5\nJ",
        "s.toml:6:10: expected a share above 0 and below 1 such as 0.01, or a whole number of links, found 1.5",
    ),
    (
        "H[[failure]]\nrandom = 1\nrate = 1.5\nJ",
        "s.toml:7:8: expected a rate such as \"20Gbps\", or a share above 0 and at most 1 such as 0.1, found 1.5",
    ),
    (
        "H[[failure]]\nrandom = 1\nrate = 0.0001\nJ",
        "s.toml:7:8: expected a rate of at least 100Mbps, found 40Mbps",
    ),
    (
        "H[[failure]]\nrandom = 1\nrate = 0.1\ndown = true\nJ",
        "s.toml:8:8: set either `down`, or `rate` and `loss`; a link that is down has no rate",
    ),
    (
        "H[[failure]]\nrandom = 1\ndown = false\nJ",
        "s.toml:7:8: no link fails; set `rate` to slow links down, or `loss` to let them lose packets",
    ),
    (
        "H[[failure]]\nrandom = 1\nloss = 0.01\ndown = true\nJ",
        "s.toml:8:8: set either `down`, or `rate` and `loss`; a link that is down has no rate",
    ),
    (
        "H[[failure]]\nrandom = 1\nloss = 1.5\nJ",
        "s.toml:7:8: expected a probability between 0 and 1, found 1.5",
    ),
    (
        "H[routing]\ndetection = \"nevr\"\nJ",
        "s.toml:6:13: expected a time such as \"1ms\" or a name, found \"nevr\"; did you mean `never`?",
    ),
    (
        "H[routing]\ndetection = { local = \"bfd-bpg\" }\nJ",
        "s.toml:6:23: expected a time such as \"1ms\" or a name, found \"bfd-bpg\"; did you mean `bfd-bgp`?",
    ),
    ("H[routing]\ndetektion = \"1us\"\nJ", "s.toml:6:1: unknown key `detektion`; did you mean `detection`?"),
];

/// `split` of workloads.
pub(crate) const SPLITS: &[Case] = &[
    (
        "H[[workload]]\nsplit = { subflows = 0 }\npermutation = {}",
        "s.toml:6:22: expected \"balanced\" or a number of subflows from 1 to 4096, found 0",
    ),
    (
        "H[[workload]]\nsplit = { subflows = \"even\" }\npermutation = {}",
        "s.toml:6:22: expected \"balanced\" or a number of subflows from 1 to 4096, found \"even\"",
    ),
    (
        "H[[workload]]\nsplit = { paths = \"pined\" }\npermutation = {}",
        "s.toml:6:19: unknown name `pined`; did you mean `pinned`?",
    ),
];

/// `[links]` and `[[links.lose]]`.
pub(crate) const LOSSES: &[Case] = &[
    ("H[links]\nloss = 2\nJ", "s.toml:6:8: expected a probability between 0 and 1, found 2"),
    (
        "H[[links.lose]]\nfrom = \"hots0\"\nto = \"host1\"\npsns = [0]\nJ",
        "s.toml:6:8: there is no node `hots0`; did you mean `host0`?",
    ),
    (
        "H[[links.lose]]\nfrom = \"leaf0\"\nto = \"host1\"\npsns = [0]\nJ",
        "s.toml:6:8: expected a host; `leaf0` is a switch",
    ),
    (
        "H[[links.lose]]\nfrom = \"host0\"\nto = \"host1\"\npsns = []\nJ",
        "s.toml:8:8: expected at least 1 PSN, found none",
    ),
    (
        "H[[links.lose]]\nfrom = \"host0\"\nto = \"host1\"\npsns = [1, 16777216]\nJ",
        "s.toml:8:12: expected a PSN of 24 bits, at most 16777215; found 16777216",
    ),
    (
        "H[[links.lose]]\nfrom = \"host0\"\nto = \"host0\"\npsns = [1]\nJ",
        "s.toml:7:6: no job sends from `host0` to `host0`",
    ),
    (
        "H[[links.lose]]\nfrom = \"host0\"\nto = \"host1\"\nkind = \"cnp\"\npsns = [1]\nJ",
        "s.toml:8:8: unknown name `cnp`; expected one of `data`, `ack`, `nack`",
    ),
];

/// `[switch]` and `[switch-role.NAME]`.
pub(crate) const SWITCHES: &[Case] = &[
    (
        "H[switch]\nbuffer = \"10kB\"\nJ",
        "s.toml:6:10: the headrooms of leaf0's 4 ports take 412kB of its buffer of 10kB; no shared buffer is left",
    ),
    (
        "H[switch]\ncell = \"0B\"\nJ",
        "s.toml:6:8: expected a cell from 1 to 65536 B, such as \"254B\", found 0B",
    ),
    ("H[switch]\nslices = 90\nJ", "s.toml:6:10: expected 1 to 64 slices, found 90"),
    (
        "H[switch]\ndscp-map = [{ dscp = [3], losless = true }, {}]\nJ",
        "s.toml:6:12: expected \"sonic\", or a list of queues such as `{ dscp = [26], lossless = true }`",
    ),
    ("H[switch]\npfc = 1\nJ", "s.toml:6:7: expected \"on\", \"off\" or a table of settings, found 1"),
    ("H[switch.ecn]\nkmim = \"1kB\"\nJ", "s.toml:6:1: unknown key `kmim`; did you mean `kmin`?"),
    ("H[switch]\necn = { kmin = \"1MB\", kmax = \"1kB\" }\nJ", "s.toml:6:16: kmin (4MB) is above kmax (4kB)"),
    ("H[switch]\nclasses = \"strickt\"\nJ", "s.toml:6:11: unknown name `strickt`; did you mean `strict`?"),
    (
        "H[switch]\nclasses = 3\nJ",
        "s.toml:6:11: expected \"strict\", \"one\", \"cnp-first\" or an array of classes, found 3",
    ),
    (
        "H[switch]\nclasses = [\n  { kinds = [\"cnp\"] },\n  { kinds = [\"data\", \"akc\"] },\n]\nJ",
        "s.toml:8:22: unknown name `akc`; did you mean `ack`?",
    ),
    (
        "H[switch]\nclasses = [\n  { kinds = [\"data\"], waight = 3 },\n]\nJ",
        "s.toml:7:23: unknown key `waight`; did you mean `weight`?",
    ),
    (
        "H[[switch.classes]]\nkinds = [\"ack\"]\n[[switch.classes]]\nkinds = [\"data\"]\nweight = 0\nJ",
        "s.toml:9:10: expected a weight from 1 to 1000",
    ),
    (
        "H[switch]\nclasses = [{ kinds = [\"ack\", \"data\"] }, { kinds = [\"ack\"] }]\nJ",
        "s.toml:6:52: a class has this kind already; with `of` a class takes it for some flows alone",
    ),
    (
        "H[switch]\nclasses = [{ kinds = [\"data\"] }, { kinds = [\"data\"], of = [\"backgroud\"] }]\nJ",
        "s.toml:6:60: there is no traffic class `backgroud`; did you mean `background`?",
    ),
    (
        "H[switch]\nclasses = [{ kinds = [\"data\"], of = [\"background\"] }]\nJ",
        "s.toml:6:11: no class without `of` has the kind \"data\"",
    ),
    (
        "H[switch]\nclasses = [{ kinds = [\"data\"] }, { kinds = [\"data\"], of = [\"background\"] }, { kinds = [\"ack\", \"data\"], of = [\"background\"] }]\nJ",
        "s.toml:6:95: a class has this kind of `background` already",
    ),
    (
        "H[switch]\nclasses = [{ kinds = [\"data\"] }, { kinds = [\"signal\"], of = [\"background\"] }]\nJ",
        "s.toml:6:45: signals of a scheme belong to no traffic class",
    ),
    (
        "H[switch]\nclasses = [{ kinds = [\"data\"], ecn = \"off\" }]\nJ",
        "s.toml:6:38: this key needs `of`; `switch.ecn` is for all other flows",
    ),
    (
        "H[switch]\nclasses = [{ kinds = [\"data\"] }, { kinds = [\"ack\"], of = [\"background\"], pfc = \"off\" }]\nJ",
        "s.toml:6:80: this key needs the kind \"data\" in its class",
    ),
    (
        "H[switch]\nclasses = [{ kinds = [\"data\"] }, { kinds = [\"data\"], of = [\"background\"], cut = \"on\" }]\nJ",
        "s.toml:6:81: with PFC no data is cut; set `pfc = \"off\"`",
    ),
    (
        "H[switch]\nclasses = [{ kinds = [\"data\"] }, { kinds = [\"data\"], of = [\"background\"], ecn = { kmin = \"1MB\", kmax = \"1kB\" } }]\nJ",
        "s.toml:6:90: kmin (4MB) is above kmax (4kB)",
    ),
    ("H[switch]\nclasses = [{ kinds = [\"ack\"] }]\nJ", "s.toml:6:11: no class has the kind \"data\""),
    (
        "H[switch]\nclasses = [{ kinds = [\"data\"], cap = \"1kB\" }]\nJ",
        "s.toml:6:38: a cap of 1kB cannot hold one frame of 1500 B",
    ),
    ("H[switch]\ncut = \"on\"\nJ", "s.toml:6:7: with PFC no data is cut; set `pfc = \"off\"`"),
    (
        "H[switch]\npfc = \"off\"\ncut = { frame = \"9kB\" }\nJ",
        "s.toml:7:17: expected a frame from 57 to 1500 B, found 9kB",
    ),
    (
        "H[switch]\npfc = \"off\"\n[switch.cut]\nvictim = \"evn\"\nJ",
        "s.toml:8:10: unknown name `evn`; did you mean `even`?",
    ),
    (
        "H[switch]\npfc = \"off\"\n[switch-role.leaf]\nqueue-cap-to-hosts = \"9kB\"\nJ",
        "s.toml:8:22: this cap on queues needs `queue-cap`",
    ),
    (
        "H[switch]\npfc = \"off\"\nqueue-cap-at-rate = [{ rate = \"100Gbps\", cap = \"9kB\" }]\nJ",
        "s.toml:7:48: this cap on queues needs `queue-cap`",
    ),
    (
        "H[switch]\npfc = \"off\"\nqueue-cap = \"9kB\"\nqueue-cap-at-rate = [{ rate = \"100Gbps\", cap = \"1kB\" }]\nJ",
        "s.toml:8:48: a cap of 1kB cannot hold one frame of 1500 B",
    ),
    (
        "H[switch]\npfc = \"off\"\nqueue-cap = \"1kB\"\nJ",
        "s.toml:7:13: a cap of 1kB cannot hold one frame of 1500 B",
    ),
    (
        "H[switch]\nqueue-cap = \"90kB\"\nJ",
        "s.toml:6:13: with PFC a switch pauses senders and ignores caps on queues; set `pfc = \"off\"`",
    ),
    (
        "H[switch]\npfc = \"off\"\nqueue-cap = \"90kB\"\n[switch-role.leaf]\npfc = \"on\"\nqueue-cap-to-hosts = \"9kB\"\nJ",
        "s.toml:7:13: with PFC a switch pauses senders and ignores caps on queues; set `pfc = \"off\"`",
    ),
    (
        "H[switch-role.leaf]\nqueue-cap-to-hosts = \"9kB\"\nJ",
        "s.toml:6:22: with PFC a switch pauses senders and ignores caps on queues; set `pfc = \"off\"`",
    ),
    ("H[switch-role.leef]\nJ", "s.toml:5:14: no switch has the role `leef`; did you mean `leaf`?"),
    (
        "H[switch-role.leaf]\nbuffer = \"1kB\"\nJ",
        "s.toml:6:10: a buffer of 1kB cannot hold one frame of 1500 B",
    ),
];

/// `[nic]`, its transports and congestion controls.
pub(crate) const NICS: &[Case] = &[
    (
        "H[nic]\non-nack = \"as-cnp\"\n[nic.transport.adaptive-routing]\nJ",
        "s.toml:6:11: with `transport.adaptive-routing` receivers send no NACKs, so `on-nack` must be \"none\"",
    ),
    (
        "H[nic.transport.adaptive-routing]\nreorder-window = 32\nmax-outstanding = 33\nJ",
        "s.toml:7:19: `max-outstanding` must not exceed `reorder-window`: packets that the receiver discards wait for the timer",
    ),
    (
        "H[nic.transport.mp-rdma]\nbitmap = 0\nJ",
        "s.toml:6:10: `bitmap` must be between 1 and 8388607 (24-bit PSNs)",
    ),
    (
        "H[nic]\ncnp = \"frame\"\n[nic.congestion.mp-rdma]\nJ",
        "s.toml:6:7: `cnp` must be \"flag\" with `congestion.mp-rdma`, which reads marks on ACKs",
    ),
    (
        "H[nic.transport.adaptive-rooting]\nJ",
        "s.toml:5:16: unknown name `adaptive-rooting`; did you mean `adaptive-routing`?",
    ),
    ("H[nic]\ntimeout = { adp = 32 }\nJ", "s.toml:6:19: `adp` must be at most 31 (5 bits)"),
    (
        "H[nic]\ntimeout = { adp = 14 }\nbackoff = { cap = \"1s\" }\nJ",
        "s.toml:7:11: `backoff` cannot be set with `timeout.adp`, which has a schedule of its own",
    ),
    (
        "H[nic]\ntimeout = \"50us\"\nJ",
        "s.toml:6:11: unknown name `50us`; did you mean `{ fixed = \"50us\" }`?",
    ),
    ("H[nic]\ntimeout = { adp = 256 }\nJ", "s.toml:6:19: expected a whole number from 0 to 255, found 256"),
    (
        "H[nic.transport.uec]\npenalties = [{}, { share = 200 }]\nJ",
        "s.toml:6:28: `share` must be from 1 to 127, found 200",
    ),
    (
        "H[nic.transport.uec]\npenalties = [{ at = \"2us\", until = \"1us\" }]\nJ",
        "s.toml:6:36: `until` must be after `at`, 2us; found 1us",
    ),
    ("H[nic]\nack-every = 0\nJ", "s.toml:6:13: `ack-every` must be at least 1"),
    ("H[nic.transport.nicsr]\nJ", "s.toml:5:16: unknown name `nicsr`; did you mean `nic-sr`?"),
];

/// `[scheme.NAME]` and the schemes of classes.
pub(crate) const SCHEMES: &[Case] = &[
    (
        "H[scheme.valiant]\nJ",
        "s.toml:5:1: this scheme sends packets over groups other than their own, and the fabric has no groups: it needs a Dragonfly, `[topology.dragonfly]`; `minimal` runs on any fabric",
    ),
    (
        "[topology.fat-tree]\nk = 4\n[scheme.themis]\nhashes = [{ algorithm = \"crc\" }]\nJ",
        "s.toml:4:10: from pod1-edge0 to pod0-edge0 the hashes reach 2 of 4 paths: of crc at tier 2, bit 0 cannot be steered, as it always changes together with bits of crc at tier 1 (polarisation); give each tier an algorithm or offset of its own; alternatively, path-map = false sprays over the uplinks of the ToR alone",
    ),
    (
        "[topology.fat-tree]\nk = 6\n[scheme.themis]\nJ",
        "s.toml:3:1: from pod1-edge0 to pod0-edge0 a switch of tier 1 chooses among 3 ports; a change of the source port steers a hash only where that number is a power of two; alternatively, path-map = false sprays over the uplinks of the ToR alone",
    ),
    (
        "[topology.fat-tree]\n[scheme.themis]\nhashes = []\nJ",
        "s.toml:3:10: at least one hash is needed, that of the ToRs",
    ),
    (
        "[topology.fat-tree]\n[scheme.themis]\nhashes = [{ algorithm = \"xor\", offset = 16 }]\nJ",
        "s.toml:3:10: an offset of 16 bits; 0 to 15 are possible",
    ),
    (
        "H[nic.transport.sr-sack]\n[scheme.dlbf]\nresume = 65\nJ",
        "s.toml:7:10: notifications resume at 65 packets, which is more than the 64 at which they are suspended",
    ),
    ("H[scheme.conga]\nquantisation-bits = 7\nJ", "s.toml:6:21: 7 bits; 1 to 6 are possible"),
    (
        "H[scheme.conga]\nquantization-bits = 3\nJ",
        "s.toml:6:1: unknown key `quantization-bits`; did you mean `quantisation-bits`?",
    ),
    (
        "H[scheme.conweave]\ntheta-inactive = \"100us\"\nJ",
        "s.toml:6:18: `theta-inactive` (100us) must be longer than `resume-default` (200us): a flow may begin a new epoch only when none of its packets is held",
    ),
    (
        "H[scheme.flowlet]\ngap = \"0us\"\nJ",
        "s.toml:6:7: a gap of 0; it must be longer; `rps` draws a path for every packet",
    ),
    ("H[scheme.mixed]\nJ", "s.toml:5:9: unknown name `mixed`; did you mean `entropy-mixed`?"),
    (
        "H[scheme.mrc]\nentropies = 65536\nJ",
        "s.toml:6:13: expected a whole number from 0 to 65535, found 65536",
    ),
    (
        "H[switch]\nqueue-cap-to-host = \"9kB\"\nJ",
        "s.toml:6:1: unknown key `queue-cap-to-host`; did you mean `queue-cap-to-hosts`?",
    ),
    (
        "H[scheme.flowlet-nic]\ngap = \"0us\"\nJ",
        "s.toml:6:7: a gap of 0; it must be longer; `rps-nic` draws a path for every packet",
    ),
    (
        "H[scheme.flowlet]\ngap = 5\nJ",
        "s.toml:6:7: expected a time with a unit such as \"1us\", found the bare number 5",
    ),
    (
        "H[scheme.flowcell]\nbytes = \"0B\"\nJ",
        "s.toml:6:9: a flowcell of 0 bytes; it must be larger; `rps-nic` draws a path for every packet",
    ),
    (
        "H[scheme.mp-rdma]\ndelta = 64\nJ",
        "s.toml:6:9: a path may be 64 packets behind another, but the receiver's bitmap holds 64: it would drop packets that are in time",
    ),
    (
        "H[nic.transport.mp-rdma]\nbitmap = 32\n[scheme.mp-rdma]\nJ",
        "s.toml:7:1: a path may be 32 packets behind another, but the receiver's bitmap holds 32: it would drop packets that are in time",
    ),
    ("H[scheme.mp-rdma]\nprobe = 1.5\nJ", "s.toml:6:9: a probability of 1.5; it must be between 0 and 1"),
    ("H[scheme.mprdma]\nJ", "s.toml:5:9: unknown name `mprdma`; did you mean `mp-rdma`?"),
    ("H[scheme.reps]\nbuffer = 0\nJ", "s.toml:6:10: 0 entries; 1 to 1024 are possible"),
    ("H[class.background.scheme.emcp]\nJ", "s.toml:5:26: unknown name `emcp`; did you mean `ecmp`?"),
    ("H[scheme.themiss]\nJ", "s.toml:5:9: unknown name `themiss`; did you mean `themis`?"),
    ("scheme = \"rpz\"\nHJ", "s.toml:1:10: unknown name `rpz`; did you mean `rps`?"),
    // Parts in the wrong slot.
    (
        "scheme = \"long-haul\"\nHJ",
        "s.toml:1:10: `long-haul` is a feedback, which stands beside a scheme: write `[feedback.long-haul]`",
    ),
    (
        "H[scheme.bicc]\nper = \"switch\"\nJ",
        "s.toml:5:9: `bicc` is a feedback, which stands beside a scheme: write `[feedback.bicc]`",
    ),
    (
        "H[switch-role.spine.scheme.direct-cnp]\nJ",
        "s.toml:5:27: `direct-cnp` is a feedback, which stands beside a scheme: write `[switch-role.spine.feedback.direct-cnp]`",
    ),
    (
        "H[class.background.scheme.annulus]\nJ",
        "s.toml:5:26: `annulus` is a feedback, which serves the packets of all classes: write `[feedback.annulus]`",
    ),
    (
        "H[class.background.feedback.annulus]\nJ",
        "s.toml:5:19: a feedback serves the packets of all classes: write `[feedback.NAME]`",
    ),
    ("H[feedback.themis]\nJ", "s.toml:5:11: `themis` is a scheme: write `[scheme.themis]`"),
    ("H[feedback.anulus]\nJ", "s.toml:5:11: unknown name `anulus`; did you mean `annulus`?"),
    (
        "H[feedback.long-haul]\nJ",
        "s.toml:5:1: no switch has a long link, one that leads to another switch of the same role",
    ),
    ("H[feedback.annulus]\nqueue = \"0B\"\nJ", "s.toml:6:9: it must be above 0: feedback is measured by it"),
];

/// `[[workload]]`: the keys that all kinds share.
pub(crate) const JOBS: &[Case] = &[
    (
        "H[[workload]]\nclass = \"backgroud\"\nneighbour-ring = {}\n",
        "s.toml:6:9: there is no traffic class `backgroud`; did you mean `background`?",
    ),
    ("H", "s.toml:1:1: the scenario has no [[workload]], so there is nothing to send"),
    ("H[workload]\nincast = {}\n", "s.toml:5:1: expected an array, found a table"),
    ("H[[workload]]\nname = \"x\"\n", "s.toml:5:1: expected a kind of workload, found none"),
    (
        "H[[workload]]\nincast = {}\npermutation = {}\n",
        "s.toml:6:1: expected one kind of workload, found `permutation` and `incast`",
    ),
    (
        "H[[workload]]\nname = \"a\"\nincast = {}\n[[workload]]\nname = \"a\"\nincast = {}\n",
        "s.toml:9:8: two workloads are named `a`; every workload needs a name of its own",
    ),
];

/// `[[workload]]`: the settings of each kind, except `poisson`.
pub(crate) const TRAFFIC: &[Case] = &[
    (
        "H[[workload]]\nfan-in = { receivers = 2, senders = 4 }\n",
        "s.toml:6:10: expected at least 10 hosts, found 8",
    ),
    (
        "H[[workload]]\npairs = { count = 2, hosts = { skip = 6, take = 3 } }\n",
        "s.toml:6:30: expected at most 2 hosts after the first 6 of 8, found 3",
    ),
    (
        "H[[workload]]\npoisson = { count = 9, hosts = { skip = 9 } }\n",
        "s.toml:6:41: expected to skip at most 8 hosts, the whole fabric; found 9",
    ),
    (
        "H[[workload]]\nback-to-back = { from = \"host1\", to = \"host1\" }\n",
        "s.toml:6:39: `host1` cannot send to itself",
    ),
    ("H[[workload]]\nback-to-back = { messages = 0 }\n", "s.toml:6:29: expected at least 1 message, found 0"),
    ("H[[workload]]\nall-redcue = {}\n", "s.toml:6:1: unknown key `all-redcue`; did you mean `all-reduce`?"),
    ("H[[workload]]\nall-reduce = { bytes = \"0B\" }\n", "s.toml:6:24: expected at least 1 byte, found 0"),
    (
        "H[[workload]]\nall-reduce = { groups = \"one-host-per-rack\" }\n",
        "s.toml:6:25: unknown rule for groups \"one-host-per-rack\"; did you mean `one-host-per-leaf`?",
    ),
    (
        "H[[workload]]\nneighbour-ring = { groups = \"contiguous\", group-size = 0 }\n",
        "s.toml:6:56: expected a group of at least 2 hosts, found 0",
    ),
    (
        "H[[workload]]\nneighbour-ring = { groups = \"contiguous\", group-size = 9 }\n",
        "s.toml:6:56: expected a group of at most 8 hosts, the whole fabric; found 9",
    ),
    (
        "H[[workload]]\nneighbour-ring = { groups = [[\"host0\", \"host1\"], [\"host9\"]] }\n",
        "s.toml:6:51: the host `host9` does not exist; did you mean `host0`?",
    ),
    (
        "H[[workload]]\nneighbour-ring = { groups = [[\"host0\", \"host1\"], []] }\n",
        "s.toml:6:50: expected at least 2 hosts in group 1, found 0",
    ),
    (
        "H[[workload]]\nincast = { receiver = \"leaf0\" }\n",
        "s.toml:6:23: the host `leaf0` is a switch, not a host; hosts are named like `host0`",
    ),
    (
        "H[[workload]]\nincast = { senders = 8 }\n",
        "s.toml:6:22: expected 1 to 7 senders beside the receiver, found 8",
    ),
    (
        "H[[workload]]\npermutation = { kind = \"shift\", shift = 8 }\n",
        "s.toml:6:41: a shift of 8 among 8 hosts would send every message to its sender",
    ),
    (
        "H[[workload]]\nflows = [{ from = \"host0\", to = \"host1\", bytes = \"1B\" }]\n",
        "s.toml:6:9: expected a table, found an array",
    ),
    (
        "H[[workload]]\nflows = { list = [[\"host0\", \"host1\", \"1B\"]] }\n",
        "s.toml:6:19: expected a table, found an array",
    ),
    (
        "H[[workload]]\nflows = { list = [{ from = \"host0\", to = \"host0\", bytes = \"1B\" }] }\n",
        "s.toml:6:42: `host0` cannot send to itself",
    ),
    (
        "H[[workload]]\nrandom-partner = { peers = \"cross-pod\" }\n",
        "s.toml:6:28: this fabric has no pods: all its racks share the switches above them",
    ),
    (
        "H[[workload]]\npermutation = { kind = \"cross-pod\" }\n",
        "s.toml:6:24: this fabric has no pods: all its racks share the switches above them",
    ),
    (
        "H[[workload]]\nrandom-partner = { iterations = 0 }\n",
        "s.toml:6:33: expected at least 1 message, found 0",
    ),
    (
        "H[[workload]]\nrandom-partner = { bytes = \"1kB\", sizes = \"solar\" }\n",
        "s.toml:6:43: set either `bytes` or `sizes`, not both",
    ),
    (
        "H[[workload]]\nrandom-partner = { clamp = { max = \"1kB\" } }\n",
        "s.toml:6:28: `clamp` limits `sizes`, which is not set",
    ),
    (
        "H[[workload]]\nall-to-all = { window = 0 }\n",
        "s.toml:6:25: expected at least 1 message at a time, found 0",
    ),
    (
        "H[[workload]]\nall-to-all = { window = 2, schedule = \"staggered\" }\n",
        "s.toml:6:25: `window` needs schedule = \"at-once\"; \"staggered\" means window = 1",
    ),
];

/// `[[workload]]`: `poisson` and its distributions of sizes.
pub(crate) const POISSON: &[Case] = &[
    (
        "H[[workload]]\npoisson = { sizes = \"web-serch\" }\n",
        "s.toml:6:21: there is no distribution `web-serch`; did you mean `web-search`?",
    ),
    (
        "H[[workload]]\npoisson = { sizes = 5 }\n",
        "s.toml:6:21: expected the name of a distribution such as \"web-search\", a file, or a table such as { fixed = \"1MB\" }, found 5",
    ),
    (
        "H[[workload]]\npoisson = { sizes = { unifrom = { min = \"1kB\", max = \"2kB\" } } }\n",
        "s.toml:6:23: unknown name `unifrom`; did you mean `uniform`?",
    ),
    (
        "H[[workload]]\npoisson = { sizes = { uniform = { min = \"3kB\", max = \"2kB\" } } }\n",
        "s.toml:6:41: `min` (3kB) is above `max` (2kB)",
    ),
    (
        "H[[workload]]\npoisson = { sizes = { points = [] } }\n",
        "s.toml:6:32: expected rows of bytes and percent, up to 100 %; found none",
    ),
    (
        "H[[workload]]\npoisson = { sizes = { points = [[\"0B\", 0], [\"9kB\", 60], [\"8kB\", 100]] } }\n",
        "s.toml:6:58: sizes must not decrease; found 8kB after 9kB",
    ),
    (
        "H[[workload]]\npoisson = { sizes = { points = [[\"0B\", 0], [\"9kB\", 60]] } }\n",
        "s.toml:6:52: expected 100 % in the last row, found 60 %",
    ),
    (
        "H[[workload]]\npoisson = { clamp = { min = \"3kB\", max = \"2kB\" } }\n",
        "s.toml:6:29: `min` (3kB) is above `max` (2kB)",
    ),
    (
        "H[[workload]]\npoisson = { load = 0 }\n",
        "s.toml:6:20: expected a share of the line rate above 0, such as 0.5; found 0",
    ),
    (
        "H[[workload]]\npoisson = { load = 1e-12, count = 3 }\n",
        "s.toml:6:20: flow 1 of 3 would start at 3133634127317764608ps; the latest possible start is 1000000s",
    ),
    (
        "H[[workload]]\npoisson = { load = nan }\n",
        "s.toml:6:20: expected a share of the line rate above 0, such as 0.5; found NaN",
    ),
    ("H[[workload]]\npoisson = { load = \"50%\" }\n", "s.toml:6:20: expected a number, found \"50%\""),
    (
        "H[[workload]]\npoisson = { count = 5, duration = \"1ms\" }\n",
        "s.toml:6:21: set either `duration` or `count`, not both",
    ),
    ("H[[workload]]\npoisson = { count = 0 }\n", "s.toml:6:21: expected at least 1 flow, found 0"),
    (
        "H[[workload]]\npoisson = { duration = \"1ns\" }\n",
        "s.toml:6:24: no flow arrives within 1ns; the load gives 0.00 on average",
    ),
    (
        "H[[workload]]\npoisson = { duration = \"999999s\" }\n",
        "s.toml:6:24: expected at most 16777216 queue pairs, found 116873513513",
    ),
    (
        "H[[workload]]\npoisson = { hosts = { take = 1 } }\n",
        "s.toml:6:21: expected at least 2 hosts, found 1",
    ),
    (
        "[topology.leaf-spine]\nleaves = 1\n[[workload]]\npoisson = { peers = \"cross-rack\" }\n",
        "s.toml:4:21: all 16 hosts are in one rack; there is no other rack to send to",
    ),
];

/// `[wire]`, `[stop]` and `[record]`.
pub(crate) const RUNS: &[Case] = &[
    ("H[wire]\nframe = \"20kB\"\nJ", "s.toml:6:9: expected a frame of 64 B to 16383 B, found 20000 B"),
    ("H[record]\nbins = 3\nJ", "s.toml:6:8: expected an even number of bins between 2 and 65536, found 3"),
    (
        "H[routing]\ndetection = never\nJ",
        "s.toml:6:13: expected a value, found never; a text stands in quotes: \"never\"",
    ),
];
