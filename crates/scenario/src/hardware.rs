//! Published figures of NICs and switches, and the defaults of NCCL: what `nic.model`, `nic.nccl` and `switch.model` fill in, each with
//! its source.
//!
//! A model is a file in `hardware/nic`, `hardware/nccl` or `hardware/switch` and a line in a list below. Its first line describes it. A
//! `[[figure]]` has a key of `[nic]` or `[switch]`, a value, and the source of the value, which begins with `assumed` if nobody
//! has published the value. `[limits]` is compared with the fabric. An `[[unknown]]` says what the model leaves open. `include`
//! names files whose figures belong to the model, too.

use crate::builtin::Builtin;
use crate::sonic;
use finding::{Finding, code, suggestion};
use model::Rate;
use serde::Deserialize;
use std::fmt::Write as _;
use toml::{Table, Value};

macro_rules! models {
    ($about:literal $list:ident = $folder:literal: $($name:literal),+ $(,)?) => {
        #[doc = $about]
        pub const $list: &[Builtin] = &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../hardware/", $folder, "/", $name, ".toml")),
        }),+];
    };
}

models! { "NICs, the values of `nic.model`."
    NICS = "nic": "connectx-4", "connectx-5", "connectx-6", "connectx-7", "connectx-8", "bluefield-2", "bluefield-3",
        "pollara-400", "thor-2"
}
models! { "Versions of NCCL that changed its defaults, the values of `nic.nccl`."
    NCCL = "nccl": "2.3.5", "2.14.3", "2.23.4"
}
models! { "Switches, the values of `switch.model`."
    SWITCHES = "switch": "tomahawk-3", "tomahawk-5", "spectrum-2", "spectrum-3", "spectrum-4", "silicon-one-g200"
}
models! { "Costs of collectives on GPUs, the values of `server.cost` and of `cost` in the tuning of a collective."
    COSTS = "cost": "h100", "deepep-dispatch", "deepep-combine", "deepep-normal"
}
models! { "Figures that several NICs share."
    SHARED = "nic": "nvidia-dcqcn"
}

/// A model, as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    #[serde(default)]
    include: Vec<String>,
    #[serde(default)]
    limits: Limits,
    #[serde(default, rename = "figure")]
    figures: Vec<Figure>,
    #[serde(default, rename = "unknown")]
    unknowns: Vec<Unknown>,
}

/// What the hardware can do at most.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Rate of the fastest port of a NIC.
    pub(crate) rate: Option<Rate>,
    /// Sum of the rates of all ports of a switch.
    pub(crate) capacity: Option<Rate>,
    /// Number of ports of a switch.
    pub(crate) ports: Option<usize>,
    pub(crate) source: String,
}

/// A value of the hardware.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    /// Dotted key below `nic` or `switch`.
    key: String,
    value: Value,
    source: String,
}

/// What nobody has published, or what ropewalk does not model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unknown {
    what: String,
}

impl Model {
    /// The model with this name, with all that it includes.
    fn named(all: &[Builtin], name: &str) -> Option<Self> {
        if let Some(sku) = of_sonic(all, name) {
            return Model::of_sonic(sku);
        }
        let file = all.iter().find(|model| model.name == name)?;
        let mut model: Model = toml::from_str(file.text).ok()?;
        for name in std::mem::take(&mut model.include) {
            let more = Model::named(SHARED, &name)?;
            model.figures.extend(more.figures);
            model.unknowns.extend(more.unknowns);
        }
        Some(model)
    }

    /// The model of a switch as SONiC configures it.
    fn of_sonic(sku: &str) -> Option<Self> {
        let preset = sonic::preset(sku)?;
        let mut model = Model {
            include: Vec::new(),
            limits: Limits::default(),
            figures: Vec::new(),
            unknowns: Vec::new(),
        };
        let figure =
            |(key, value, source): (&str, Value, String)| Figure { key: key.to_owned(), value, source };
        model.figures.extend(preset.figures.into_iter().map(figure));
        model.unknowns.extend(preset.unknowns.into_iter().map(|what| Unknown { what }));
        let chip = preset.like.and_then(|like| Model::named(SWITCHES, like));
        let buffer = chip.and_then(|chip| chip.figures.into_iter().find(|figure| figure.key == "buffer"));
        model.figures.extend(buffer.map(|buffer| {
            let source = format!("assumed as the whole memory of the chip: {}", buffer.source);
            Figure { source, ..buffer }
        }));
        Some(model)
    }

