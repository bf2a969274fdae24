//! A fabric in TOML. Errors name file, line and column, say what was expected, and suggest the nearest word.
//!
//! ```
//! let text = r#"
//! [fabric]
//! spines = 4
//! delay = "200us"
//! spread = "2ms"
//! [[port]]
//! name = "h1"
//! unix = { bind = "run/sw1.sock", peer = "run/vm1.sock" }
//! [[port]]
//! name = "h2"
//! packet = "veth2"
//! "#;
//! let config = tor::config::parse("lab.toml", text)?;
//! assert_eq!((config.settings.spines.len(), config.links.len()), (4, 2));
//!
//! let error = tor::config::parse("lab.toml", "[fabric]\nspinse = 4\n").unwrap_err();
//! assert_eq!(error.to_string(), "lab.toml:2:1: unknown key `spinse`: did you mean `spines`?");
//! # Ok::<(), tor::config::Error>(())
//! ```

use crate::draw::Chance;
use crate::events::{Action, Matched, Rule};
use crate::guard::OnBlock;
use crate::paths::Spine;
use crate::qp::{Connection, End, Evidence};
use crate::queues::{CLASSES, MarkAt, Marking, Trust};
use crate::settings::{Mode, Port, Settings};
use crate::spray::{Spray, Steer};
use crate::units::{PortId, Rate, Span, Time};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::ops::Range;
use themis::memory;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wire::bth::Qpn;
use wire::ethernet::Address;

/// A fabric, and what its ports are joined to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The fabric.
    pub settings: Settings,
    /// By port: what it is joined to.
    pub links: Vec<Link>,
    /// What is allowed and probably not meant.
    pub warnings: Vec<String>,
}

/// What a port is joined to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nothing: for a check, or a replay that names its captures.
    None,
    /// A pair of Unix datagram sockets, as QEMU's `-netdev dgram` has them.
    Unix {
        /// Path of our socket.
        bind: String,
        /// Path of the other one.
        peer: String,
    },
    /// A network interface, by AF_PACKET.
    Packet(String),
    /// A TAP device.
    Tap(String),
    /// A capture to be replayed.
    Pcap(String),
}

/// A mistake in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// File, as the caller names it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl std::error::Error for Error {}

/// A mistake at a place in the text.
struct Fault {
    span: Range<usize>,
    message: String,
}

type Fallible<T> = Result<T, Fault>;

/// Reads a fabric. `file` is the name that errors carry.
///
/// # Errors
/// The text is not TOML, a key or a word is unknown, or a value is out of its range.
pub fn parse(file: &str, text: &str) -> Result<Config, Error> {
    read(text).map_err(|Fault { span, message }| {
        let mut at = span.start.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Error { file: file.to_owned(), line, column, message }
    })
}

fn read(text: &str) -> Fallible<Config> {
    let root = DeTable::parse(text)
        .map_err(|error| Fault { span: error.span().unwrap_or(0..0), message: error.message().to_owned() })?;
    let root = Section::new(
        root.get_ref(),
        0..0,
        &["fabric", "path", "port", "themis", "learning", "connection", "classes", "event"],
    )?;
    let mut settings = Settings::of_ports(0);
    settings.themis.mode = Mode::Sound;
    if let Some(fabric) = root.section(
        "fabric",
        &["spines", "delay", "spread", "jitter", "loss", "rate", "seed", "spray", "detection"],
    )? {
        read_fabric(&fabric, &mut settings)?;
    }
    for path in root.sections("path", &["index", "delay", "jitter", "loss", "rate", "down"])? {
        read_path(&path, &mut settings)?;
    }
    let mut links = Vec::new();
    let mut tors: Vec<String> = Vec::new();
    const PORT: [&str; 10] =
        ["name", "unix", "packet", "tap", "pcap", "rate", "last-hop", "tor", "uplink", "stations"];
    for port in root.sections("port", &PORT)? {
        read_port(&port, &mut settings, &mut links, &mut tors)?;
    }
    if settings.ports.is_empty() {
        return Err(Fault { span: 0..0, message: "there is no port: add a table [[port]] for each".into() });
    }
    const THEMIS: [&str; 7] = ["mode", "ring", "on-block", "max-connections", "idle", "steer", "verify"];
    let mut ring_span = 0..0;
    if let Some(themis) = root.section("themis", &THEMIS)? {
        ring_span = themis.get("ring").map_or(themis.span.clone(), Spanned::span);
        read_themis(&themis, &mut settings)?;
    }
    if let Some(learning) = root.section("learning", &["by"])?
        && let Some(by) = learning.list("by")?
    {
        let words = [("port+psn", Evidence::PortAndPsn), ("psn", Evidence::Psn)];
        settings.themis.learning = by.iter().map(|value| word(value, &words)).collect::<Fallible<_>>()?;
    }
    for connection in root.sections("connection", &["a", "b"])? {
        let (a, b) = (read_end(&connection, "a")?, read_end(&connection, "b")?);
        settings.themis.fixed.push(Connection { a, b });
    }
    const CLASSES_KEYS: [&str; 8] =
        ["lossless", "control", "dscp", "ecn", "trust", "weights", "watchdog", "buffer"];
    if let Some(classes) = root.section("classes", &CLASSES_KEYS)? {
        read_classes(&classes, &mut settings)?;
    }
    for event in root.sections("event", &["on", "do"])? {
        let rule = read_event(&event, &settings)?;
        settings.events.push(rule);
    }
    let ways = if settings.spines.is_empty() { settings.uplinks().count() } else { settings.spines.len() };
    if let Some(rule) = settings.themis.rule(ways.max(1) as u16)
        && let Err(error) = themis::Rule::new(rule)
    {
        return Err(Fault { span: ring_span, message: error.to_string() });
    }
    let warnings = warnings(&settings);
    Ok(Config { settings, links, warnings })
}

