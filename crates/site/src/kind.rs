//! What a file is: its content decides, not its name.

use crate::sonic::SIGNS;
use files::tree::{self, Bad, Node};

/// A file's content, parsed as far as its kind needs.
#[derive(Debug)]
pub(crate) enum Content {
    /// `config_db.json`, or a part of it.
    Sonic(Node),
    Infragraph(Node),
    Containerlab(Node),
    Nvue(Vec<Node>),
    PgLookup,
    LlrLookup,
    MlnxQos,
    Mlxconfig,
    /// Lines of `name value`, such as a dump of sysfs.
    NicValues,
    /// Variables of NCCL.
    Nccl,
    Lldp,
    Cables,
    Dot,
    Ibnetdiscover,
}

/// Why a file is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It looks like something that is not read.
    Unread(&'static str, &'static str),
    /// It is something that is read, and wrong.
    Wrong(&'static str, Bad),
    Empty,
    Unknown,
}

/// What is not read: signs in the text, all of which a file has, its name, and what to do instead.
const UNREAD: &[(&[&str], &str, &str)] = &[
    (&["system {", "host-name"], "a configuration of Junos", BY_HAND),
    (&["set system host-name"], "a configuration of Junos", BY_HAND),
    (&["class-of-service {"], "a configuration of Junos", BY_HAND),
    (&["feature nxapi"], "a configuration of NX-OS", BY_HAND),
    (&["boot nxos"], "a configuration of NX-OS", BY_HAND),
    (&["vdc ", "limit-resource"], "a configuration of NX-OS", BY_HAND),
    (&["boot system flash:", "transceiver qsfp"], "a configuration of EOS", BY_HAND),
    (&["service routing protocols model"], "a configuration of EOS", BY_HAND),
    (&["spanning-tree mode mstp", "hostname "], "a configuration of EOS", BY_HAND),
    (&["interface Ethernet", "no aaa root"], "a configuration of EOS", BY_HAND),
    (
        &["<DeviceMiniGraph"],
        "a minigraph of SONiC",
        "`sonic-cfggen -m FILE --print-data` writes the config_db.json of it",
    ),
    (&["<system", "<cpu"], "a topology of NCCL", "`ropewalk busbw --topo FILE` reads it"),
];

/// What to do with a configuration of another vendor.
const BY_HAND: &str = "enter its thresholds by hand; the page \"My switch's configuration\" has a table";

/// Looks at the content of a file.
pub(crate) fn of(text: &str) -> Result<Content, Refused> {
    let start = text.trim_start();
    if start.is_empty() {
        return Err(Refused::Empty);
    }
    if start.starts_with(['{', '[']) {
        return of_json(text);
    }
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines().next().unwrap_or_default().to_owned();
    let words: Vec<&str> = first.split_whitespace().collect();
    if let Some((_, name, way_out)) =
        UNREAD.iter().find(|(signs, ..)| signs.iter().all(|sign| text.contains(sign)))
    {
        return Err(Refused::Unread(name, way_out));
    }
    if start.starts_with('<') {
        return Err(Refused::Unread("XML", "it is none of the files of a site that ropewalk reads"));
    }
    let has = |word: &str| text.contains(word);
    let graph = ["digraph", "graph", "strict"]
        .contains(&words.first().copied().unwrap_or_default().trim_end_matches('{'));
    if graph && has("{") {
        return Ok(Content::Dot);
    }
    let ib = |line: &str| line.starts_with("Switch") || line.starts_with("Ca\t") || line.starts_with("Ca ");
    if (has("switchguid=") || has("caguid=") || has("sysimgguid=")) && lines().any(ib) {
        return Ok(Content::Ibnetdiscover);
    }
    if crate::read::lldp::is_keys(text)
        || has("LocalPort") && has("RemoteDevice")
        || has("LLDP neighbors:")
        || has("SysName:") && has("Interface:")
    {
        return Ok(Content::Lldp);
    }
    if has("PFC configuration:") && has("priority") || has("Priority trust state:") {
        return Ok(Content::MlnxQos);
    }
    if has("Device type:") && has("Configurations:") || has("Configurations:") && has("Next") {
        return Ok(Content::Mlxconfig);
    }
    if words.len() >= 5 && words[0].eq_ignore_ascii_case("speed") && words[1].eq_ignore_ascii_case("cable") {
        return Ok(Content::LlrLookup);
    }
    let is_lookup = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() >= 5
            && words[0].parse::<u64>().is_ok()
            && words[1].strip_suffix('m').is_some_and(|m| m.parse::<u64>().is_ok())
    };
    if first.is_empty() {
        return Err(Refused::Empty);
    }
    if is_lookup(&first) && lines().all(is_lookup) {
        return Ok(Content::PgLookup);
    }
    if lines()
        .all(|line| line.starts_with("NCCL_") || line.starts_with("export NCCL_") || line.starts_with("UCX_"))
    {
        return Ok(Content::Nccl);
    }
    if lines().all(is_value) {
        return Ok(Content::NicValues);
    }
    if first.contains(',') && lines().nth(1).is_none_or(|line| line.contains(',')) && !first.contains(": ") {
        return Ok(Content::Cables);
    }
    of_yaml(text)
}

