//! Values that fit a JSON Schema, drawn at random.
//!
//! The schema of scenarios lists every key with its type and default. A new scheme, transport, topology or key is therefore
//! drawn without a change here. The schema does not tell which values are sensible, so [`LIMITS`] gives the ranges that
//! keep runs short.

use crate::draws::Draws;
use serde_json::{Map, Value as Json, json};

/// Names of a fabric, for keys that name hosts, switches, ports and jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) hosts: Vec<String>,
    pub(crate) switches: Vec<String>,
    pub(crate) roles: Vec<String>,
    /// Number of GPUs.
    pub(crate) ranks: usize,
}

/// A unit of quantities, by the end of the pattern with which the schema describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Time,
    Rate,
    MessageRate,
    /// Two whole numbers with a colon, such as `2:1`.
    Ratio,
    /// Whole numbers.
    Count,
}

impl Unit {
    fn of_pattern(pattern: &str) -> Option<Self> {
        [
            ("iB)$", Unit::Bytes),
            ("|s)$", Unit::Time),
            ("bit/s)$", Unit::Rate),
            ("?/s$", Unit::MessageRate),
            ("[0-9]+ *$", Unit::Ratio),
        ]
        .into_iter()
        .find_map(|(end, unit)| pattern.ends_with(end).then_some(unit))
    }

    /// Least and largest value of keys without a limit of their own: bytes, ps, Mb/s, messages/s, or a count.
    fn usual(self) -> (f64, f64) {
        match self {
            Unit::Bytes => (100.0, 1e6),
            Unit::Time => (1e4, 2e9),
            Unit::Rate => (100.0, 4e5),
            Unit::MessageRate => (1e5, 1e9),
            Unit::Ratio => (1.0, 4.0),
            Unit::Count => (1.0, 64.0),
        }
    }

    fn text(self, value: f64) -> String {
        let whole = value.round();
        match self {
            Unit::Bytes => format!("{whole}B"),
            Unit::Time if whole % 1e6 == 0.0 => format!("{}us", whole / 1e6),
            Unit::Time if whole % 1e3 == 0.0 => format!("{}ns", whole / 1e3),
            Unit::Time => format!("{whole}ps"),
            Unit::Rate if whole % 1e3 == 0.0 => format!("{}Gbps", whole / 1e3),
            Unit::Rate => format!("{whole}Mbps"),
            Unit::MessageRate => format!("{whole}/s"),
            Unit::Ratio => format!("{whole}:1"),
            Unit::Count => format!("{whole}"),
        }
    }
}

/// Ranges of keys by the beginning of their path: the first entry that fits counts. They keep fabrics small and messages
/// short, so that a run takes milliseconds.
const LIMITS: &[(&str, Unit, f64, f64)] = &[
    ("topology.", Unit::Count, 1.0, 4.0),
    ("topology.", Unit::Time, 2e5, 2e7),
    ("topology.", Unit::Rate, 1000.0, 4e5),
    ("workload.", Unit::Count, 1.0, 5.0),
    ("workload.", Unit::Bytes, 1.0, 6e4),
    ("workload.", Unit::Time, 1e3, 1e8),
    ("failure.", Unit::Time, 1e3, 2e8),
    ("failure.", Unit::Count, 1.0, 4.0),
    ("stop.", Unit::Time, 1e6, 1e10),
    ("record.", Unit::Time, 1e4, 1e8),
    ("record.", Unit::Count, 1.0, 1000.0),
    ("links.lose.", Unit::Count, 0.0, 40.0),
    ("wire.", Unit::Bytes, 66.0, 9000.0),
    ("switch.buffer", Unit::Bytes, 3e4, 1e8),
    ("nic.ingress", Unit::Time, 1e5, 2e7),
    ("nic.ingress", Unit::Rate, 1.0, 1e4),
];

/// Delays, ps, that are drawn now and then beside the usual ones: inside a rack, and up to three quarters of the way around
/// the Earth. With the short ones a run takes much longer, as they are the length of a window.
const RARE: [f64; 6] = [1e3, 3e4, 5e7, 3e9, 4e10, 1.5e11];

/// Whole numbers at the edges of types.
const EDGES: [u64; 7] = [0, 255, 65_535, 1 << 24, u32::MAX as u64, 1 << 53, i64::MAX as u64];

/// Draws values for keys.
pub(crate) struct Values {
    root: &'static Json,
    pub(crate) names: Names,
    /// Probability that an optional key is set.
    pub(crate) density: f64,
    /// Probability that a number is taken from the edges of its type.
    pub(crate) edges: f64,
}

impl Values {
    pub(crate) fn new(root: &'static Json, names: Names, density: f64) -> Self {
        Values { root, names, density, edges: 0.003 }
    }

