//! NACKs and CNPs that a NIC writes in place of its host.

use crate::frame::Roce;
use wire::aeth::{self, Syndrome};
use wire::bth::{self, Opcode, Qpn};
use wire::roce::Ip;
use wire::{Error, Psn, cnp, icrc, ipv4, ipv6, udp};

/// Code point of CNPs: class 6 of switches, as NVIDIA recommends for RoCE networks.
const CNP_DSCP: u8 = 48;

/// What the replies of a flow have in common, taken from one that the host has sent.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// Ethernet header, with VLAN tags.
    link: Vec<u8>,
    ip: Ip,
    port: u16,
    partition: u16,
    qp: Qpn,
    /// Number of complete messages, as the host's last reply has it.
    msn: u32,
}

impl Template {
    /// Reads a reply or a response of the host.
    pub(crate) fn of(roce: &Roce, frame: &[u8]) -> Option<Self> {
        let (link, packet) = frame.split_at_checked(roce.ip())?;
        let ip = match roce.source {
            std::net::IpAddr::V4(_) => Ip::V4(ipv4::Repr::parse(&ipv4::View::new(packet).ok()?).ok()?),
            std::net::IpAddr::V6(_) => Ip::V6(ipv6::Repr::parse(&ipv6::View::new(packet).ok()?)),
        };
        let transport = bth::View::new(frame.get(roce.bth()..)?).ok()?;
        let msn = match transport.opcode().has_aeth() {
            true => aeth::View::new(transport.payload()).ok()?.msn(),
            false => 0,
        };
        let (link, port, partition) = (link.to_vec(), roce.port, transport.partition());
        Some(Template { link, ip, port, partition, qp: roce.qp, msn })
    }

    /// A NACK for a missing packet.
    pub(crate) fn nack(&self, psn: Psn) -> Result<Vec<u8>, Error> {
        let mut frame = self.start(Opcode::Acknowledge, psn, aeth::LEN)?;
        let from = frame.len() - icrc::LEN - aeth::LEN;
        let aeth = aeth::Repr { syndrome: Syndrome::PSN_SEQUENCE, msn: self.msn };
        aeth.emit(&mut aeth::View::new(&mut frame[from..])?);
        icrc::fill(&mut frame[self.link.len()..])?;
        Ok(frame)
    }

    /// A CNP.
    pub(crate) fn cnp(&self) -> Result<Vec<u8>, Error> {
        let mut frame = self.start(Opcode::Cnp, Psn::new(0), cnp::LEN)?;
        icrc::fill(&mut frame[self.link.len()..])?;
        Ok(frame)
    }

    /// A frame up to its BTH, with room for so many bytes behind it and for the ICRC.
    fn start(&self, opcode: Opcode, psn: Psn, behind: usize) -> Result<Vec<u8>, Error> {
        let is_cnp = matches!(opcode, Opcode::Cnp);
        let carried = (bth::LEN + behind + icrc::LEN) as u16;
        let header = match self.ip {
            Ip::V4(_) => ipv4::LEN,
            Ip::V6(_) => ipv6::LEN,
        };
        let mut frame = self.link.clone();
        frame.resize(self.link.len() + header + udp::LEN + usize::from(carried), 0);
        let packet = &mut frame[self.link.len()..];
        let payload_len = carried + udp::LEN as u16;
        let class = |class: wire::ecn::TrafficClass| match is_cnp {
            true => wire::ecn::TrafficClass::new(CNP_DSCP, wire::ecn::Ecn::NotEct),
            false => class.with_ecn(wire::ecn::Ecn::NotEct),
        };
        match self.ip {
            Ip::V4(ip) => {
                ipv4::Repr { payload_len, traffic_class: class(ip.traffic_class), ..ip }.emit(packet)?;
            }
            Ip::V6(ip) => {
                ipv6::Repr { payload_len, traffic_class: class(ip.traffic_class), ..ip }.emit(packet)?;
            }
        }
        let datagram = &mut packet[header..];
        udp::Repr { source_port: self.port, destination_port: udp::ROCE, payload_len: carried }
            .emit(datagram)?;
        let mut transport = bth::View::new(&mut datagram[udp::LEN..])?;
        let repr = match is_cnp {
            true => cnp::Repr::bth(self.qp),
            false => bth::Repr::new(opcode, self.qp, psn),
        };
        bth::Repr { partition: self.partition, ..repr }.emit(&mut transport);
        Ok(frame)
    }
}