fn read_fabric(fabric: &Section<'_>, settings: &mut Settings) -> Fallible<()> {
    let Some(spines) = fabric.integer("spines", 1, 1024)? else {
        return Err(fabric.fault("`spines` is missing: the number of paths between two ToRs"));
    };
    let delay = fabric.span("delay")?.unwrap_or_default();
    let spread = fabric.span("spread")?.unwrap_or_default();
    let base = Spine {
        delay,
        jitter: fabric.span("jitter")?.unwrap_or_default(),
        loss: fabric.chance("loss")?.unwrap_or_default(),
        rate: fabric.rate("rate")?,
        down: Vec::new(),
    };
    settings.spines = (0..spines)
        .map(|i| {
            let later = u128::from(spread.nanos()) * u128::from(i) / u128::from((spines - 1).max(1));
            Spine { delay: delay + Span::from_nanos(later as u64), ..base.clone() }
        })
        .collect();
    settings.seed = fabric.integer("seed", 0, u64::MAX)?.unwrap_or(1);
    let words = [("psn", Spray::Psn), ("rps", Spray::Rps), ("ecmp", Spray::Ecmp)];
    settings.spray = fabric.word("spray", &words)?.unwrap_or_default();
    settings.detection = fabric.span("detection")?.unwrap_or_default();
    Ok(())
}

fn read_path(path: &Section<'_>, settings: &mut Settings) -> Fallible<()> {
    let most = settings.spines.len() as u64;
    if most == 0 {
        return Err(path.fault("a path belongs to a spine: add a table [fabric] with `spines`"));
    }
    let Some(index) = path.integer("index", 0, most - 1)? else {
        return Err(path.fault("`index` is missing: the number of the spine, from 0"));
    };
    let spine = &mut settings.spines[index as usize];
    spine.delay = path.span("delay")?.unwrap_or(spine.delay);
    spine.jitter = path.span("jitter")?.unwrap_or(spine.jitter);
    spine.loss = path.chance("loss")?.unwrap_or(spine.loss);
    spine.rate = path.rate("rate")?.or(spine.rate);
    if let Some(down) = path.list("down")? {
        let times = down.iter().map(|value| quantity(value, &TIMES)).collect::<Fallible<Vec<u64>>>()?;
        let (pairs, rest) = times.as_chunks::<2>();
        let ordered = times.windows(2).all(|pair| pair[0] < pair[1]);
        if !rest.is_empty() || !ordered {
            let message = "expected pairs of rising times, from and to, such as [\"5s\", \"8s\"]";
            return Err(Fault { span: path.at("down"), message: message.into() });
        }
        spine.down =
            pairs.iter().map(|[from, to]| (Time::from_nanos(*from), Time::from_nanos(*to))).collect();
    }
    Ok(())
}

