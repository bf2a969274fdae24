//! The file: pcapng (IETF draft-ietf-opsawg-pcapng), which knows interfaces, nanoseconds and comments.
//!
//! A tap has two interfaces, one for each direction. Times are simulated time in nanoseconds, rounded down, since
//! the run's start, which reads as 1970-01-01; frames that start in one nanosecond stand in their order.

use super::encode::Encoder;
use engine::outcome::{Frame, Passed};
use model::{Fabric, LinkId, NodeId, Plan, Time};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

/// Times are in 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Flags of a packet: 4 bytes of FCS are there (bits 5 to 8), and which way it went (bits 0 and 1).
const FCS_IS_THERE: u32 = (wire::ethernet::FCS_LEN as u32) << 5;
const INBOUND: u32 = 0b01;
const OUTBOUND: u32 = 0b10;

/// What the file says of its frames, of each interface.
const ABOUT: &str = "Simulated frames, as real ones. Addresses, queue pair numbers (2q + 2 at the sender of queue pair q, \
2q + 3 at its receiver) and UDP source ports are made up from the simulator's numbers. Frames have their FCS and are as \
long as the simulator charges; the RETH of a message's first packet takes 16 bytes of the payload's place, as the \
simulator does not charge it. Payload is zeros. What RoCEv2 has no bytes for is left out: in-band telemetry, selective \
acknowledgements, what schemes write on packets. A pause lasts until its resume, whatever its quanta say.";

/// Writes what passed the port that sends into `tap`, in both directions, of all `frames` of a run.
///
/// A frame stands there with the time at which its first bit passes the port: one that comes in is later by the link's
/// delay than its sender saw it, and missing if the link lost it. `about` says of which run.
///
/// # Errors
/// If `to` cannot be written.
pub fn write(to: impl Write, about: &str, plan: &Plan, tap: LinkId, frames: &[Frame]) -> io::Result<()> {
    let section = SectionHeaderBlock {
        // Fixed, so that the file is the same on every machine.
        endianness: Endianness::Little,
        options: vec![
            SectionHeaderOption::Comment(Cow::Owned(about.to_owned())),
            SectionHeaderOption::UserApplication(Cow::Borrowed(concat!(
                "ropewalk ",
                env!("CARGO_PKG_VERSION")
            ))),
        ],
        ..SectionHeaderBlock::default()
    };
    let mut file = PcapNgWriter::with_section_header(to, section).map_err(io_error)?;
    let links = [tap, plan.fabric.reverse(tap)];
    for link in links {
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0, // no limit
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(name(&plan.fabric, link))),
                InterfaceDescriptionOption::Comment(Cow::Borrowed(ABOUT)),
                InterfaceDescriptionOption::IfSpeed(plan.fabric.links()[link.index()].rate.0),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        file.write_pcapng_block(interface).map_err(io_error)?;
    }
    let mut encoder = Encoder::new(plan);
    for (at, frame) in seen_from(plan, tap, frames) {
        let (interface_id, direction) = if frame.link == tap { (0, OUTBOUND) } else { (1, INBOUND) };
        let encoded = encoder.encode(frame).map_err(io::Error::other)?;
        let mut options = vec![EnhancedPacketOption::Flags(FCS_IS_THERE | direction)];
        options.extend(encoded.comment.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text))));
        let packet = EnhancedPacketBlock {
            interface_id,
            // The library writes it as a number of nanoseconds, whatever the resolution.
            timestamp: Duration::from_nanos(at.ps() / 1000),
            original_len: encoded.bytes.len() as u32,
            data: Cow::Borrowed(encoded.bytes),
            options,
        };
        file.write_pcapng_block(packet).map_err(io_error)?;
    }
    file.into_inner().flush()
}

/// The frames at the port, by time; those that set out before those that came in.
fn seen_from<'a>(plan: &Plan, tap: LinkId, frames: &'a [Frame]) -> Vec<(Time, &'a Frame)> {
    let back = plan.fabric.reverse(tap);
    let delay = plan.fabric.links()[back.index()].delay;
    let seen = |frame: &'a Frame| match frame.what {
        _ if frame.link == tap => Some((frame.at, frame)),
        Passed::Packet(_, true) => None,
        _ if frame.link == back => Some((Time(frame.at.ps() + delay.ps()), frame)),
        _ => None,
    };
    let mut all: Vec<_> = frames.iter().filter_map(seen).collect();
    all.sort_by_key(|(at, frame)| (*at, frame.link != tap));
    all
}

/// A direction of a link, such as `leaf0:3 -> h4`: hosts have one port, which needs no number.
pub fn name(fabric: &Fabric, link: LinkId) -> String {
    let link = &fabric.links()[link.index()];
    let end = |node: NodeId, port: u16| match fabric.is_host(node) {
        true => fabric.name(node).to_owned(),
        false => format!("{}:{port}", fabric.name(node)),
    };
    format!("{} -> {}", end(link.from, link.port.0), end(link.to, link.peer_port.0))
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{HostId, Kind, Packet, Psn, QpId};
    use pcap_file::pcapng::{Block, PcapNgReader};
    use results::testing;

    #[test]
    fn a_file_says_where_it_was_captured_and_when_each_frame_passed() {
        let plan = testing::plan(1);
        let data = Packet::new(Kind::Data, QpId(0), HostId(1), Psn::new(1), 1500);
        let ack = Packet::new(Kind::Ack, QpId(0), HostId(0), Psn::new(1), 66);
        let frame = |ps, link, what| Frame { at: Time(ps), link: LinkId(link), what };
        // Port 0 of the switch leads to host a. The last two do not come to it: one is lost, the other elsewhere.
        let frames = [
            frame(1_999, 0, Passed::Packet(data.with_retransmission(true), false)),
            frame(5_000_000_123, 2, Passed::Packet(ack, true)),
            frame(5_000_000_124, 2, Passed::Pause { channel: 0, on: true }),
            frame(5_000_000_125, 0, Passed::Packet(data, true)),
            frame(5_000_000_126, 1, Passed::Packet(data, false)),
        ];
        let mut bytes = Vec::new();
        write(&mut bytes, "test, seed 1", &plan, LinkId(2), &frames).unwrap();
        let mut again = Vec::new();
        write(&mut again, "test, seed 1", &plan, LinkId(2), &frames).unwrap();
        assert_eq!(bytes, again);

        let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
        let comment = SectionHeaderOption::Comment("test, seed 1".into());
        assert!(reader.section().options.contains(&comment));
        let (mut names, mut packets) = (vec![], vec![]);
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(interface) => {
                    for option in interface.options {
                        match option {
                            InterfaceDescriptionOption::IfName(name) => names.push(name.into_owned()),
                            InterfaceDescriptionOption::IfTsResol(n) => assert_eq!(n, 9),
                            InterfaceDescriptionOption::IfSpeed(rate) => assert_eq!(rate, 100_000_000_000),
                            other => assert_eq!(other, InterfaceDescriptionOption::Comment(ABOUT.into())),
                        }
                    }
                }
                Block::EnhancedPacket(packet) => {
                    let comments = packet.options.len() - 1;
                    packets.push((
                        packet.interface_id,
                        packet.timestamp.as_nanos(),
                        packet.data.len(),
                        comments,
                    ));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(names, ["s:0 -> a", "a -> s:0"]);
        // What comes in is there a delay, 1 us, after it set out.
        assert_eq!(packets, [(1, 1001, 1500, 1), (0, 5_000_000, 66, 0), (0, 5_000_000, 64, 0)]);
    }
}
