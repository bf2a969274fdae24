//! A fabric in TOML: every key arrives where it belongs, defaults are what the documentation says, and each mistake is named
//! with its place.

use std::net::IpAddr;
use tor::config::{Link, parse};
use tor::events::{Action, Matched, Rule};
use tor::{
    Buffer, Chance, Connection, End, Evidence, MarkAt, Marking, Mode, OnBlock, Port, PortId, Rate, Settings,
    Span, Spine, Spray, Steer, Time, Trust,
};
use wire::bth::Qpn;
use wire::ethernet::Address;

const ALL: &str = r#"
[fabric]
spines = 3
delay = "10us"
spread = "4us"
jitter = "1.5us"
loss = 0.25
rate = "2Gbps"
seed = 99
spray = "rps"
detection = "7ms"
[[path]]
index = 1
delay = "33us"
jitter = "2us"
loss = 1
rate = "5kbps"
down = ["1s", "2s", "3s", "4s"]
[[port]]
unix = { bind = "a", peer = "b" }
tor = "left"
[[port]]
packet = "eth0"
tor = "left"
rate = "40bps"
last-hop = "100ns"
[[port]]
name = "third"
tap = "eth1"
uplink = true
[[port]]
name = "fourth"
tap = "tap0"
stations = ["0a:00:00:00:00:01", "0a:00:00:00:00:02"]
[[port]]
name = "fifth"
pcap = "file"
[[port]]
name = "sixth"
uplink = true
[themis]
mode = "literal"
ring = 128
on-block = "drop"
max-connections = 512
idle = "3s"
steer = "xor-icrc"
verify = true
[learning]
by = ["psn"]
[[connection]]
a = { ip = "10.0.0.1", qp = 16777215 }
b = { ip = "fd00::2", qp = 0 }
[classes]
lossless = [2, 5]
control = 4
trust = "pcp"
watchdog = "9ms"
dscp = { 0 = 1, 63 = 7 }
weights = { 0 = 3, 7 = 1000 }
ecn = { kmin = "1KiB", kmax = "2MiB", pmax = 0.5, at = "enqueue", classes = [1, 6] }
buffer = { size = "1GB", alpha = 0.5, xoff = "200kB", xon = "100KB" }
[[event]]
on = { from = "third", kind = "read-request", qp = 4, psn = "+9", nth = "2..3" }
do = { reorder = 8 }
[[event]]
on = { psn-mod = [16, 5] }
do = { corrupt = 127 }
[[event]]
on = { every = 4, nth = "..6" }
do = "duplicate"
[[event]]
on = { kind = "cnp" }
do = "ce"
"#;

fn expected() -> Settings {
    let mut settings = Settings::of_ports(2);
    let chance = |value| Chance::new(value).unwrap();
    let spine = |micros| Spine {
        delay: Span::from_micros(micros),
        jitter: Span::from_nanos(1_500),
        loss: chance(0.25),
        rate: Rate::from_bits(2_000_000_000),
        down: Vec::new(),
    };
    settings.spines = vec![spine(10), spine(33), spine(14)];
    let second = |n: u64| Time::ZERO + Span::from_secs(n);
    settings.spines[1] = Spine {
        jitter: Span::from_micros(2),
        loss: Chance::ALWAYS,
        rate: Rate::from_bits(5_000),
        down: vec![(second(1), second(2)), (second(3), second(4))],
        ..spine(33)
    };
    (settings.seed, settings.spray, settings.steer) = (99, Spray::Rps, Steer::XorIcrc);
    settings.detection = Span::from_millis(7);
    settings.ports[1].leaf = 0;
    settings.ports[1].rate = Rate::from_bits(40);
    settings.ports[1].last_hop = Span::from_nanos(100);
    // Uplinks belong to the first ToR; a host without one has its own.
    let named = |name: &str, leaf, uplink| Port { name: name.into(), leaf, uplink, ..Port::default() };
    let stations = vec![Address([10, 0, 0, 0, 0, 1]), Address([10, 0, 0, 0, 0, 2])];
    settings.ports.push(named("third", 0, true));
    settings.ports.push(Port { stations, ..named("fourth", 1, false) });
    settings.ports.push(named("fifth", 2, false));
    settings.ports.push(named("sixth", 0, true));
    let themis = &mut settings.themis;
    (themis.mode, themis.ring, themis.on_block) = (Mode::Literal, 128, OnBlock::Drop);
    (themis.connections, themis.idle, themis.verify) = (512, Span::from_secs(3), true);
    themis.learning = vec![Evidence::Psn];
    let end = |ip: &str, qp| End { ip: ip.parse::<IpAddr>().unwrap(), qp: Qpn::new(qp) };
    themis.fixed = vec![Connection { a: end("10.0.0.1", 0xFF_FFFF), b: end("fd00::2", 0) }];
    let classes = &mut settings.classes;
    (classes.lossless[2], classes.lossless[5]) = (true, true);
    classes.strict = [false; 8];
    classes.strict[4] = true;
    classes.trust = Trust::Pcp;
    classes.watchdog = Span::from_millis(9);
    (classes.dscp[0], classes.dscp[63]) = (1, 7);
    (classes.weights[0], classes.weights[7]) = (3, 1000);
    let marking = Marking { kmin: 1024, kmax: 2 << 20, pmax: chance(0.5), at: MarkAt::Enqueue };
    (classes.marking[1], classes.marking[6]) = (Some(marking), Some(marking));
    classes.buffer = Buffer { size: 1_000_000_000, alpha_percent: 50, xoff: 200_000, xon: 100_000 };
    settings.events = vec![
        Rule {
            from: Some(PortId(2)),
            kind: Matched::ReadRequest,
            connection: Some(4),
            psn: Some(9),
            nth: (2, 3),
            ..Rule::new(Action::Reorder(8))
        },
        // Without a count, a remainder and a period mean all packets, and the rest the first one.
        Rule { psn_mod: Some((16, 5)), nth: (1, u64::MAX), ..Rule::new(Action::Corrupt(127)) },
        Rule { every: 4, nth: (1, 6), ..Rule::new(Action::Duplicate) },
        Rule { kind: Matched::Cnp, nth: (1, 1), ..Rule::new(Action::Mark) },
    ];
    settings
}

