//! Filling in: defaults that depend on other keys, and files that the scenario names.

use crate::config::{Compat, Scenario, WireConfig};
use finding::{Finding, code};
use model::Bytes;
use rnic::notification::Cnp;
use rnic::{NicConfig, OnNack, Reaction};
use std::collections::BTreeSet;
use std::path::Path;

/// Keys whose default depends on other keys: whether the user wrote them.
pub(crate) struct ExplicitKeys {
    pub(crate) cnp: bool,
    pub(crate) cnp_interval_per: bool,
    pub(crate) on_nack: bool,
}

impl ExplicitKeys {
    /// The keys of the NIC at `path`; `is_explicit` tells whether the user wrote the value at a path.
    fn of(path: &[&str], is_explicit: &dyn Fn(&[String]) -> bool) -> Self {
        let explicit = |key: &str| {
            let path: Vec<String> = path.iter().chain([&key]).map(|part| (*part).to_owned()).collect();
            is_explicit(&path)
        };
        ExplicitKeys {
            cnp: explicit("cnp"),
            cnp_interval_per: explicit("cnp-interval-per"),
            on_nack: explicit("on-nack"),
        }
    }
}

/// Fills in defaults that depend on other keys, so that the resolved scenario is complete. `is_explicit` tells whether the user
/// wrote the value at a path.
pub(crate) fn resolve(
    scenario: &mut Scenario,
    is_explicit: &dyn Fn(&[String]) -> bool,
) -> Result<(), Finding> {
    let wire = scenario.wire.wire(scenario.compat)?;
    let frame = Some(Bytes(u64::from(wire.header + wire.payload)));
    scenario.wire = WireConfig { frame, payload: None, ..scenario.wire.clone() };
    nic(&mut scenario.nic, &ExplicitKeys::of(&["nic"], is_explicit), scenario.compat)?;
    for (name, class) in &mut scenario.class {
        if let Some(own) = &mut class.nic {
            let explicit = ExplicitKeys::of(&["class", name.as_str(), "nic"], is_explicit);
            nic(own, &explicit, scenario.compat).map_err(|error| error.within(&format!("class.{name}")))?;
        }
    }
    let mut taken: BTreeSet<String> = scenario.workload.iter().filter_map(|e| e.name.clone()).collect();
    let mut seen = BTreeSet::new();
    for (i, entry) in scenario.workload.iter_mut().enumerate() {
        let kind = entry.one_kind().map_err(|f| f.within(&format!("workload.{i}")))?;
        let name = entry.name.get_or_insert_with(|| {
            let numbered = (1..).map(|n| if n == 1 { kind.to_owned() } else { format!("{kind}-{n}") });
            let free = numbered.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
            taken.insert(free.clone());
            free
        });
        if name.is_empty() || !seen.insert(name.clone()) {
            let text = match &**name {
                "" => "expected a name, found an empty string".to_owned(),
                name => format!("two workloads are named `{name}`; every workload needs a name of its own"),
            };
            return Err(code::TWICE.at(&format!("workload.{i}.name"), text));
        }
        entry.qp.get_or_insert(entry.usual_qp());
    }
    Ok(())
}

/// Fills in the defaults of `[nic]` that depend on its other keys.
pub(crate) fn nic(
    nic: &mut NicConfig,
    explicit: &ExplicitKeys,
    compat: Option<Compat>,
) -> Result<(), Finding> {
    nic.congestion.resolve();
    if !explicit.cnp {
        let compat = (compat == Some(Compat::Ns3)).then_some(Cnp::Flag);
        nic.cnp = nic.congestion.facts().evidence.cnp().or(compat).unwrap_or(nic.cnp);
    }
    if !explicit.cnp_interval_per {
        nic.cnp_interval_per = nic.congestion.cnp_scope();
    }
    match nic.transport.facts().on_nack {
        OnNack::Unused if explicit.on_nack && nic.on_nack != Reaction::None => {
            let name = nic.transport.name();
            let text =
                format!("with `transport.{name}` receivers send no NACKs, so `on-nack` must be \"none\"");
            return Err(code::CONFLICT
                .at("nic.on-nack", text)
                .with_help("remove `on-nack`; `on-timeout` sets the reaction of the rate to a loss"));
        }
        OnNack::Unused => nic.on_nack = Reaction::None,
        OnNack::Default(reaction) if !explicit.on_nack => nic.on_nack = reaction,
        OnNack::Default(_) => {}
    }
    Ok(())
}

/// Reads the files that workloads name; `folder` is the folder of the scenario.
pub(crate) fn read_files(scenario: &mut Scenario, folder: &Path) -> Result<(), Finding> {
    for (i, entry) in scenario.workload.iter_mut().enumerate() {
        entry.read_files(folder).map_err(|error| error.within(&format!("workload.{i}")))?;
    }
    Ok(())
}