    /// The figure to which the value at `path` below `nic` or `switch` belongs, if the value is that of the figure.
    fn figure(&self, path: &[String], value: &Value) -> Option<&Figure> {
        self.figures.iter().find(|figure| {
            let mut rest = path.iter();
            let same = figure.key.split('.').all(|part| rest.next().is_some_and(|own| own == part));
            let inner = rest.try_fold(&figure.value, |at, part| at.get(part.as_str()));
            same && inner == Some(value)
        })
    }
}

/// The SKU of a switch as SONiC configures it, if `all` has switches and the name is such a one.
fn of_sonic<'n>(all: &[Builtin], name: &'n str) -> Option<&'n str> {
    let sku = name.strip_prefix(sonic::PREFIX)?;
    all.iter().any(|model| SWITCHES.iter().any(|own| own.name == model.name)).then_some(sku)
}

/// The names of all models of a list.
fn names(all: &[Builtin]) -> Vec<String> {
    let mut names: Vec<String> = all.iter().map(|model| model.name.to_owned()).collect();
    if of_sonic(all, sonic::PREFIX).is_some() {
        names.extend(sonic::names().iter().map(|sku| format!("{}{sku}", sonic::PREFIX)));
    }
    names
}

/// The names of switches as SONiC configures them, values of `switch.model`, and what they are.
pub fn of_sonic_all() -> Vec<(String, String)> {
    sonic::names().iter().map(|name| (format!("{}{name}", sonic::PREFIX), sonic::about(name))).collect()
}

/// What a model is.
fn about_model(all: &[Builtin], name: &str) -> Option<String> {
    match of_sonic(all, name) {
        Some(sku) => Some(sonic::preset(sku)?.about),
        None => Some(all.iter().find(|model| model.name == name)?.about().to_owned()),
    }
}

/// The figures of a model as one table; `None` if there is no such model.
pub(crate) fn figures(all: &[Builtin], name: &str) -> Option<Table> {
    let mut table = Table::new();
    for figure in Model::named(all, name)?.figures {
        insert(&mut table, &figure.key, figure.value);
    }
    Some(table)
}

/// A table that may name a model: its path, the key, and the models that it may name.
type Place = (Vec<String>, &'static str, &'static [Builtin]);

/// The tables of a scenario that may name a model. NCCL's settings of a queue pair win over those of its NIC.
fn places(scenario: &Table) -> Vec<Place> {
    let nics =
        nics(scenario).into_iter().flat_map(|path| [(path.clone(), "nccl", NCCL), (path, "model", NICS)]);
    nics.chain([(vec!["switch".into()], "model", SWITCHES)]).collect()
}

/// The paths of the tables of NICs that a scenario may have.
pub(crate) fn nics(scenario: &Table) -> Vec<Vec<String>> {
    let classes = scenario.get("class").and_then(Value::as_table);
    let of_class = |class: &String| vec!["class".into(), class.clone(), "nic".into()];
    let of_classes = classes.into_iter().flat_map(Table::keys).map(of_class);
    [vec!["nic".into()]].into_iter().chain(of_classes).collect()
}

/// The table at `path`, if there is one.
pub(crate) fn table_at<'a>(scenario: &'a mut Table, path: &[String]) -> Option<&'a mut Table> {
    path.iter().try_fold(scenario, |at, part| at.get_mut(part).and_then(Value::as_table_mut))
}