/// True for `name value`, `name: value`, `name = value` or `path/name:value` of a dump of settings of NICs.
fn is_value(line: &str) -> bool {
    value(line).is_some_and(|(name, _)| {
        crate::read::nic::IGNORED.iter().any(|(ignored, _)| name == *ignored)
            || rnic::vendor::NAMES.iter().any(|known| known.matches(name))
            || crate::read::nic::is_traffic_class(name)
            || crate::read::nic::is_cnp_dscp(name)
    })
}

/// The name and the value of a line of a dump: the name is the last part of a path.
pub(crate) fn value(line: &str) -> Option<(&str, &str)> {
    let at = line.rfind(['=', ':']).or_else(|| line.rfind(char::is_whitespace))?;
    let (name, value) = (line[..at].trim(), line[at + 1..].trim());
    let last = name.rsplit('/').next()?.trim();
    let last = match () {
        // `Global tclass=106`, as the file of the class of data has it.
        () if name.to_ascii_lowercase().ends_with("tclass") => "traffic_class",
        // `enable/3:1`, a file per priority.
        () if name.contains("/enable/") => "enable",
        () => last,
    };
    (!last.is_empty()).then_some((last, value))
}

fn of_json(text: &str) -> Result<Content, Refused> {
    let root = tree::json(text).map_err(|bad| match infragraph_text(text) {
        true => Refused::Wrong("a graph of InfraGraph", bad),
        false => Refused::Wrong("JSON", bad),
    })?;
    of_tree(root, "JSON")
}

fn infragraph_text(text: &str) -> bool {
    text.contains("\"instances\"") || text.contains("\"infrastructure\"")
}

fn of_yaml(text: &str) -> Result<Content, Refused> {
    let documents = match tree::yaml(text) {
        Ok(documents) => documents,
        // Prose and tables of other commands are no YAML either, so a text that has no keys is unknown.
        Err(bad) => {
            let keys = text.lines().filter(|line| line.trim_end().ends_with(':')).count();
            return Err(if keys > 1 { Refused::Wrong("YAML", bad) } else { Refused::Unknown });
        }
    };
    let set = |node: &Node| {
        node.items().iter().any(|item| item.get("set").is_some() || item.get("header").is_some())
    };
    if documents.iter().any(|node| set(node) || is_nvue(node)) {
        return Ok(Content::Nvue(documents));
    }
    let root = documents.into_iter().next().ok_or(Refused::Empty)?;
    of_tree(root, "YAML")
}

fn is_nvue(node: &Node) -> bool {
    let in_set = node.get("set").unwrap_or(node);
    let interface =
        in_set.get("interface").is_some_and(|it| it.entries().iter().all(|(_, it)| !it.entries().is_empty()));
    interface
        && ["qos", "router", "system", "vrf", "bridge", "platform", "service"]
            .iter()
            .any(|key| in_set.get(key).is_some())
        || in_set.at(&["qos", "roce"]).is_some()
}

fn of_tree(root: Node, language: &'static str) -> Result<Content, Refused> {
    let has = |key: &str| root.get(key).is_some();
    let inner = root.get("infrastructure").filter(|inner| !inner.entries().is_empty());
    if inner.is_some()
        || has("instances")
        || has("device")
        || has("devices") && (has("links") || has("edges"))
    {
        return Ok(Content::Infragraph(root));
    }
    if root.at(&["topology", "nodes"]).is_some()
        || has("clab") && has("nodes")
        || has("nodes") && has("links") && has("type")
    {
        return Ok(Content::Containerlab(root));
    }
    if is_nvue(&root) || root.items().iter().any(|item| item.get("set").is_some()) {
        return Ok(Content::Nvue(vec![root]));
    }
    let table = |key: &str| SIGNS.contains(&key.split('|').next().unwrap_or(key));
    let entries = root.entries();
    let capital = |key: &str| {
        let key = key.split('|').next().unwrap_or(key);
        key.len() > 1 && key.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let capitals = entries.iter().filter(|(key, _)| capital(key)).count();
    if entries.iter().any(|(key, _)| table(key)) && capitals * 2 >= entries.len() {
        return Ok(Content::Sonic(root));
    }
    if root.items().iter().any(|item| item.get("OP").is_some()) {
        return Err(Refused::Unread("a list of operations of SONiC", "config_db.json has the configuration"));
    }
    if language == "JSON" && entries.is_empty() && root.items().is_empty() {
        return Err(Refused::Empty);
    }
    if has("dut_templates") || has("tg_template") {
        return Err(Refused::Unread(
            "a test topology of sonic-mgmt",
            "it has templates and no cables; the list of links (devices, ports, bandwidth) has them",
        ));
    }
    if root.at(&["all", "children"]).is_some() {
        return Err(Refused::Unread("an inventory of Ansible", "it has no cables and no thresholds"));
    }
    match language {
        "JSON" => Err(Refused::Unread(
            "JSON of another tool",
            "it is none of the files of a site that ropewalk reads",
        )),
        _ if entries.is_empty() => Err(Refused::Unknown),
        _ => Err(Refused::Unread(
            "YAML of another tool",
            "it is none of the files of a site that ropewalk reads",
        )),
    }
}
