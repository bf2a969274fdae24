//! Flowcut switching, Eq. 1: number of active flows times the size of a table entry.
//!
//! A host has at most as many active flows as packets in flight: `active = hosts x min(flows, rate x latency /
//! packet)`. The paper's figures result from the round-trip time and packets of 2 KiB, or equally from half of both
//! (arXiv 2506.21406, Section III-D, Figures 4 and 5, Table III).

use super::Assignment;
use model::{Bytes, Rate, Time};
use serde::Serialize;

/// Inputs of Eq. 1. The defaults are those of the paper's fabric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FlowcutInputs {
    /// Number of hosts; the flows of all of them may cross one switch.
    pub hosts: u64,
    /// Hosts below a ToR.
    pub hosts_per_tor: u64,
    /// Flows of a host; null if packets in flight are the limit.
    pub flows: Option<u64>,
    /// Rate of a host's link.
    pub rate: Rate,
    /// Round-trip time.
    pub rtt: Time,
    /// Size of a packet.
    pub packet: Bytes,
    /// Payload of a packet, for the share of bytes that ACKs add.
    pub payload: Bytes,
    /// Packet memory of the switch, for comparison.
    pub sram: Bytes,
}

impl Default for FlowcutInputs {
    fn default() -> Self {
        FlowcutInputs {
            hosts: 1024,
            hosts_per_tor: 16,
            flows: None,
            rate: Rate::from_gbps(200),
            rtt: Time::from_us(5),
            packet: Bytes(2048),
            payload: Bytes(1024),
            sram: Bytes(50 << 20),
        }
    }
}

/// Bytes of an entry without the flow key, which all schemes store (Table III).
pub const ENTRY_BYTES: [(&str, u64); 5] =
    [("flowcell", 2), ("flowlet", 5), ("flowcut-nic", 10), ("flowcut-ingress", 10), ("flowcut-full", 11)];
/// Bytes of an ACK of a switch on the wire (Table III).
pub const ACK_BYTES: u64 = 20;

/// The memory of one scheme.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The scheme and where it is deployed.
    pub scheme: &'static str,
    /// Bytes of an entry.
    pub entry_bytes: u64,
    /// Active flows in one device.
    pub active: f64,
    /// Bytes of one device, rounded up.
    pub total_bytes: u64,
}

/// Results of Eq. 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowcutMemory {
    /// Inputs.
    pub inputs: FlowcutInputs,
    /// Active flows of a host.
    pub flows_under_way: f64,
    /// Memory by scheme, of a switch that all flows cross. `flowcut-ingress` is for a ToR, and `flowcut-nic` for a NIC.
    pub costs: Vec<Cost>,
    /// Bytes of the switches' ACKs on the wire, as a share of payload.
    pub wire_overhead: f64,
}

impl FlowcutInputs {
    /// Changes one input.
    ///
    /// # Errors
    /// A message, if there is no such key or the value is not allowed.
    pub fn set(&mut self, assignment: &str) -> Result<(), String> {
        let set = Assignment::parse(assignment)?;
        match set.key {
            "hosts" => self.hosts = set.whole()?,
            "hosts-per-tor" => self.hosts_per_tor = set.whole()?,
            "flows" if set.value == "any" => self.flows = None,
            "flows" => self.flows = Some(set.whole()?),
            "rate" => self.rate = set.quantity()?,
            "rtt" => self.rtt = set.quantity()?,
            "packet" => self.packet = set.quantity()?,
            "payload" => self.payload = set.quantity()?,
            "sram" => self.sram = set.quantity()?,
            key => return Err(format!("there is no key `{key}`; {KEYS}")),
        }
        if [self.packet, self.payload, self.sram].contains(&Bytes(0)) || self.rtt == Time::ZERO {
            return Err(set.wrong("a value above 0 is expected"));
        }
        Ok(())
    }

    /// Evaluates Eq. 1.
    pub fn memory(&self) -> FlowcutMemory {
        let in_flight = self.rate.bps() as f64 / 8.0 * self.rtt.ps() as f64 / 1e12 / self.packet.get() as f64;
        let flows = self.flows.map_or(in_flight, |flows| in_flight.min(flows as f64));
        let cost = |(scheme, entry_bytes): (&'static str, u64)| {
            let hosts = match scheme {
                "flowcut-nic" => 1,
                "flowcut-ingress" => self.hosts_per_tor,
                _ => self.hosts,
            };
            let active = hosts as f64 * flows;
            Cost { scheme, entry_bytes, active, total_bytes: (active * entry_bytes as f64).ceil() as u64 }
        };
        FlowcutMemory {
            flows_under_way: flows,
            costs: ENTRY_BYTES.map(cost).into(),
            wire_overhead: ACK_BYTES as f64 / self.payload.get() as f64,
            inputs: self.clone(),
        }
    }
}

impl FlowcutMemory {
    /// Bytes of one scheme.
    pub fn bytes_of(&self, scheme: &str) -> Option<u64> {
        self.costs.iter().find(|cost| cost.scheme == scheme).map(|cost| cost.total_bytes)
    }
}

const KEYS: &str = "the keys are hosts, hosts-per-tor, flows, rate, rtt, packet, payload, sram";

#[cfg(test)]
mod tests {
    use super::*;

    fn full(set: &[&str]) -> f64 {
        let mut inputs = FlowcutInputs::default();
        set.iter().for_each(|s| inputs.set(s).unwrap());
        inputs.memory().bytes_of("flowcut-full").unwrap() as f64 / f64::from(1 << 20)
    }

    #[test]
    fn a_switch_needs_less_than_seven_mebibytes_up_to_fifty_microseconds() {
        assert!((full(&[]) - 0.656).abs() < 0.001);
        assert!((full(&["rtt=50us"]) - 6.557).abs() < 0.001);
        assert!((full(&["rate=1600Gbps"]) - 5.245).abs() < 0.001);
    }

    #[test]
    fn beyond_16384_hosts_at_800_gigabits_a_switch_needs_more_than_fifty_mebibytes() {
        assert!((full(&["rate=800Gbps", "hosts=16384"]) - 41.96).abs() < 0.01);
        assert!(full(&["rate=800Gbps", "hosts=32768"]) > 50.0);
    }

    #[test]
    fn few_flows_need_few_entries_and_an_ack_adds_less_than_two_percent() {
        let mut inputs = FlowcutInputs::default();
        inputs.set("flows=3").unwrap();
        let memory = inputs.memory();
        assert_eq!(memory.bytes_of("flowcut-nic"), Some(30));
        assert_eq!(memory.bytes_of("flowcut-ingress"), Some(16 * 30));
        assert!((memory.wire_overhead - 0.0195).abs() < 1e-4);
        for wrong in ["flows=0", "hosts", "rtt=0us", "packet=0B", "speed=1", "rate=200"] {
            assert!(inputs.set(wrong).is_err(), "{wrong}");
        }
    }
}