/// The name of the model that `key` of the table at `path` chooses.
fn chosen<'a>(scenario: &'a Table, path: &[String], key: &str) -> Option<&'a str> {
    let (first, rest) = path.split_first()?;
    let table = rest.iter().try_fold(scenario.get(first)?, |at, part| at.get(part.as_str()))?;
    table.get(key)?.as_str()
}

/// Adds the figures of all models that a scenario names. Keys that the scenario has stay as they are.
pub(crate) fn fill(scenario: &mut Table) -> Result<(), Finding> {
    for (path, key, all) in places(scenario) {
        let Some(name) = chosen(scenario, &path, key) else { continue };
        let Some(model) = Model::named(all, name) else {
            let names = names(all);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let text = format!("unknown {key} `{name}`; {}", suggestion(name, &names));
            return Err(code::UNKNOWN_NAME
                .at(&format!("{}.{key}", path.join(".")), text)
                .with_help("`ropewalk list presets` shows all models"));
        };
        if let Some(table) = table_at(scenario, &path) {
            for figure in model.figures {
                insert(table, &figure.key, figure.value);
            }
        }
    }
    Ok(())
}

/// Sets a value unless the table has one, or has another part in place of the one that the value configures.
fn insert(table: &mut Table, key: &str, value: Value) {
    let Some((first, rest)) = key.split_once('.') else {
        // The queues of ports are the scenario's own.
        if key == "dscp-map" && table.contains_key("classes") {
            return;
        }
        table.entry(key).or_insert(value);
        return;
    };
    let inner = table.entry(first).or_insert_with(|| Table::new().into());
    let part = rest.split('.').next().unwrap_or(rest);
    if let Some(inner) = inner.as_table_mut().filter(|inner| {
        // `[nic.transport]` and `[nic.congestion]` have one part each.
        let chooses = ["transport", "congestion"].contains(&first);
        !chooses || inner.is_empty() || inner.contains_key(part)
    }) {
        insert(inner, rest, value);
    }
}

/// Number of ports of a model of a switch; `None` if it is unknown.
pub(crate) fn ports(name: &str) -> Option<usize> {
    Model::named(SWITCHES, name)?.limits.ports
}

/// True if a NIC, a switch or a version of NCCL has this name.
pub(crate) fn is_model(name: &str) -> bool {
    [NICS, NCCL, SWITCHES].iter().any(|all| Model::named(all, name).is_some())
}

/// The model that set the value at `path` of a filled-in scenario, and the source of the value.
pub(crate) fn source(scenario: &Table, path: &[String], value: &Value) -> Option<(String, String)> {
    let of_place = |(place, key, all): Place| {
        let inside = path.strip_prefix(place.as_slice())?;
        let name = chosen(scenario, &place, key)?;
        let model = Model::named(all, name)?;
        let source = model.figure(inside, value)?.source.clone();
        Some((name.to_owned(), source))
    };
    places(scenario).into_iter().find_map(of_place)
}

/// Comments about the models of a scenario, and about the profile of its servers' costs: what they are, what is assumed, and what is
/// unknown.
pub(crate) fn about(scenario: &Table, costs: Option<&str>) -> String {
    let mut text = String::new();
    let named = places(scenario).into_iter().filter_map(|(path, key, all)| {
        let name = chosen(scenario, &path, key)?.to_owned();
        Some((path, key, all, name))
    });
    let costs = costs.map(|name| (vec!["server".into()], "cost", COSTS, name.to_owned()));
    for (path, key, all, name) in named.chain(costs) {
        let Some(about) = about_model(all, &name) else { continue };
        let Some(model) = Model::named(all, &name) else { continue };
        let (assumed, published): (Vec<&Figure>, Vec<&Figure>) =
            model.figures.iter().partition(|figure| figure.source.starts_with("assumed"));
        let _ = writeln!(text, "# {}.{key} = \"{name}\": {}", path.join("."), about);
        let _ = writeln!(
            text,
            "# It sets {} keys from published figures and {} from assumptions, unless the scenario sets them.",
            published.len(),
            assumed.len()
        );
        for figure in assumed {
            let _ = writeln!(text, "# Assumed: {}: {}", figure.key, figure.source);
        }
        for unknown in &model.unknowns {
            let _ = writeln!(text, "# Unknown: {}", unknown.what);
        }
        text.push('\n');
    }
    text
}