fn read_port(
    port: &Section<'_>,
    settings: &mut Settings,
    links: &mut Vec<Link>,
    tors: &mut Vec<String>,
) -> Fallible<()> {
    let n = settings.ports.len();
    if n == usize::from(u16::MAX) - 1 {
        return Err(port.fault("there are too many ports"));
    }
    let name = match port.get("name") {
        Some(value) => text(value)?.to_owned(),
        None => format!("h{}", n + 1),
    };
    if let Some(c) = name.chars().find(|c| "\"\\".contains(*c)) {
        // Metrics have names in quotes.
        return Err(Fault {
            span: port.at("name"),
            message: format!("expected a name without `{c}`, found `{name}`"),
        });
    }
    if settings.ports.iter().any(|other| other.name == name) {
        return Err(Fault { span: port.at("name"), message: format!("two ports have the name `{name}`") });
    }
    let uplink = port.boolean("uplink")?.unwrap_or(false);
    // Each host has a ToR of its own, unless ports name one. All uplinks belong to the first ToR.
    let tor = match port.get("tor") {
        Some(value) => format!("tor {}", text(value)?),
        None if uplink => tors.first().cloned().unwrap_or_else(|| format!("port {name}")),
        None => format!("port {name}"),
    };
    let leaf = tors.iter().position(|other| *other == tor).unwrap_or_else(|| {
        tors.push(tor);
        tors.len() - 1
    });
    let mut stations = Vec::new();
    for value in port.list("stations")?.unwrap_or_default() {
        stations.push(address(value)?);
    }
    settings.ports.push(Port {
        name,
        leaf: leaf as u16,
        uplink,
        rate: port.rate("rate")?,
        last_hop: port.span("last-hop")?.unwrap_or_default(),
        stations,
    });
    let mut link = Link::None;
    for key in ["unix", "packet", "tap", "pcap"] {
        let Some(value) = port.get(key) else { continue };
        if link != Link::None {
            let message =
                format!("a port has one of `unix`, `packet`, `tap` and `pcap`; `{key}` is one more");
            return Err(Fault { span: port.at(key), message });
        }
        link = match key {
            "unix" => {
                let Some(sockets) = port.section("unix", &["bind", "peer"])? else { continue };
                let path = |key: &str| match sockets.get(key) {
                    Some(value) => Ok(text(value)?.to_owned()),
                    None => Err(sockets.fault(&format!("`{key}` is missing: the path of a socket"))),
                };
                Link::Unix { bind: path("bind")?, peer: path("peer")? }
            }
            "packet" => Link::Packet(text(value)?.to_owned()),
            "tap" => Link::Tap(text(value)?.to_owned()),
            _ => Link::Pcap(text(value)?.to_owned()),
        };
    }
    links.push(link);
    Ok(())
}

fn read_themis(themis: &Section<'_>, settings: &mut Settings) -> Fallible<()> {
    let own = &mut settings.themis;
    let modes = [("sound", Mode::Sound), ("literal", Mode::Literal), ("off", Mode::Off)];
    own.mode = themis.word("mode", &modes)?.unwrap_or(own.mode);
    own.ring = themis.integer("ring", 1, u16::MAX.into())?.map_or(own.ring, |ring| ring as u16);
    let blocks = [("ack", OnBlock::Ack), ("drop", OnBlock::Drop)];
    own.on_block = themis.word("on-block", &blocks)?.unwrap_or_default();
    let most = themis.integer("max-connections", 1, 1 << 20)?;
    own.connections = most.map_or(own.connections, |most| most as usize);
    own.idle = themis.span("idle")?.unwrap_or(own.idle);
    own.verify = themis.boolean("verify")?.unwrap_or(own.verify);
    let steers = [("port", Steer::Port), ("xor-undo", Steer::XorUndo), ("xor-icrc", Steer::XorIcrc)];
    settings.steer = themis.word("steer", &steers)?.unwrap_or_default();
    Ok(())
}

fn read_end(connection: &Section<'_>, key: &str) -> Fallible<End> {
    let Some(end) = connection.section(key, &["ip", "qp"])? else {
        return Err(
            connection.fault(&format!("`{key}` is missing: an end such as {{ ip = \"10.0.0.1\", qp = 17 }}"))
        );
    };
    let Some(value) = end.get("ip") else { return Err(end.fault("`ip` is missing")) };
    let ip: IpAddr = text(value)?.parse().map_err(|_| Fault {
        span: value.span(),
        message: "expected an IP address such as \"10.0.0.1\"".into(),
    })?;
    let Some(qp) = end.integer("qp", 0, 0xFF_FFFF)? else { return Err(end.fault("`qp` is missing")) };
    Ok(End { ip, qp: Qpn::new(qp as u32) })
}

