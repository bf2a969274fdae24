//! Flows and settings of a case as changes of the site's scenario.

use crate::site::{Queue, Site};
use model::{HostId, Time};
use toml::Value;

/// Changes that clear what a site's own runs have and a case replaces.
pub(crate) fn clean() -> Vec<String> {
    ["failure=[]", "stop={}", "record={ flows = 0, links = 0 }"].map(str::to_owned).to_vec()
}

/// A text as a value of TOML.
pub(crate) fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// Messages from one host to another.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    pub(crate) bytes: u64,
    pub(crate) start: Time,
    pub(crate) times: u64,
    pub(crate) every: Time,
}

impl Flow {
    pub(crate) fn new(from: HostId, to: HostId, bytes: u64) -> Self {
        Flow { from, to, bytes, start: Time::ZERO, times: 1, every: Time::ZERO }
    }

    /// So many messages, one after the other.
    pub(crate) fn times(self, times: u64) -> Self {
        // A queue pair sends one message after the other, so the next one may be posted at once.
        Flow { times, every: Time(1_000), ..self }
    }

    fn toml(&self, site: &Site) -> String {
        let again = match self.times {
            1 => String::new(),
            times => format!(", again = {{ times = {times}, every = \"{}\" }}", self.every),
        };
        format!(
            "{{ from = {}, to = {}, bytes = \"{}B\", start = \"{}\"{again} }}",
            quoted(&site.host(self.from)),
            quoted(&site.host(self.to)),
            self.bytes,
            self.start
        )
    }
}

/// A job of flows, with further keys of a workload.
pub(crate) fn job(site: &Site, name: &str, keys: &str, flows: &[Flow]) -> String {
    let flows: Vec<String> = flows.iter().map(|flow| flow.toml(site)).collect();
    format!("{{ name = {}{keys}, flows = {{ list = [{}] }} }}", quoted(name), flows.join(", "))
}

/// The change that sets the jobs.
pub(crate) fn jobs(jobs: &[String]) -> String {
    format!("workload=[{}]", jobs.join(", "))
}

/// Names of hosts as a list.
pub(crate) fn names(site: &Site, hosts: &[HostId]) -> String {
    let names: Vec<String> = hosts.iter().map(|host| quoted(&site.host(*host))).collect();
    format!("[{}]", names.join(", "))
}

/// Changes that set a key of `[switch]` in all roles that have one of their own, too.
pub(crate) fn of_switches(site: &Site, key: &str, value: &str) -> Vec<String> {
    let roles = site.scenario.switch_role.iter().filter(|(_, role)| match key.split('.').next() {
        Some("ecn") => role.ecn.is_some(),
        _ => role.pfc.is_some(),
    });
    let roles = roles.map(|(role, _)| format!("switch-role.{role}.{key}={value}"));
    std::iter::once(format!("switch.{key}={value}")).chain(roles).collect()
}

/// Marks off, as the plans' "WRED off".
pub(crate) fn without_marks(site: &Site) -> Vec<String> {
    of_switches(site, "ecn", "off")
}

/// Senders at line rate.
pub(crate) fn without_control() -> String {
    format!("nic.congestion={{ {} = {{}} }}", scenario::no_control())
}

/// A traffic class whose NIC is the site's with another DSCP.
pub(crate) fn class(site: &Site, name: &str, queue: Queue, control: bool) -> Vec<String> {
    let mut nic = match Value::try_from(&site.scenario.nic) {
        Ok(Value::Table(nic)) => nic,
        _ => toml::Table::new(),
    };
    // These hold for a whole NIC, and only `[nic]` may have them.
    for key in ["classes", "receive", "pcie", "clock-spread", "model", "nccl", "ack-dscp"] {
        nic.remove(key);
    }
    nic.insert("dscp".into(), Value::Integer(queue.dscp.into()));
    if !control {
        let none =
            toml::Table::from_iter([(scenario::no_control().to_owned(), Value::Table(toml::Table::new()))]);
        nic.insert("congestion".into(), Value::Table(none));
    }
    vec![scenario::setting(&format!("class.{name}.nic"), &Value::Table(nic))]
}

/// A ring all-reduce over lists of hosts, with further keys of a workload.
pub(crate) fn ring(name: &str, hosts: &str, bytes: u64, keys: &str) -> String {
    format!(
        "{{ name = {name:?}{keys}, all-reduce = {{ algorithm = \"ring\", bytes = \"{bytes}B\", groups = [{hosts}] }} }}"
    )
}
