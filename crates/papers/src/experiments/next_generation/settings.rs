//! The cases of each question: workloads and faults, and what to read from their runs.

use super::contenders::{self, Contender, Speed, USUAL};
use super::measure;
use crate::seeds::Metric;

/// A question.
pub(super) struct Question {
    /// Number and subject.
    pub(super) name: &'static str,
    pub(super) settings: &'static [Setting],
    /// What to read: the title of its table, and the value of a run.
    pub(super) read: &'static [Read],
    /// The contenders.
    pub(super) contenders: &'static [Contender],
}

/// A workload with its faults.
pub(super) struct Setting {
    pub(super) name: &'static str,
    /// Changes beyond those of the contender.
    pub(super) set: &'static [&'static str],
    /// Rate of ports and size of buffers.
    pub(super) speed: Speed,
    /// Whether NICs have eight ports in eight planes.
    pub(super) planes: bool,
    /// Whether legacy flows have a queue of their own.
    pub(super) own_queue: bool,
}

const fn setting(name: &'static str, set: &'static [&'static str]) -> Setting {
    Setting { name, set, speed: USUAL, planes: false, own_queue: false }
}

/// A setting with another size of buffers and caps, in halves.
const fn buffered(name: &'static str, halves: u32, set: &'static [&'static str]) -> Setting {
    Setting { speed: Speed { halves, ..USUAL }, ..setting(name, set) }
}

/// What to read from a run: title, unit and value.
type Read = (&'static str, &'static str, Metric);

const STRETCH: Read =
    ("time of the job, as a multiple of the busiest NIC's payload at line rate", "x", measure::stretch);
const P99: Read = ("P99 of the slowdown of flows", "x", measure::p99);

pub(super) const COLLECTIVES: Question = Question {
    name: "Q1 collectives",
    settings: &[
        setting("permutation", &[]),
        setting("ring all-reduce", &["workload=[{name=\"job\",all-reduce={bytes=\"8MB\"}}]"]),
        setting(
            "halving-doubling all-reduce",
            &[
                "workload=[{name=\"job\",collective={kind=\"all-reduce\",algorithm=\"halving-doubling\",bytes=\"4MB\"}}]",
            ],
        ),
        setting(
            "all-to-all, 8 peers at a time",
            &["workload=[{name=\"job\",all-to-all={bytes=\"4MB\",groups=\"all\",window=8}}]"],
        ),
        setting(
            "all-to-all, one peer at a time",
            &["workload=[{name=\"job\",all-to-all={bytes=\"4MB\",groups=\"all\",window=1}}]"],
        ),
        // Every rank sends 32 KiB to every other one; four drawn experts get 256 kB more from each of 15 ranks.
        setting(
            "uneven all-to-all",
            &["workload=[{name=\"job\",all-to-all={bytes=\"2MiB\",groups=\"all\",window=8}},\
                 {name=\"hot\",fan-in={receivers=4,senders=15,bytes=\"256kB\"}}]"],
        ),
        setting(
            "random partners, uneven sizes",
            &[
                "workload=[{name=\"job\",random-partner={sizes={uniform={min=\"64kB\",max=\"2MB\"}},iterations=4,peers=\"cross-rack\"}}]",
            ],
        ),
    ],
    read: &[
        STRETCH,
        P99,
        ("packets sent again, % of those that arrived", "%", measure::resent),
        ("control packets per data packet", "", measure::control),
        ("most packets of a queue pair that waited for a gap", "packets", measure::waiting),
    ],
    contenders: &contenders::ALL,
};

/// An incast to host 0, and two victims between hosts that do not take part: one into the receiver's rack, one elsewhere.
macro_rules! incast {
    ($senders:literal, $bytes:literal) => {
        concat!(
            "workload=[{name=\"job\",incast={senders=",
            $senders,
            ",bytes=\"",
            $bytes,
            "\"}},{name=\"near\",class=\"near\",flows={list=[{from=\"host63\",to=\"host7\",bytes=\"4MB\"}]}},\
             {name=\"far\",class=\"far\",flows={list=[{from=\"host62\",to=\"host15\",bytes=\"4MB\"}]}}]"
        )
    };
}

const VICTIMS: &str = "class={near={},far={}}";

pub(super) const INCASTS: Question = Question {
    name: "Q2 incast",
    settings: &[
        setting("8 to 1", &[VICTIMS, incast!("8", "1MB")]),
        setting("32 to 1", &[VICTIMS, incast!("32", "256kB")]),
        setting("48 to 1", &[VICTIMS, incast!("48", "256kB")]),
    ],
    read: &[
        (
            "time of the incast, as a multiple of the receiver's payload at line rate",
            "x",
            measure::job_stretch,
        ),
        ("Jain's index of the senders' rates", "", measure::jain),
        ("slowdown of the victim into the receiver's rack", "x", measure::near),
        ("slowdown of the victim elsewhere", "x", measure::far),
        ("cut or dropped packets, % of those that arrived", "%", measure::lost),
        ("time that ports were paused by PFC, %", "%", measure::paused),
        ("largest use of a switch's buffer", "kB", measure::buffer),
    ],
    contenders: &contenders::ALL,
};

const RING: &str = "workload=[{name=\"job\",all-reduce={bytes=\"8MB\"}}]";
const REPLIES: &str = "links.lose-replies=true";
/// One link between a leaf and a spine that loses packets, as a dirty connector does.
const GRAY: [&str; 2] = [
    "failure=[{links=[[\"leaf0\",\"spine1\"]],loss=1e-3}]",
    "failure=[{links=[[\"leaf0\",\"spine1\"]],loss=1e-2}]",
];

pub(super) const LOSSES: Question = Question {
    name: "Q3 random loss",
    settings: &[
        setting("permutation, 1e-5", &["links.loss=1e-5", REPLIES]),
        setting("permutation, 1e-4", &["links.loss=1e-4", REPLIES]),
        setting("permutation, 1e-3", &["links.loss=1e-3", REPLIES]),
        setting("ring, 1e-5", &["links.loss=1e-5", REPLIES, RING]),
        setting("ring, 1e-4", &["links.loss=1e-4", REPLIES, RING]),
        setting("ring, 1e-3", &["links.loss=1e-3", REPLIES, RING]),
        setting("permutation, one link 1e-3", &[GRAY[0], REPLIES]),
        setting("permutation, one link 1e-2", &[GRAY[1], REPLIES]),
        setting("ring, one link 1e-3", &[GRAY[0], REPLIES, RING]),
        setting("ring, one link 1e-2", &[GRAY[1], REPLIES, RING]),
    ],
    read: &[
        STRETCH,
        P99,
        ("packets sent again per packet lost", "", measure::resent_per_loss),
        ("timers that fired per 1000 packets lost", "", measure::timers_per_loss),
    ],
    contenders: &contenders::UNDER_LOSS,
};

const EIGHT_MB: &str = "workload.job.permutation.bytes=8MB";

/// A link between a leaf and a spine, or a spine, that dies after 20 us and is repaired after 5 ms.
const LINK: &str = "failure=[{links=[[\"leaf0\",\"spine1\"]],at=\"20us\",until=\"5ms\"}]";
const SPINE: &str = "failure=[{switch=\"spine1\",at=\"20us\",until=\"5ms\"}]";
/// The same link, down for 50 us of every 200 us.
const FLAPS: &str = "failure=[{links=[[\"leaf0\",\"spine1\"]],at=\"20us\",until=\"70us\"},\
    {links=[[\"leaf0\",\"spine1\"]],at=\"220us\",until=\"270us\"},\
    {links=[[\"leaf0\",\"spine1\"]],at=\"420us\",until=\"470us\"}]";

pub(super) const FAILURES: Question = Question {
    name: "Q4 failures",
    settings: &[
        setting("dead link, routes after 100 us", &[EIGHT_MB, LINK, "routing.detection=100us"]),
        setting("dead link, routes after 1 ms", &[EIGHT_MB, LINK, "routing.detection=1ms"]),
        setting("dead link, static routes", &[EIGHT_MB, LINK, "routing.detection=never"]),
        setting("dead spine, routes after 100 us", &[EIGHT_MB, SPINE, "routing.detection=100us"]),
        setting("dead spine, routes after 1 ms", &[EIGHT_MB, SPINE, "routing.detection=1ms"]),
        setting("dead spine, static routes", &[EIGHT_MB, SPINE, "routing.detection=never"]),
        setting("flapping link, static routes", &[EIGHT_MB, FLAPS, "routing.detection=never"]),
    ],
    read: &[
        STRETCH,
        P99,
        ("packets lost on dead links", "packets", measure::lost_on_links),
        ("flows that wait for more than 4 ms, %", "%", measure::stuck),
    ],
    contenders: &contenders::UNDER_FAILURE,
};

/// Six hosts per leaf leave a quarter of the uplinks idle, so that all goodput is possible with one of eight spines dead.
const SPARE: &str = "topology.leaf-spine.hosts-per-leaf=6";
const LONG_FLOWS: &str = "workload.job.permutation.bytes=75MB";
/// All flows over time. 16384 bins of 10 us are more than any run has, so no bins are merged.
const ALL_FLOWS: [&str; 4] = ["record.flows=all", "record.links=0", "record.width=10us", "record.bins=16384"];
/// The link or the spine dies at [`measure::DIES`] and is repaired at [`measure::REPAIRED`].
const LINK_LATER: &str = "failure=[{links=[[\"leaf0\",\"spine1\"]],at=\"300us\",until=\"1300us\"}]";
const SPINE_LATER: &str = "failure=[{switch=\"spine1\",at=\"300us\",until=\"1300us\"}]";
const GRAY_LATER: &str = "failure=[{links=[[\"leaf0\",\"spine1\"]],at=\"300us\",until=\"1300us\",loss=1e-2}]";

macro_rules! later {
    ($failure:expr, $detection:literal) => {
        &[
            SPARE,
            LONG_FLOWS,
            ALL_FLOWS[0],
            ALL_FLOWS[1],
            ALL_FLOWS[2],
            ALL_FLOWS[3],
            $failure,
            concat!("routing.detection=", $detection),
        ]
    };
}

pub(super) const RECOVERY: Question = Question {
    name: "Q4 goodput",
    settings: &[
        setting("dead link, routes after 100 us", later!(LINK_LATER, "100us")),
        setting("dead link, static routes", later!(LINK_LATER, "never")),
        setting("dead spine, routes after 100 us", later!(SPINE_LATER, "100us")),
        setting("dead spine, static routes", later!(SPINE_LATER, "never")),
        setting("gray link, 1e-2", later!(GRAY_LATER, "never")),
    ],
    read: &[
        ("goodput before the failure, % of the line rate", "%", measure::level),
        ("least goodput in 50 us after the failure, % of that before", "%", measure::dip),
        ("time until goodput is back at 99 %, us; 1000 is the repair", "us", measure::recovery),
        ("goodput lost until the repair, us of the goodput before", "us", measure::goodput_lost),
    ],
    contenders: &contenders::UNDER_FAILURE,
};

const SLOW: [&str; 3] = [
    "failure=[{links=[[\"leaf0\",\"spine1\"]],rate=0.25}]",
    "failure=[{links=[[\"leaf0\",\"spine1\"]],rate=0.5}]",
    "failure=[{links=[[\"leaf0\",\"spine1\"]],rate=0.9}]",
];
const TORNADO: &str = "workload=[{name=\"job\",permutation={bytes=\"4MB\",kind=\"shift\"}}]";

pub(super) const SLOW_LINKS: Question = Question {
    name: "Q5 slow link",
    settings: &[
        setting("permutation, at 25 %", &[SLOW[0]]),
        setting("permutation, at 50 %", &[SLOW[1]]),
        setting("permutation, at 90 %", &[SLOW[2]]),
        setting("tornado, at 25 %", &[TORNADO, SLOW[0]]),
        setting("tornado, at 50 %", &[TORNADO, SLOW[1]]),
        setting("tornado, at 90 %", &[TORNADO, SLOW[2]]),
    ],
    read: &[STRETCH, P99],
    contenders: &contenders::ALL,
};

/// Some hosts have NICs of today under ECMP. They share queues with all others, or have a queue of their own.
macro_rules! legacy {
    ($hosts:literal) => {
        &[
            "class={legacy={scheme={ecmp={}},nic={}}}",
            concat!(
                "workload=[{name=\"job\",permutation={bytes=\"4MB\",hosts={skip=",
                $hosts,
                "}}},{name=\"legacy\",class=\"legacy\",permutation={bytes=\"4MB\",hosts={take=",
                $hosts,
                "}}}]"
            ),
        ]
    };
}

const BOTH_SIDES: [Read; 4] = [
    ("new flows: mean slowdown", "x", measure::new_mean),
    ("new flows: P99 of the slowdown", "x", measure::new_p99),
    ("legacy flows: mean slowdown", "x", measure::legacy_mean),
    ("legacy flows: P99 of the slowdown", "x", measure::legacy_p99),
];

pub(super) const LEGACY: Question = Question {
    name: "Q6 legacy beside",
    settings: &[setting("6 of 64 hosts", legacy!("6")), setting("32 of 64 hosts", legacy!("32"))],
    read: &BOTH_SIDES,
    contenders: &contenders::ALL,
};

/// A setting in which legacy flows have a queue of their own.
const fn apart(name: &'static str, set: &'static [&'static str]) -> Setting {
    Setting { own_queue: true, ..setting(name, set) }
}

pub(super) const LEGACY_APART: Question = Question {
    name: "Q6 legacy in a queue of its own",
    settings: &[apart("6 of 64 hosts", legacy!("6")), apart("32 of 64 hosts", legacy!("32"))],
    read: &BOTH_SIDES,
    contenders: &contenders::BESIDE_LEGACY,
};

/// Small messages of one size between random hosts in different racks, beside a permutation of 8 MB.
macro_rules! small {
    ($bytes:literal, $load:literal) => {
        &[
            "class={small={}}",
            concat!(
                "workload=[{name=\"job\",permutation={bytes=\"8MB\",kind=\"cross-rack\"}},\
                 {name=\"small\",class=\"small\",poisson={sizes={fixed=\"",
                $bytes,
                "\"},load=",
                $load,
                ",duration=\"150us\",peers=\"cross-rack\"}}]"
            ),
        ]
    };
}

pub(super) const SMALL: Question = Question {
    name: "Q7 small messages",
    settings: &[
        setting("64 B", small!("64B", "0.0002")),
        setting("4 kB", small!("4kB", "0.01")),
        setting("64 kB", small!("64kB", "0.1")),
    ],
    read: &[
        ("median FCT of small messages, us", "us", measure::small_p50),
        ("P99 of the FCT of small messages, us", "us", measure::small_p99),
        ("time of the permutation", "x", measure::job_stretch),
    ],
    contenders: &contenders::ALL,
};

/// One port of 800 Gb/s, or eight ports of 100 Gb/s in eight planes.
const fn plane(name: &'static str, planes: bool, set: &'static [&'static str]) -> Setting {
    Setting { speed: Speed { gbps: if planes { 100 } else { 800 }, halves: 2 }, planes, ..setting(name, set) }
}

const TO_ALL: &str =
    "workload=[{name=\"job\",collective={kind=\"all-to-all\",bytes=\"8MB\",tuning={window=8}}}]";
const HALVING: &str =
    "workload=[{name=\"job\",collective={kind=\"all-reduce\",algorithm=\"halving-doubling\",bytes=\"8MB\"}}]";
/// An eighth of the capacity between racks.
const SPINE_DIES: &str = "failure=[{switch=\"spine0\",at=\"20us\",until=\"5ms\"}]";
const PLANE_DIES: &str = "failure=[{links=[[\"tor*\",\"spine0\"],[\"tor*\",\"spine1\"],[\"tor*\",\"spine2\"],[\"tor*\",\"spine3\"],\
    [\"tor*\",\"spine4\"],[\"tor*\",\"spine5\"],[\"tor*\",\"spine6\"],[\"tor*\",\"spine7\"]],at=\"20us\",until=\"5ms\"}]";
const PLANE_SLOW: &str = "failure=[{links=[[\"tor*\",\"spine0\"],[\"tor*\",\"spine1\"],[\"tor*\",\"spine2\"],[\"tor*\",\"spine3\"],\
    [\"tor*\",\"spine4\"],[\"tor*\",\"spine5\"],[\"tor*\",\"spine6\"],[\"tor*\",\"spine7\"]],rate=0.5}]";
const NEVER: &str = "routing.detection=never";

pub(super) const PLANES: Question = Question {
    name: "Planes",
    settings: &[
        plane("all-to-all, 1 x 800 G", false, &[TO_ALL]),
        plane("all-to-all, 8 x 100 G", true, &[TO_ALL]),
        plane("halving-doubling, 1 x 800 G", false, &[HALVING]),
        plane("halving-doubling, 8 x 100 G", true, &[HALVING]),
        plane("a spine dies, 1 x 800 G", false, &[TO_ALL, SPINE_DIES, NEVER]),
        plane("a plane dies, 8 x 100 G", true, &[TO_ALL, PLANE_DIES, NEVER]),
        plane("a plane at half rate, 8 x 100 G", true, &[TO_ALL, PLANE_SLOW]),
    ],
    read: &[STRETCH, ("packets sent again, % of those that arrived", "%", measure::resent)],
    contenders: &contenders::ON_PLANES,
};

const INCAST: &str = incast!("32", "256kB");

pub(super) const BUFFERS: Question = Question {
    name: "Sensitivity to the buffer",
    settings: &[
        buffered("permutation, half", 1, &[]),
        buffered("permutation, as is", 2, &[]),
        buffered("permutation, twice", 4, &[]),
        buffered("32 to 1, half", 1, &[VICTIMS, INCAST]),
        buffered("32 to 1, as is", 2, &[VICTIMS, INCAST]),
        buffered("32 to 1, twice", 4, &[VICTIMS, INCAST]),
    ],
    read: &[("time of the job", "x", measure::job_stretch)],
    contenders: &contenders::ALL,
};

/// Other timers of DCQCN: those of its paper, and a fast increase; and the marks of NSCC.
const PAPER: [&str; 2] =
    ["nic.congestion.dcqcn.rate-increase-timer=55us", "nic.congestion.dcqcn.rate-decrease-interval=50us"];
const FAST: [&str; 2] =
    ["nic.congestion.dcqcn.rate-increase-timer=10us", "nic.congestion.dcqcn.rate-decrease-interval=50us"];
const MARKS: &str = "switch.ecn={at-rate=[{rate=\"400Gbps\",kmin=\"43400B\",kmax=\"173600B\",pmax=1.0}]}";

pub(super) const PRESETS: Question = Question {
    name: "Sensitivity to DCQCN",
    settings: &[
        setting("permutation, NVIDIA's", &[]),
        setting("permutation, (55, 50) us", &PAPER),
        setting("permutation, (10, 50) us", &FAST),
        setting("permutation, NSCC's marks", &[MARKS]),
        setting("ring, NVIDIA's", &[RING]),
        setting("ring, (55, 50) us", &[RING, PAPER[0], PAPER[1]]),
        setting("ring, (10, 50) us", &[RING, FAST[0], FAST[1]]),
        setting("32 to 1, NVIDIA's", &[VICTIMS, INCAST]),
        setting("32 to 1, (55, 50) us", &[VICTIMS, INCAST, PAPER[0], PAPER[1]]),
        setting("32 to 1, (10, 50) us", &[VICTIMS, INCAST, FAST[0], FAST[1]]),
    ],
    read: &[("time of the job", "x", measure::job_stretch)],
    contenders: &contenders::WITH_DCQCN,
};

pub(super) const ACKS: Question = Question {
    name: "Sensitivity to ACKs and headers",
    settings: &[
        setting("permutation, as is", &[]),
        setting("permutation, an ACK per packet", &["nic.transport.uec.ack-bytes=1B"]),
        setting("permutation, headers of RoCEv2", &["wire.header=62B", "wire.ack=66B"]),
    ],
    read: &[
        ("time of the job", "x", measure::job_stretch),
        ("control packets per data packet", "", measure::control),
    ],
    contenders: &contenders::OF_UEC,
};

/// Hosts that start within one round trip of the longest path instead of all at once.
const JITTER: &str = "workload.job.jitter=4340ns";

pub(super) const STARTS: Question = Question {
    name: "Sensitivity to the start",
    settings: &[
        setting("permutation, at once", &[]),
        setting("permutation, within a round trip", &[JITTER]),
        setting("32 to 1, at once", &[VICTIMS, INCAST]),
        setting("32 to 1, within a round trip", &[VICTIMS, INCAST, JITTER]),
        setting("48 to 1, at once", &[VICTIMS, incast!("48", "256kB")]),
        setting("48 to 1, within a round trip", &[VICTIMS, incast!("48", "256kB"), JITTER]),
    ],
    read: &[
        ("time of the job", "x", measure::job_stretch),
        ("cut or dropped packets, % of those that arrived", "%", measure::lost),
    ],
    contenders: &contenders::ALL,
};

/// 256 hosts in 16 racks, with 16 spines; switches have twice as many ports, and twice the buffer.
macro_rules! large {
    ($workload:expr) => {
        &[
            "topology.leaf-spine.leaves=16",
            "topology.leaf-spine.spines=16",
            "topology.leaf-spine.hosts-per-leaf=16",
            "switch.buffer=40MB",
            "switch-role.spine.buffer=20MB",
            $workload,
        ]
    };
}

pub(super) const LARGE: Question = Question {
    name: "256 hosts",
    settings: &[
        setting("permutation, 16 MB", large!("workload.job.permutation.bytes=16MB")),
        setting("ring all-reduce, 64 MB", large!("workload=[{name=\"job\",all-reduce={bytes=\"64MB\"}}]")),
        setting(
            "all-to-all, 16 MB",
            large!("workload=[{name=\"job\",all-to-all={bytes=\"16MB\",groups=\"all\",window=8}}]"),
        ),
        setting("127 to 1, 200 kB", large!("workload=[{name=\"job\",incast={senders=127,bytes=\"200kB\"}}]")),
    ],
    read: &[STRETCH, P99, ("packets sent again, % of those that arrived", "%", measure::resent)],
    contenders: &contenders::ALL,
};