fn read_classes(classes: &Section<'_>, settings: &mut Settings) -> Fallible<()> {
    let own = &mut settings.classes;
    let class = |value: &Value<'_>| integer(value, 0, CLASSES as u64 - 1).map(|class| class as usize);
    for value in classes.list("lossless")?.unwrap_or_default() {
        own.lossless[class(value)?] = true;
    }
    if let Some(value) = classes.get("control") {
        own.strict = [false; CLASSES];
        own.strict[class(value)?] = true;
    }
    if let Some(map) = classes.table("dscp")? {
        for (key, value) in map {
            let dscp: Option<usize> = key.get_ref().parse().ok().filter(|dscp| *dscp < 64);
            let Some(dscp) = dscp else {
                let message = format!("expected a DSCP from 0 to 63, not `{}`", key.get_ref());
                return Err(Fault { span: key.span(), message });
            };
            own.dscp[dscp] = class(value)? as u8;
        }
    }
    let trusts = [("dscp", Trust::Dscp), ("pcp", Trust::Pcp)];
    own.trust = classes.word("trust", &trusts)?.unwrap_or_default();
    if let Some(map) = classes.table("weights")? {
        for (key, value) in map {
            let class: Option<usize> = key.get_ref().parse().ok().filter(|class| *class < CLASSES);
            let Some(class) = class else {
                let message = format!("expected a class from 0 to 7, not `{}`", key.get_ref());
                return Err(Fault { span: key.span(), message });
            };
            own.weights[class] = integer(value, 1, 1000)? as u32;
        }
    }
    own.watchdog = classes.span("watchdog")?.unwrap_or(own.watchdog);
    if let Some(ecn) = classes.section("ecn", &["kmin", "kmax", "pmax", "at", "classes"])? {
        let size = |key: &str| match ecn.size(key)? {
            Some(size) => Ok(size),
            None => Err(ecn.fault(&format!("`{key}` is missing: a queue depth such as \"40KB\""))),
        };
        let places = [("dequeue", MarkAt::Dequeue), ("enqueue", MarkAt::Enqueue)];
        let marking = Marking {
            kmin: size("kmin")?,
            kmax: size("kmax")?,
            pmax: ecn.chance("pmax")?.unwrap_or(Chance::ALWAYS),
            at: ecn.word("at", &places)?.unwrap_or_default(),
        };
        if marking.kmin > marking.kmax {
            return Err(Fault { span: ecn.at("kmax"), message: "`kmax` is less than `kmin`".into() });
        }
        own.marking = match ecn.list("classes")? {
            None => [Some(marking); CLASSES],
            Some(list) => {
                let mut by_class = [None; CLASSES];
                for value in list {
                    by_class[class(value)?] = Some(marking);
                }
                by_class
            }
        };
    }
    if let Some(buffer) = classes.section("buffer", &["size", "alpha", "xoff", "xon"])? {
        let own = &mut own.buffer;
        own.size = buffer.size("size")?.unwrap_or(own.size);
        own.xoff = buffer.size("xoff")?.unwrap_or(own.xoff);
        own.xon = buffer.size("xon")?.unwrap_or(own.xon);
        if let Some(value) = buffer.get("alpha") {
            own.alpha_percent = (number(value, 0.01, 64.0)? * 100.0).round() as u64;
        }
        if own.xon > own.xoff {
            return Err(Fault { span: buffer.at("xon"), message: "`xon` is more than `xoff`".into() });
        }
    }
    Ok(())
}

fn read_event(event: &Section<'_>, settings: &Settings) -> Fallible<Rule> {
    let Some(done) = event.get("do") else {
        return Err(event.fault("`do` is missing: what happens, such as \"drop\""));
    };
    let mut rule = Rule::new(read_action(event, done)?);
    let Some(on) = event.section("on", &["from", "kind", "qp", "psn", "psn-mod", "nth", "every"])? else {
        return Err(event.fault("`on` is missing: which packets, such as { from = \"h1\", kind = \"nack\" }"));
    };
    if let Some(value) = on.get("from") {
        let ports = (0..).map(PortId).zip(&settings.ports);
        let words: Vec<(&str, PortId)> = ports.map(|(id, port)| (port.name.as_str(), id)).collect();
        rule.from = Some(word(value, &words)?);
    }
    let kinds = [
        ("data", Matched::Data),
        ("ack", Matched::Ack),
        ("nack", Matched::Nack),
        ("rnr", Matched::Reply),
        ("cnp", Matched::Cnp),
        ("read-request", Matched::ReadRequest),
        ("read-response", Matched::Response),
    ];
    rule.kind = on.word("kind", &kinds)?.unwrap_or_default();
    rule.connection = on.integer("qp", 1, u32::MAX.into())?.map(|number| number as u32);
    if let Some(value) = on.get("psn") {
        let distance = text(value)?.strip_prefix('+').and_then(|n| n.parse().ok()).filter(|n| *n < 1 << 24);
        rule.psn = Some(distance.ok_or_else(|| Fault {
            span: value.span(),
            message: "expected a distance from the connection's first PSN, such as \"+50\"".into(),
        })?);
    }
    if let Some(list) = on.list("psn-mod")? {
        let [divisor, rest] = list[..] else {
            let message = "expected divisor and remainder, such as [16, 5]";
            return Err(Fault { span: on.at("psn-mod"), message: message.into() });
        };
        let divisor = integer(divisor, 1, 1 << 24)?;
        rule.psn_mod = Some((divisor as u32, integer(rest, 0, divisor - 1)? as u32));
    }
    rule.every = on.integer("every", 1, u64::MAX)?.unwrap_or(1);
    rule.nth = match on.get("nth") {
        // Without a count, a rule with `every` or a remainder applies to all packets, and others to the first.
        None if rule.every > 1 || rule.psn_mod.is_some() => (1, u64::MAX),
        None => (1, 1),
        Some(value) => read_range(value)?,
    };
    Ok(rule)
}