#[test]
fn every_key_arrives_where_it_belongs() {
    let config = parse("all.toml", ALL).unwrap();
    assert_eq!(config.settings, expected());
    let links = [
        Link::Unix { bind: "a".into(), peer: "b".into() },
        Link::Packet("eth0".into()),
        Link::Tap("eth1".into()),
        Link::Tap("tap0".into()),
        Link::Pcap("file".into()),
        Link::None,
    ];
    assert_eq!(config.links, links);
    assert_eq!(config.warnings, [""; 0], "the literal rule has no need of a long ring");
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = parse("two.toml", "[[port]]\n[[port]]").unwrap();
    let mut defaults = Settings::of_ports(2);
    defaults.themis.mode = Mode::Sound;
    assert_eq!((&config.settings, config.links), (&defaults, vec![Link::None, Link::None]));
    let fabric = |text: &str| parse("x", &format!("[[port]]\n{text}")).unwrap().settings;
    assert_eq!(fabric("[fabric]\nspines = 1").spines, [Spine::default()]);
    assert_eq!(fabric("[fabric]\nspines = 1").seed, 1);
    let marking = fabric("[classes]\necn = { kmin = \"1B\", kmax = \"1B\" }").classes.marking;
    let always = Marking { kmin: 1, kmax: 1, pmax: Chance::ALWAYS, at: MarkAt::Dequeue };
    assert_eq!(marking, [Some(always); 8]);
    assert_eq!(fabric("[[event]]\non = { every = 2 }\ndo = \"stop\"").events[0].nth, (1, u64::MAX));
}