/// The name of a model and what it can do at most; `None` if there is no such model.
pub(crate) fn limits<'n>(all: &[Builtin], name: Option<&'n str>) -> Option<(&'n str, Limits)> {
    let name = name?;
    Some((name, Model::named(all, name)?.limits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checked, Source, check};

    fn lay(keys: &str) -> Checked {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\nrate = \"100Gbps\"\n{keys}\n[[workload]]\n\
             neighbour-ring = {{}}\n"
        );
        check(&Source::new("s.toml", text), &[]).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn every_file_is_read_and_every_figure_fits_its_key_and_has_a_source() {
        for (all, place, key) in
            [(NICS, "nic", "model"), (NCCL, "nic", "nccl"), (SWITCHES, "switch", "model")]
        {
            for file in all {
                let model = Model::named(all, file.name).unwrap_or_else(|| panic!("{}", file.name));
                assert!(!file.about().is_empty(), "{}", file.name);
                assert!(key == "nccl" || !model.limits.source.is_empty(), "{}", file.name);
                let checked = lay(&format!("[{place}]\n{key} = \"{}\"", file.name));
                let shown = checked.annotated();
                for Figure { key, value, source } in &model.figures {
                    assert!(source.len() > 20, "{}: {key}", file.name);
                    let marked = shown.contains(&format!("# {}: {source}", file.name));
                    assert!(marked || value.as_table().is_some_and(Table::is_empty), "{}: {key}", file.name);
                }
                assert!(!model.unknowns.is_empty(), "{}: nobody publishes everything", file.name);
            }
        }
    }

    #[test]
    fn every_profile_of_costs_is_read_and_says_what_is_assumed() {
        for file in COSTS {
            let model = Model::named(COSTS, file.name).unwrap_or_else(|| panic!("{}", file.name));
            assert!(!file.about().is_empty() && !model.unknowns.is_empty(), "{}", file.name);
            let shown = lay(&format!("[server]\ngpus = 1\ncost = \"{}\"", file.name)).annotated();
            assert!(shown.contains(&format!("# server.cost = \"{}\"", file.name)));
            for Figure { key, source, .. } in &model.figures {
                assert!(source.len() > 20, "{}: {key}", file.name);
                assert_eq!(
                    shown.contains(&format!("# Assumed: {key}: ")),
                    source.starts_with("assumed"),
                    "{key}"
                );
            }
        }
    }

    #[test]
    fn a_model_fills_in_what_the_scenario_leaves_out() {
        let plain = lay("[nic]\nmodel = \"connectx-5\"").scenario.nic;
        assert_eq!(plain.transport.name(), "go-back-n");
        let same = "[nic.transport.go-back-n]\nrenack-after-rewind = true\n[nic.timeout]\nib = 14";
        let same = lay(same).scenario.nic;
        assert_eq!((&plain.transport, plain.timeout), (&same.transport, same.timeout));
        let own = lay("[nic]\nmodel = \"connectx-5\"\ncnp-interval = \"50us\"\n[nic.transport.nic-sr]\n\
                       [nic.congestion.dcqcn]\ngain = 0.5")
        .scenario
        .nic;
        assert_eq!((own.transport.name(), own.cnp_interval), ("nic-sr", model::Time::from_us(50)));
        let dcqcn = |nic: &rnic::NicConfig| toml::Value::try_from(&nic.congestion).unwrap()["dcqcn"].clone();
        assert_eq!(dcqcn(&own)["gain"].as_float(), Some(0.5), "an explicit setting wins");
        assert_eq!(dcqcn(&own)["rate-increase-timer"], dcqcn(&plain)["rate-increase-timer"]);
        assert_eq!(dcqcn(&plain)["rate-increase-timer"].as_str(), Some("300us"));
        let other = lay("[nic]\nmodel = \"connectx-7\"\n[nic.congestion.none]").scenario.nic;
        assert_eq!(other.congestion.name(), "none");
        let class = lay("[class.old.nic]\nmodel = \"connectx-5\"").scenario;
        assert_eq!(class.class["old"].nic.as_ref().unwrap().transport.name(), "go-back-n");
        assert_eq!(lay("[switch]\nmodel = \"tomahawk-5\"").scenario.switch.buffer.get(), 166_298_880);
    }

    #[test]
    fn what_a_model_brings_can_be_switched_off() {
        let keys = "[nic]\nmodel = \"connectx-5\"\nself-cnp = \"off\"\nmessages = false\ningress = \"off\"";
        let checked = lay(keys);
        let built = checked.scenario.nic.build();
        assert_eq!((built.self_cnp(), built.message_gaps(), built.ingress_losses()), (None, None, None));
        let again = check(&Source::new("shown.toml", checked.annotated()), &[]).unwrap();
        assert_eq!(again.scenario.nic, checked.scenario.nic);
        let built = lay("[nic]\nmodel = \"connectx-5\"").scenario.nic.build();
        assert!(
            built.self_cnp().is_some() && built.message_gaps().is_some() && built.ingress_losses().is_some()
        );
    }

    #[test]
    fn nccl_sets_timer_and_retries_whatever_the_nic_and_an_explicit_setting_wins() {
        let nic = lay("[nic]\nnccl = \"2.14.3\"\nmodel = \"connectx-6\"").scenario.nic;
        assert_eq!((nic.timeout, nic.retry_limit()), (rnic::timeout::Timeout::Ib(18), Some(7)));
        let own = lay("[nic]\nnccl = \"2.23.4\"\ntimeout = { ib = 22 }\non-retry-exceeded = \"never\"")
            .scenario
            .nic;
        assert_eq!((own.timeout, own.retry_limit()), (rnic::timeout::Timeout::Ib(22), None));
    }

    #[test]
    fn a_checked_scenario_says_what_comes_from_where_and_runs_again_alike() {
        let checked = lay(
            "[nic]\nmodel = \"connectx-6\"\ncnp-interval = \"4us\"\n[switch]\nmodel = \"silicon-one-g200\"",
        );
        let shown = checked.annotated();
        assert!(shown.starts_with("# nic.model = \"connectx-6\": NVIDIA ConnectX-6"), "{}", &shown[..200]);
        assert!(
            shown
                .contains("cnp-interval-per = \"port\"  # connectx-6: vendor: 'minimum time between sending")
        );
        let measured = lay("[nic]\nmodel = \"connectx-5\"").annotated();
        assert!(
            measured
                .contains("additive-increase = \"30Mbps\"  # connectx-5: fitted: 0.1 Gb/s per ms, measured")
        );
        assert!(shown.contains("cnp-interval = \"4us\"\n"), "the scenario has set it");
        assert!(shown.contains("buffer = \"256MB\"  # silicon-one-g200: the shared on-die buffer"));
        let assumed = lay("[nic]\nmodel = \"connectx-7\"").annotated();
        assert!(assumed.contains("# Assumed: timeout: assumed as measured on a ConnectX-6"));
        assert!(shown.contains("# Unknown: the reorder window"));
        let again = check(&Source::new("again.toml", checked.to_toml()), &[]).unwrap();
        assert_eq!((again.hash(), again.plan.seed), (checked.hash(), checked.plan.seed));
    }

    #[test]
    fn an_unknown_model_gets_the_nearest_word() {
        let text = "[topology.leaf-spine]\n[nic]\nmodel = \"connectx7\"\n[[workload]]\nneighbour-ring = {}\n";
        let error = check(&Source::new("s.toml", text), &[]).unwrap_err();
        assert_eq!(error.located(), "s.toml:3:9: unknown model `connectx7`; did you mean `connectx-7`?");
    }
}