/// A number, or a text such as "3..", "..5" or "3..5" with both ends included.
fn read_range(value: &Value<'_>) -> Fallible<(u64, u64)> {
    if let DeValue::Integer(_) = value.get_ref() {
        let n = integer(value, 1, u64::MAX)?;
        return Ok((n, n));
    }
    let range = text(value)?.split_once("..").and_then(|(from, to)| {
        let end = |text: &str, other| if text.is_empty() { Some(other) } else { text.parse().ok() };
        Some((end(from, 1)?, end(to, u64::MAX)?))
    });
    range.filter(|(from, to)| *from >= 1 && from <= to).ok_or_else(|| Fault {
        span: value.span(),
        message: "expected a count from 1, or a range such as \"1..\" or \"3..5\"".into(),
    })
}

fn read_action(event: &Section<'_>, done: &Value<'_>) -> Fallible<Action> {
    if let DeValue::String(_) = done.get_ref() {
        let words = [
            ("drop", Action::Drop),
            ("ce", Action::Mark),
            ("corrupt", Action::Corrupt(0)),
            ("duplicate", Action::Duplicate),
            ("stop", Action::Stop),
        ];
        return word(done, &words);
    }
    let Some(table) = event.section("do", &["delay", "reorder", "corrupt"])? else {
        return Err(event.fault("`do` is missing"));
    };
    let delay = table.span("delay")?.map(Action::Delay);
    let reorder = table.integer("reorder", 1, 1 << 16)?.map(|frames| Action::Reorder(frames as u32));
    let corrupt = table.integer("corrupt", 0, 127)?.map(|bit| Action::Corrupt(bit as u8));
    match (delay, reorder, corrupt) {
        (Some(action), None, None) | (None, Some(action), None) | (None, None, Some(action)) => Ok(action),
        _ => {
            let message = "expected one of { delay = \"3ms\" }, { reorder = 3 } and { corrupt = 5 }";
            Err(Fault { span: done.span(), message: message.into() })
        }
    }
}

/// Bytes on the wire of a packet with IB's MTU of 1024, the usual one of rdma_rxe over Ethernet's 1500.
const USUAL_PACKET: u64 = 1106;

fn warnings(settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    if settings.themis.mode == Mode::Sound {
        for port in settings.ports.iter().filter(|port| !port.uplink) {
            let Some(rate) = port.rate else { continue };
            let pico = |span: Span| span.nanos().saturating_mul(1000);
            let needs = memory::sound_ring_entries(pico(port.last_hop), pico(rate.time_of(USUAL_PACKET)), 0);
            if needs > settings.themis.ring.into() {
                warnings.push(format!(
                    "themis.ring = {} is too short for the last hop of {}: {needs} packets of 1 kB leave in its round trip, \
                     so NACKs for late packets may pass",
                    settings.themis.ring, port.name
                ));
            }
        }
    }
    warnings
}

/// A value of the text.
type Value<'a> = Spanned<DeValue<'a>>;

/// A table of the text with known keys.
struct Section<'a> {
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

impl<'a> Section<'a> {
    fn new(table: &'a DeTable<'a>, span: Range<usize>, keys: &[&str]) -> Fallible<Self> {
        for (key, _) in table {
            if !keys.contains(&key.get_ref().as_ref()) {
                let message = format!("unknown key `{}`: {}", key.get_ref(), suggestion(key.get_ref(), keys));
                return Err(Fault { span: key.span(), message });
            }
        }
        Ok(Section { table, span })
    }

    fn get(&self, key: &str) -> Option<&'a Value<'a>> {
        self.table.get(key)
    }

    fn at(&self, key: &str) -> Range<usize> {
        self.get(key).map_or(self.span.clone(), Spanned::span)
    }

    fn fault(&self, message: &str) -> Fault {
        Fault { span: self.span.clone(), message: message.to_owned() }
    }