/// A change of the whole fabric, and the place and the text of the error.
#[test]
fn each_mistake_is_named_with_its_place() {
    let mut unlike = Vec::new();
    for (from, to, place, message) in [
        ("spines = 3", "spines = 1025", "3:10", "expected a whole number from 1 to 1024"),
        ("spines = 3", "spines = -1", "3:10", "expected a whole number from 1 to 1024"),
        ("loss = 0.25", "loss = 1.01", "7:8", "expected a number from 0 to 1"),
        ("loss = 0.25", "loss = true", "7:8", "expected a number from 0 to 1"),
        ("\"2Gbps\"", "\"0bps\"", "8:8", "a rate must be more than 0"),
        ("\"10us\"", "\"10\"", "4:9", "the unit is missing: expected a quantity such as \"200us\""),
        ("\"10us\"", "\"1.2.3us\"", "4:9", "expected a quantity such as \"200us\""),
        ("\"10us\"", "\"99999999999s\"", "4:9", "expected a quantity such as \"200us\""),
        (
            "\"10us\"",
            "\"10 parsecs\"",
            "4:9",
            "unknown unit `parsecs`: the nearest of 4 names are `ns`, `us`, `ms`",
        ),
        ("[fabric]", "[fabri]", "2:2", "unknown key `fabri`: did you mean `fabric`?"),
        ("index = 1\n", "", "12:1", "`index` is missing: the number of the spine, from 0"),
        ("index = 1", "index = 3", "13:9", "expected a whole number from 0 to 2"),
        (
            "\"2s\", \"3s\"",
            "\"2s\", \"2s\"",
            "18:8",
            "expected pairs of rising times, from and to, such as [\"5s\", \"8s\"]",
        ),
        (", peer = \"b\"", "", "20:8", "`peer` is missing: the path of a socket"),
        (
            "tap = \"eth1\"",
            "packet = \"e\"\ntap = \"e\"",
            "30:7",
            "a port has one of `unix`, `packet`, `tap` and `pcap`; `tap` is one more",
        ),
        ("uplink = true", "uplink = 1", "30:10", "expected true or false"),
        (
            "0a:00:00:00:00:01",
            "0a:00:00:00:00:01:02",
            "34:13",
            "expected a MAC address such as \"52:54:00:00:00:01\"",
        ),
        (
            "0a:00:00:00:00:01",
            "0a:00:00:00:00",
            "34:13",
            "expected a MAC address such as \"52:54:00:00:00:01\"",
        ),
        (
            "stations = [\"0a:00:00:00:00:01\", \"0a:00:00:00:00:02\"]",
            "stations = 1",
            "34:12",
            "expected a list in [ ]",
        ),
        ("\"literal\"", "1", "42:8", "expected a text in quotes"),
        ("\"literal\"", "\"no\"", "42:8", "unknown word `no`: expected one of `sound`, `literal`, `off`"),
        (
            "max-connections = 512",
            "max-connections = 0",
            "45:19",
            "expected a whole number from 1 to 1048576",
        ),
        (", qp = 16777215", "", "52:5", "`qp` is missing"),
        ("16777215", "16777216", "52:29", "expected a whole number from 0 to 16777215"),
        ("ip = \"10.0.0.1\", ", "", "52:5", "`ip` is missing"),
        ("10.0.0.1", "10.0.0", "52:12", "expected an IP address such as \"10.0.0.1\""),
        (
            "b = { ip = \"fd00::2\", qp = 0 }",
            "",
            "51:1",
            "`b` is missing: an end such as { ip = \"10.0.0.1\", qp = 17 }",
        ),
        ("control = 4", "control = 8", "56:11", "expected a whole number from 0 to 7"),
        ("7 = 1000", "8 = 1000", "60:20", "expected a class from 0 to 7, not `8`"),
        ("7 = 1000", "7 = 1001", "60:24", "expected a whole number from 1 to 1000"),
        ("weights = { 0 = 3, 7 = 1000 }", "weights = 1", "60:11", "expected a table `weights`"),
        ("kmin = \"1KiB\", ", "", "61:7", "`kmin` is missing: a queue depth such as \"40KB\""),
        ("\"2MiB\"", "\"1023B\"", "61:31", "`kmax` is less than `kmin`"),
        ("\"100KB\"", "\"200001B\"", "62:61", "`xon` is more than `xoff`"),
        ("alpha = 0.5", "alpha = 65", "62:34", "expected a number from 0.01 to 64"),
        ("do = \"ce\"", "", "72:1", "`do` is missing: what happens, such as \"drop\""),
        (
            "on = { kind = \"cnp\" }",
            "",
            "72:1",
            "`on` is missing: which packets, such as { from = \"h1\", kind = \"nack\" }",
        ),
        (
            "psn = \"+9\"",
            "psn = \"+16777216\"",
            "64:61",
            "expected a distance from the connection's first PSN, such as \"+50\"",
        ),
        ("\"2..3\"", "\"0..3\"", "64:73", "expected a count from 1, or a range such as \"1..\" or \"3..5\""),
        ("[16, 5]", "[16, 16]", "67:23", "expected a whole number from 0 to 15"),
        ("[16, 5]", "[16]", "67:18", "expected divisor and remainder, such as [16, 5]"),
        (
            "{ reorder = 8 }",
            "{ reorder = 8, delay = \"1s\" }",
            "65:6",
            "expected one of { delay = \"3ms\" }, { reorder = 3 } and { corrupt = 5 }",
        ),
        ("{ reorder = 8 }", "{ reorder = 65537 }", "65:18", "expected a whole number from 1 to 65536"),
        ("{ corrupt = 127 }", "{ corrupt = 128 }", "68:18", "expected a whole number from 0 to 127"),
    ] {
        assert!(ALL.contains(from), "{from}");
        let error = parse("all.toml", &ALL.replacen(from, to, 1)).unwrap_err().to_string();
        if !error.starts_with(&format!("all.toml:{place}: {message}")) {
            unlike.push(format!("{from} as {to}: {error}"));
        }
    }
    assert_eq!(unlike, [""; 0]);
    let path = parse("x", "[[path]]\nindex = 0\n[[port]]").unwrap_err();
    assert_eq!(path.message, "a path belongs to a spine: add a table [fabric] with `spines`");
}

#[test]
fn a_ring_that_is_too_short_for_the_last_hop_is_warned_of() {
    // A packet of 1106 B takes 0.885 us at 10 Gb/s, so the round trip of 20 us holds 23 packets.
    let warned = |ring: u32, keys: &str| {
        let text =
            format!("[[port]]\nlast-hop = \"10us\"\nrate = \"10Gbps\"\n{keys}\n[themis]\nring = {ring}");
        parse("x", &text).unwrap().warnings.len()
    };
    let least = (1..100).find(|ring| warned(*ring, "") == 0).unwrap();
    assert!((23..=27).contains(&least), "{least}");
    assert_eq!(warned(1, "uplink = true"), 0, "the switch behind an uplink has rings of its own");
}