    /// The schema of a top-level key.
    pub(crate) fn of_key(&self, key: &str) -> &'static Json {
        &self.root["properties"][key]
    }

    /// The schema behind references, and behind the choice between a value and none.
    pub(crate) fn resolved(&self, schema: &'static Json) -> &'static Json {
        if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/definitions/")) {
            return self.resolved(&self.root["definitions"][name]);
        }
        let ways = ["allOf", "anyOf"].iter().find_map(|kind| schema[*kind].as_array());
        let mut ways = ways.into_iter().flatten().filter(|way| way["type"] != "null");
        match (ways.next(), ways.next()) {
            (Some(only), None) => self.resolved(only),
            _ => schema,
        }
    }

    /// A value that fits `schema`, for the key at `path`; `None` if only another text would fit, such as a file's name.
    pub(crate) fn draw(&self, draws: &mut Draws, schema: &'static Json, path: &str) -> Option<Json> {
        self.value(draws, schema, path, None)
    }

    fn value(
        &self,
        draws: &mut Draws,
        schema: &'static Json,
        path: &str,
        default: Option<&'static Json>,
    ) -> Option<Json> {
        let default = schema.get("default").or(default);
        if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/definitions/")) {
            return self.value(draws, &self.root["definitions"][name], path, default);
        }
        if let Some([only]) = schema["allOf"].as_array().map(Vec::as_slice) {
            return self.value(draws, only, path, default);
        }
        for kind in ["oneOf", "anyOf"] {
            let Some(ways) = schema[kind].as_array() else { continue };
            let ways: Vec<&Json> = ways.iter().filter(|way| way["type"] != "null").collect();
            let way = *draws.pick(&ways);
            return self.value(draws, way, path, default);
        }
        if let Some(choices) = schema["enum"].as_array() {
            return Some(draws.pick(choices).clone());
        }
        if schema.get("const").is_some() {
            return Some(schema["const"].clone());
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Json::String(kind) => vec![kind],
            Json::Array(kinds) => {
                kinds.iter().filter_map(Json::as_str).filter(|kind| *kind != "null").collect()
            }
            _ => Vec::new(),
        };
        match *draws.pick(&kinds) {
            "boolean" => Some(draws.chance(0.5).into()),
            "integer" => Some(self.count(draws, schema, path, default)),
            "number" => Some(Self::number(draws, schema, default)),
            "string" => self.text(draws, schema, path, default),
            "array" => self.array(draws, schema, path),
            "object" => Some(self.table(draws, schema, path)),
            _ => None,
        }
    }

    /// A table with all required keys and some of the others.
    fn table(&self, draws: &mut Draws, schema: &'static Json, path: &str) -> Json {
        let mut table = Map::new();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        for (key, of_key) in schema["properties"].as_object().into_iter().flatten() {
            let at = format!("{path}.{key}");
            // The default sizes of fabrics and workloads are those of papers, and too large here.
            let size = ["topology.", "workload."].iter().any(|begin| path.starts_with(begin))
                && of_key["type"] == "integer";
            if (required.contains(&key.as_str()) || size || draws.chance(self.density))
                && let Some(value) = self.value(draws, of_key, &at, None)
            {
                table.insert(key.clone(), value);
            }
        }
        if schema["additionalProperties"].is_object() && draws.chance(0.7) {
            let classes = ["foreground".to_owned(), "background".into()];
            let keys = if path == "switch-role" { &self.names.roles[..] } else { &classes };
            if !keys.is_empty() {
                let key = draws.pick(keys).clone();
                let value = self.value(draws, &schema["additionalProperties"], path, None);
                table.extend(value.map(|value| (key, value)));
            }
        }
        table.into()
    }

    fn array(&self, draws: &mut Draws, schema: &'static Json, path: &str) -> Option<Json> {
        if let Some(each) = schema["items"].as_array() {
            return each.iter().map(|item| self.value(draws, item, path, None)).collect();
        }
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let most = schema["maxItems"].as_u64().unwrap_or(4).max(least);
        let many = draws.between(least, most).max(u64::from(least == 0 && draws.chance(0.8)));
        (0..many).map(|_| self.value(draws, &schema["items"], path, None)).collect()
    }

    fn text(&self, draws: &mut Draws, schema: &Json, path: &str, default: Option<&Json>) -> Option<Json> {
        if let Some(unit) = schema["pattern"].as_str().and_then(Unit::of_pattern) {
            let default = default.and_then(Json::as_str).and_then(|text| quantity(unit, text));
            return Some(self.quantity(draws, unit, path, default).into());
        }
        let names = &self.names;
        let one_of =
            |draws: &mut Draws, list: &[String]| (!list.is_empty()).then(|| draws.pick(list).clone());
        let key = path.rsplit('.').next().unwrap_or_default();
        let name = match key {
            "from" | "to" | "receiver" | "senders" | "hosts" | "groups" => one_of(draws, &names.hosts),
            "switch" => one_of(draws, &names.switches),
            "class" => Some((*draws.pick(&["foreground", "background"])).to_owned()),
            "links" | "link" => match draws.below(4) {
                0 => Some("*".to_owned()),
                1 => one_of(draws, &names.hosts),
                _ => one_of(draws, &names.switches),
            },
            "taps" => match draws.chance(0.5) {
                true => one_of(draws, &names.hosts),
                false => one_of(draws, &names.switches).map(|name| format!("{name}:{}", draws.below(3))),
            },
            // A share, such as `1/8`, or one of the built-in texts.
            _ if key.contains("alpha") => Some((*draws.pick(&["1/8", "1", "1/2", "4", "1/64"])).to_owned()),
            _ => default.and_then(Json::as_str).map(str::to_owned),
        };
        name.map(Json::from)
    }

    /// A quantity near its default, or anywhere in its range.
    fn quantity(&self, draws: &mut Draws, unit: Unit, path: &str, default: Option<f64>) -> String {
        let limits = LIMITS.iter().find(|(begin, of, ..)| path.starts_with(begin) && *of == unit);
        let near = default.filter(|default| limits.is_none() && *default > 0.0 && draws.chance(0.6));
        let value = match (near, limits) {
            (Some(default), _) => default * f64::from(2u32.pow(draws.below(9) as u32)) / 16.0,
            _ if unit == Unit::Time && path.starts_with("topology.") && draws.chance(0.03) => {
                *draws.pick(&RARE)
            }
            (None, Some((_, _, least, most))) => draws.magnitude(least.max(0.5), *most),
            (None, None) => {
                let (least, most) = unit.usual();
                draws.magnitude(least, most)
            }
        };
        // Round numbers meet at the same instant more often.
        let digit = 10f64.powf(value.max(1.0).log10().floor());
        let rounded = if draws.chance(0.7) { (value / digit).round() * digit } else { value };
        match draws.chance(self.edges) {
            true => unit.text(0.0),
            false => unit.text(rounded.max(f64::from(unit == Unit::Ratio))),
        }
    }

    fn count(&self, draws: &mut Draws, schema: &Json, path: &str, default: Option<&Json>) -> Json {
        if draws.chance(self.edges) {
            return (*draws.pick(&EDGES)).into();
        }
        let least = schema["minimum"].as_u64().unwrap_or(0);
        let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
        let limits = LIMITS.iter().find(|(begin, unit, ..)| path.starts_with(begin) && *unit == Unit::Count);
        let near = default.and_then(Json::as_u64).filter(|_| limits.is_none() && draws.chance(0.6));
        let value = match (near, limits) {
            (Some(default), _) => (default << draws.below(4)) >> draws.below(5),
            (None, Some(&(_, _, from, to))) => draws.between(from as u64, to as u64),
            (None, None) => draws.magnitude(0.6, 64.0).round() as u64,
        };
        value.clamp(least, most).into()
    }

    fn number(draws: &mut Draws, schema: &Json, default: Option<&Json>) -> Json {
        let bound = |keys: [&str; 2]| keys.iter().find_map(|key| schema[*key].as_f64());
        let (least, most) = (bound(["minimum", "exclusiveMinimum"]), bound(["maximum", "exclusiveMaximum"]));
        let value = match default.and_then(Json::as_f64) {
            Some(default) if default > 0.0 && draws.chance(0.7) => default * draws.magnitude(0.25, 4.0),
            // Most losses are small; some are heavy.
            _ if most == Some(1.0) => draws.magnitude(1e-3, 1.0) * draws.share(),
            _ => draws.magnitude(0.01, 10.0),
        };
        let value = value.clamp(least.unwrap_or(f64::MIN), most.unwrap_or(f64::MAX));
        json!((value * 1e4).round() / 1e4)
    }
}

/// The number of units in a text such as `100us`.
fn quantity(unit: Unit, text: &str) -> Option<f64> {
    match unit {
        Unit::Bytes => text.parse::<model::Bytes>().ok().map(|bytes| bytes.get() as f64),
        Unit::Time => text.parse::<model::Time>().ok().map(|time| time.ps() as f64),
        Unit::Rate => text.parse::<model::Rate>().ok().map(|rate| rate.as_gbps() * 1e3),
        Unit::MessageRate => text.parse::<model::MessageRate>().ok().map(|rate| rate.0 as f64),
        Unit::Ratio | Unit::Count => None,
    }
}