    fn table(&self, key: &str) -> Fallible<Option<&'a DeTable<'a>>> {
        match self.get(key).map(|value| (value, value.get_ref())) {
            None => Ok(None),
            Some((_, DeValue::Table(table))) => Ok(Some(table)),
            Some((value, _)) => {
                Err(Fault { span: value.span(), message: format!("expected a table `{key}`") })
            }
        }
    }

    fn section(&self, key: &str, keys: &[&str]) -> Fallible<Option<Section<'a>>> {
        self.table(key)?.map(|table| Section::new(table, self.at(key), keys)).transpose()
    }

    /// The tables of an array such as `[[port]]`.
    fn sections(&self, key: &str, keys: &[&str]) -> Fallible<Vec<Section<'a>>> {
        let wrong = |span| Fault { span, message: format!("expected tables [[{key}]]") };
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let DeValue::Array(array) = value.get_ref() else { return Err(wrong(value.span())) };
        let section = |value: &'a Value<'a>| match value.get_ref() {
            DeValue::Table(table) => Section::new(table, value.span(), keys),
            _ => Err(wrong(value.span())),
        };
        array.iter().map(section).collect()
    }

    fn list(&self, key: &str) -> Fallible<Option<Vec<&'a Value<'a>>>> {
        match self.get(key).map(|value| (value, value.get_ref())) {
            None => Ok(None),
            Some((_, DeValue::Array(array))) => Ok(Some(array.iter().collect())),
            Some((value, _)) => Err(Fault { span: value.span(), message: "expected a list in [ ]".into() }),
        }
    }

    fn integer(&self, key: &str, least: u64, most: u64) -> Fallible<Option<u64>> {
        self.get(key).map(|value| integer(value, least, most)).transpose()
    }

    fn boolean(&self, key: &str) -> Fallible<Option<bool>> {
        match self.get(key).map(|value| (value, value.get_ref())) {
            None => Ok(None),
            Some((_, DeValue::Boolean(value))) => Ok(Some(*value)),
            Some((value, _)) => Err(Fault { span: value.span(), message: "expected true or false".into() }),
        }
    }

    fn chance(&self, key: &str) -> Fallible<Option<Chance>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        Ok(Chance::new(number(value, 0.0, 1.0)?))
    }

    fn span(&self, key: &str) -> Fallible<Option<Span>> {
        Ok(self.get(key).map(|value| quantity(value, &TIMES)).transpose()?.map(Span::from_nanos))
    }

    fn size(&self, key: &str) -> Fallible<Option<u64>> {
        self.get(key).map(|value| quantity(value, &SIZES)).transpose()
    }

    fn rate(&self, key: &str) -> Fallible<Option<Rate>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match Rate::from_bits(quantity(value, &RATES)?) {
            Some(rate) => Ok(Some(rate)),
            None => Err(Fault { span: value.span(), message: "a rate must be more than 0".into() }),
        }
    }

    fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Fallible<Option<T>> {
        self.get(key).map(|value| word(value, words)).transpose()
    }
}

fn text<'a>(value: &'a Value<'_>) -> Fallible<&'a str> {
    let wrong = |message: String| Err(Fault { span: value.span(), message });
    let DeValue::String(text) = value.get_ref() else { return wrong("expected a text in quotes".into()) };
    match text.chars().find(|c| c.is_control() || DIRECTIONS.contains(c)) {
        None => Ok(Cow::as_ref(text)),
        Some(c) => wrong(format!("expected a text without control characters, found U+{:04X}", c as u32)),
    }
}

/// Characters that change the direction of the text around them (Unicode Standard Annex 9, section 2).
const DIRECTIONS: [char; 12] = [
    '\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

fn word<T: Copy>(value: &Value<'_>, words: &[(&str, T)]) -> Fallible<T> {
    let found = text(value)?;
    match words.iter().find(|(name, _)| *name == found) {
        Some((_, meaning)) => Ok(*meaning),
        None => {
            let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
            let message = format!("unknown word `{found}`: {}", suggestion(found, &names));
            Err(Fault { span: value.span(), message })
        }
    }
}

fn integer(value: &Value<'_>, least: u64, most: u64) -> Fallible<u64> {
    let found = match value.get_ref() {
        DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix()).ok(),
        _ => None,
    };
    found.filter(|found| (least..=most).contains(found)).ok_or_else(|| Fault {
        span: value.span(),
        message: format!("expected a whole number from {least} to {most}"),
    })
}

fn number(value: &Value<'_>, least: f64, most: f64) -> Fallible<f64> {
    let found = match value.get_ref() {
        DeValue::Integer(integer) => integer.as_str().parse().ok(),
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => None,
    };
    found.filter(|found: &f64| (least..=most).contains(found)).ok_or_else(|| Fault {
        span: value.span(),
        message: format!("expected a number from {least} to {most}"),
    })
}

