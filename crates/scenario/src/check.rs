//! A checked scenario.

use crate::build;
use crate::document::{Document, Source};
use crate::error::{Error, Fault, suggestion};
use crate::footprint::{self, Room};
use crate::parts::Chosen;
use crate::{Plan, Scenario, show};
use rnic::TransportConfig;
use schemes::SchemeConfig;

/// A scenario that can run.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Its name: that of its file, without the ending.
    pub name: String,
    /// What it says, with every default filled in.
    pub scenario: Scenario,
    /// What the engine obeys.
    pub plan: Plan,
    /// The parts that it chooses.
    pub parts: Chosen,
    /// What is possible but probably not meant, one sentence each.
    pub warnings: Vec<String>,
    /// Memory that its run will need at most at one time, bytes: an estimate.
    pub memory: u64,
    document: Document,
}

impl Checked {
    pub(crate) fn new(source: &Source, sets: &[String]) -> Result<Self, Error> {
        Self::on(source, sets, footprint::available())
    }

    /// For a machine that has so many bytes of memory left.
    pub(crate) fn on(source: &Source, sets: &[String], available: Option<u64>) -> Result<Self, Error> {
        let document = Document::new(source, sets)?;
        let mut scenario: Scenario = document.read()?;
        let says = |key: &str| document.says(&["nic".into(), key.into()]);
        let says = build::Says { cnp: says("cnp"), on_nack: says("on-nack") };
        build::resolve(&mut scenario, says).map_err(|fault| document.locate(fault))?;
        Self::lay(source.name.clone(), scenario, document, available)
    }

    fn lay(
        name: String,
        scenario: Scenario,
        document: Document,
        available: Option<u64>,
    ) -> Result<Self, Error> {
        let locate = |fault| document.locate(fault);
        scenario.nic.validate().map_err(|e| locate(nic_fault(&e)))?;
        let mut room = Room::new(available);
        let (plan, mut warnings) = build::plan(&scenario, &mut room).map_err(locate)?;
        let parts = Chosen {
            scheme: scenario.scheme.clone(),
            roles: scenario
                .switch_role
                .iter()
                .filter_map(|(name, role)| Some((name.clone(), role.scheme.clone()?)))
                .collect(),
            nic: scenario.nic.build(),
        };
        warnings.extend(scheme_warnings("scheme", &parts.scheme, &plan).map_err(locate)?);
        for (role, scheme) in &parts.roles {
            let path = format!("switch-role.{role}.scheme");
            warnings.extend(scheme_warnings(&path, scheme, &plan).map_err(locate)?);
        }
        let schemes = std::iter::once(&parts.scheme).chain(parts.roles.values());
        if matches!(scenario.nic.transport, TransportConfig::GoBackN(_))
            && schemes.into_iter().any(sprays_for_nics)
        {
            warnings.push(
                "themis over `transport.go-back-n` cannot help: it spares a NIC the NACKs that reordering alone causes, \
                 but a go-back-N receiver throws away what comes out of order, so it must be sent again whatever \
                 becomes of its NACK; where that is blocked, the sender only hears of it later"
                    .to_owned(),
            );
        }
        Ok(Checked { name, scenario, plan, parts, warnings, memory: room.need(), document })
    }

    /// The name of its scheme.
    pub fn scheme_name(&self) -> &'static str {
        self.scenario.scheme.name()
    }

    /// The same scenario with another scheme for a traffic class (`None`: the only one). If the scenario has
    /// this scheme already, its settings stay; else it gets its defaults.
    ///
    /// # Errors
    /// If there is no such scheme or class, or the scheme cannot work here.
    pub fn with_scheme(&self, class: Option<&str>, name: &str) -> Result<Checked, Error> {
        if let Some(class) = class.filter(|class| *class != "foreground") {
            let text = format!("there is no traffic class `{class}`; the only one is `foreground`");
            return Err(Error::new(text));
        }
        let Some(default) = SchemeConfig::named(name) else {
            let hint = suggestion(name, SchemeConfig::NAMES);
            return Err(Error::new(format!("unknown scheme `{name}`; {hint}")));
        };
        let mut scenario = self.scenario.clone();
        if scenario.scheme.name() != name {
            scenario.scheme = default;
        }
        Self::lay(self.name.clone(), scenario, self.document.clone(), footprint::available())
    }

    /// The same scenario with another seed.
    ///
    /// # Errors
    /// If the workload that the seed draws cannot work.
    pub fn with_seed(&self, seed: u64) -> Result<Checked, Error> {
        let scenario = Scenario { seed, ..self.scenario.clone() };
        Self::lay(self.name.clone(), scenario, self.document.clone(), footprint::available())
    }

    /// The scenario as TOML, every default filled in: enough to run it again.
    pub fn to_toml(&self) -> String {
        show::plain(&self.scenario)
    }

    /// The same for reading: every key with its meaning, unit, default and source, and a mark on defaults.
    pub fn annotated(&self) -> String {
        show::annotated(&self.scenario, &|path| self.document.says(path))
    }

    /// Hash of the resolved configuration, 16 hexadecimal digits (XXH3 of [`Checked::to_toml`]).
    pub fn hash(&self) -> String {
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(self.to_toml().as_bytes()))
    }
}

/// Schemes that block NACKs, for receivers that keep what comes out of order.
fn sprays_for_nics(scheme: &SchemeConfig) -> bool {
    matches!(scheme, SchemeConfig::Themis(_))
}

fn nic_fault(e: &rnic::Invalid) -> Fault {
    let key = e.field.rsplit('.').next().unwrap_or_default();
    Fault::new(&format!("nic.{}", e.field), format!("`{key}` {}", e.reason))
}

fn scheme_warnings(path: &str, scheme: &SchemeConfig, plan: &Plan) -> Result<Vec<String>, Fault> {
    scheme.validate(plan).map_err(|e| Fault::new(&format!("{path}.{}.{}", scheme.name(), e.field), e.message))
}
