//! What a rule sees: a scenario, its plan, and its parts with their paths.

use crate::wait::Waits;
use crate::{Plan, Scenario};
use finding::Finding;
use rnic::NicConfig;
use schemes::SchemeConfig;

/// A scenario with its plan.
pub(crate) struct Case<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) plan: &'a Plan,
    /// The NICs of all traffic classes with flows.
    pub(crate) nics: &'a [Waits],
    /// The scenario's scheme, those of classes, and those of switches with a role.
    pub(crate) schemes: Vec<Chosen<'a>>,
    /// Whether the user wrote the value at a path, or something inside it.
    written: &'a dyn Fn(&[String]) -> bool,
}

/// A scheme of the scenario.
pub(crate) struct Chosen<'a> {
    pub(crate) scheme: &'a SchemeConfig,
    /// Its path: `scheme`, `class.NAME.scheme` or `switch-role.NAME.scheme`.
    pub(crate) path: String,
    /// The role of its switches; `None` if it stands in all switches without a scheme of their own.
    pub(crate) role: Option<&'a str>,
    /// The NIC of its queue pairs, and the NIC's path.
    pub(crate) nic: NicConfig,
    pub(crate) nic_path: String,
}

impl Chosen<'_> {
    /// The path of the scheme's settings.
    pub(crate) fn settings(&self) -> String {
        format!("{}.{}", self.path, self.scheme.name())
    }
}

impl<'a> Case<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        plan: &'a Plan,
        nics: &'a [Waits],
        written: &'a dyn Fn(&[String]) -> bool,
    ) -> Self {
        let mut schemes = Vec::new();
        let mut add = |path, scheme: &'a SchemeConfig, class: Option<&str>, role| {
            let usual = || scheme.own_nic(&scenario.nic).unwrap_or_else(|| scenario.nic.clone());
            let nic = class.map_or_else(usual, |class| scenario.nic_of(class));
            let nic_path = class.map_or_else(|| "nic".to_owned(), |class| scenario.nic_path(class));
            schemes.push(Chosen { scheme, path, role, nic, nic_path });
        };
        add("scheme".to_owned(), &scenario.scheme, None, None);
        for (name, class) in &scenario.class {
            if let Some(scheme) = &class.scheme {
                add(format!("class.{name}.scheme"), scheme, Some(name), None);
            }
        }
        for (name, role) in &scenario.switch_role {
            if let Some(scheme) = &role.scheme {
                add(format!("switch-role.{name}.scheme"), scheme, None, Some(name));
            }
        }
        Case { scenario, plan, nics, schemes, written }
    }

    /// True if the user wrote the value of a key, or something inside it.
    pub(crate) fn is_explicit(&self, key: &str) -> bool {
        (self.written)(&key.split('.').map(str::to_owned).collect::<Vec<_>>())
    }

    /// What a rule finds in each NIC; keys start there. What concerns several NICs is said once.
    pub(crate) fn of_nics(&self, rule: impl Fn(&Waits) -> Option<Finding>) -> Vec<Finding> {
        let mut found: Vec<Finding> =
            self.nics.iter().filter_map(|waits| Some(rule(waits)?.within(&waits.path))).collect();
        found.dedup_by(|one, other| one.text == other.text);
        found
    }

    /// What a rule finds in the NIC of each scheme; keys start there.
    pub(crate) fn of_schemes(
        &self,
        rule: impl Fn(&SchemeConfig, &NicConfig) -> Option<Finding>,
    ) -> Vec<Finding> {
        let of = |chosen: &Chosen<'_>| Some(rule(chosen.scheme, &chosen.nic)?.within(&chosen.nic_path));
        self.schemes.iter().filter_map(of).collect()
    }
}

/// The findings of a check that stops at its first error.
pub(crate) fn all(checked: Result<Vec<Finding>, Finding>) -> Vec<Finding> {
    checked.unwrap_or_else(|error| vec![error])
}