/// A kind of quantity.
struct Quantity {
    example: &'static str,
    units: &'static [(&'static str, u64)],
}

const TIMES: Quantity = Quantity {
    example: "\"200us\"",
    units: &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)],
};
const RATES: Quantity = Quantity {
    example: "\"10Gbps\"",
    units: &[("bps", 1), ("kbps", 1_000), ("Mbps", 1_000_000), ("Gbps", 1_000_000_000)],
};
const SIZES: Quantity = Quantity {
    example: "\"40KB\"",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
};

fn quantity(value: &Value<'_>, kind: &Quantity) -> Fallible<u64> {
    let fault = |message| Err(Fault { span: value.span(), message });
    let DeValue::String(text) = value.get_ref() else {
        return fault(format!("expected a quantity with its unit, such as {}", kind.example));
    };
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let names: Vec<&str> = kind.units.iter().map(|(name, _)| *name).collect();
    let Some((_, factor)) = kind.units.iter().find(|(name, _)| *name == unit.trim()) else {
        let message = match unit.trim() {
            "" => format!("the unit is missing: expected a quantity such as {}", kind.example),
            unit => format!("unknown unit `{unit}`: {}", suggestion(unit, &names)),
        };
        return fault(message);
    };
    let whole = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(*factor));
    let part = || digits.parse::<f64>().ok().map(|n| n * *factor as f64).filter(|n| *n < u64::MAX as f64);
    match whole.or_else(|| part().map(|n| n.round() as u64)) {
        Some(amount) => Ok(amount),
        None => fault(format!("expected a quantity such as {}", kind.example)),
    }
}

fn address(value: &Value<'_>) -> Fallible<Address> {
    let mut parts = text(value)?.split(':').map(|part| u8::from_str_radix(part, 16).ok());
    let bytes: [Option<u8>; 6] = std::array::from_fn(|_| parts.next().flatten());
    match (bytes, parts.next()) {
        ([Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)], None) => Ok(Address([a, b, c, d, e, f])),
        _ => Err(Fault {
            span: value.span(),
            message: "expected a MAC address such as \"52:54:00:00:00:01\"".into(),
        }),
    }
}

/// "did you mean ...?" with the nearest word. If none is near, the words if they are few, else the nearest three of them.
fn suggestion(wrong: &str, words: &[&str]) -> String {
    let lower = wrong.to_lowercase().replace('_', "-");
    let distance = |word: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &lower);
    let nearest = words.iter().min_by_key(|word| distance(word));
    match nearest {
        Some(word) if distance(word) <= 1 + word.len().min(wrong.len()) / 3 => {
            format!("did you mean `{word}`?")
        }
        _ => {
            const FEW: usize = 3;
            let mut by_distance = words.to_vec();
            if words.len() > FEW {
                by_distance.sort_by_key(|word| distance(word));
                by_distance.truncate(FEW);
            }
            let list: Vec<String> = by_distance.iter().map(|word| format!("`{word}`")).collect();
            match words.len() {
                0..=FEW => format!("expected one of {}", list.join(", ")),
                all => format!("the nearest of {all} names are {}", list.join(", ")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAB: &str = r#"
[fabric]
spines = 4
delay = "200us"
spread = "2ms"
jitter = "0us"
loss = 0.0
seed = 1
[[path]]
index = 2
loss = 0.01
rate = "10Mbps"
down = ["5s", "8s"]
[[port]]
name = "h1"
unix = { bind = "run/sw1.sock", peer = "run/vm1.sock" }
rate = "40Mbps"
last-hop = "100us"
[[port]]
name = "h2"
tap = "t2"
stations = ["52:54:00:00:00:02"]
[themis]
mode = "sound"
ring = 256
on-block = "ack"
max-connections = 4096
idle = "60s"
steer = "port"
[learning]
by = ["port+psn", "psn"]
[[connection]]
a = { ip = "10.0.0.1", qp = 17 }
b = { ip = "fd00::2", qp = 18 }
[classes]
lossless = [3, 4]
control = 6
dscp = { 26 = 3, 48 = 6 }
ecn = { kmin = "40KB", kmax = "160KB", pmax = 0.2, at = "dequeue" }
[[event]]
on = { from = "h2", qp = 1, psn = "+50", nth = 1 }
do = "drop"
[[event]]
on = { from = "h1", kind = "nack", nth = "1.." }
do = { delay = "2ms" }
"#;

    #[test]
    fn every_key_of_a_lab_is_read() {
        let config = parse("lab.toml", LAB).unwrap();
        let settings = &config.settings;
        let delays: Vec<u64> = settings.spines.iter().map(|spine| spine.delay.nanos() / 1000).collect();
        assert_eq!(delays, [200, 866, 1533, 2200]);
        let second = |n: u64| Time::from_nanos(n * 1_000_000_000);
        assert_eq!(settings.spines[2].down, [(second(5), second(8))]);
        assert_eq!(
            (settings.spines[2].loss, settings.spines[1].loss),
            (Chance::new(0.01).unwrap(), Chance::NEVER)
        );
        assert_eq!(config.links[1], Link::Tap("t2".into()));
        assert_eq!(settings.ports[0].rate, Rate::from_bits(40_000_000));
        assert_eq!((settings.ports[0].leaf, settings.ports[1].leaf), (0, 1));
        assert_eq!(settings.ports[1].stations, [Address([0x52, 0x54, 0, 0, 0, 2])]);
        assert_eq!(settings.themis.fixed[0].b.qp, Qpn::new(18));
        assert_eq!((settings.classes.dscp[26], settings.classes.dscp[0]), (3, 0));
        assert_eq!(settings.classes.marking[0].unwrap().kmax, 160_000);
        assert_eq!((settings.events[0].psn, settings.events[0].nth), (Some(50), (1, 1)));
        assert_eq!(settings.events[1].nth, (1, u64::MAX));
        assert_eq!(settings.events[1].action, Action::Delay(Span::from_millis(2)));
        assert!(config.warnings.is_empty());
        crate::Tor::new(settings);
    }

    #[test]
    fn an_error_names_the_place_and_the_nearest_word() {
        let wrong =
            |from: &str, to: &str| parse("lab.toml", &LAB.replacen(from, to, 1)).unwrap_err().to_string();
        assert_eq!(wrong("mode =", "mod ="), "lab.toml:24:1: unknown key `mod`: did you mean `mode`?");
        assert_eq!(
            wrong("\"sound\"", "\"soud\""),
            "lab.toml:24:8: unknown word `soud`: did you mean `sound`?"
        );
        assert_eq!(
            wrong("\"200us\"", "200"),
            "lab.toml:4:9: expected a quantity with its unit, such as \"200us\""
        );
        assert_eq!(wrong("200us", "200uss"), "lab.toml:4:9: unknown unit `uss`: did you mean `us`?");
        assert_eq!(wrong("ring = 256", "ring = 0"), "lab.toml:25:8: expected a whole number from 1 to 65535");
        assert_eq!(wrong("index = 2", "index = 4"), "lab.toml:10:9: expected a whole number from 0 to 3");
        assert_eq!(wrong("26 = 3", "64 = 3"), "lab.toml:38:10: expected a DSCP from 0 to 63, not `64`");
        assert_eq!(wrong("\"h2\"", "\"h1\""), "lab.toml:20:8: two ports have the name `h1`");
        let told = "lab.toml:20:8: expected a text without control characters, found U+";
        assert_eq!(wrong("\"h2\"", "\"h\\u001b[2J\""), format!("{told}001B"));
        assert_eq!(wrong("\"h2\"", "\"h\\u202eg\""), format!("{told}202E"));
        assert_eq!(wrong("\"h2\"", "'h\"2'"), "lab.toml:20:8: expected a name without `\"`, found `h\"2`");
        assert!(wrong("\"nack\"", "\"nak\"").ends_with("unknown word `nak`: did you mean `nack`?"));
        assert!(wrong("\"+50\"", "\"50\"").contains("such as \"+50\""));
        assert!(wrong("\"1..\"", "\"5..2\"").contains("a range such as"));
        assert!(wrong("\"drop\"", "\"dorp\"").contains("did you mean `drop`?"));
        assert!(wrong("spines = 4", "").contains("`spines` is missing"));
        assert!(wrong("[[path]]", "[path]").contains("expected tables [[path]]"));
        assert!(wrong("\"5s\", \"8s\"", "\"5s\"").contains("pairs of rising times"));
        assert!(parse("x", "").unwrap_err().message.contains("[[port]]"));
    }

    #[test]
    fn a_short_ring_is_warned_of() {
        let text = LAB.replace("ring = 256", "ring = 2");
        let warnings = parse("lab.toml", &text).unwrap().warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("last hop of h1"), "{warnings:?}");
    }

    proptest! {
        #[test]
        fn no_text_panics(at in any::<prop::sample::Index>(), to in ".{0,6}", len in 0..8usize) {
            let mut text = LAB.to_owned();
            let at = at.index(text.len());
            let end = (at + len).min(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(end) {
                text.replace_range(at..end, &to);
            }
            if let Ok(config) = parse("x", &text) {
                crate::Tor::new(&config.settings);
            }
        }
    }
}
