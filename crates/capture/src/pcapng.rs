//! The frames of a tap in a pcapng file. The crate `ports` writes the format.
//!
//! A tap has two interfaces, one for each direction. Times are simulated nanoseconds since the start of the run,
//! rounded down; the start is shown as 1970-01-01. Frames that start in the same nanosecond stand in order.

use super::encode::Encoder;
use engine::outcome::{Frame, Passed};
use model::{Fabric, LinkId, NodeId, Plan, PortIndex, Time};
use ports::pcap::{Direction, Interface, Record, Writer};
use std::io::{self, Write};
use std::time::Duration;

/// Comment of each interface about the frames in the file.
const ABOUT: &str = "Simulated frames, encoded as real ones. Addresses, queue pair numbers (2q + 2 at the sender of queue pair \
q, 2q + 3 at its receiver) and UDP source ports are derived from the simulator's numbers. Frames include the FCS and have the \
length that the simulator counts. The simulator does not count the RETH, so in a message's first packet it replaces 16 bytes \
of payload. Payload is zeros. Fields without an encoding in RoCEv2 are left out: in-band telemetry, selective \
acknowledgements, tags of schemes. A pause lasts until its resume, whatever its quanta are.";

/// Writes the frames, out of all `frames` of a run, that passed the port which sends into `tap`, in both directions.
///
/// The time of a frame is the time at which its first bit passes the port. An incoming frame has the time of its
/// sending plus the delay of the link, and is missing if the link lost it. `about` describes the run.
///
/// # Errors
/// If `to` cannot be written.
pub fn write(to: impl Write, about: &str, plan: &Plan, tap: LinkId, frames: &[Frame]) -> io::Result<()> {
    let links = [tap, plan.fabric.reverse(tap)];
    let names = links.map(|link| name(&plan.fabric, link));
    let interface = |link: LinkId, name| {
        let rate = Some(plan.fabric.links()[link.index()].rate.0);
        Interface { name, comment: Some(ABOUT), rate }
    };
    let interfaces = [interface(links[0], names[0].as_str()), interface(links[1], names[1].as_str())];
    let program = concat!("ropewalk ", env!("CARGO_PKG_VERSION"));
    let mut file = Writer::new(to, about, program, &interfaces)?;
    let mut encoder = Encoder::new(plan);
    for (at, frame) in seen_from(plan, tap, frames) {
        let (interface, direction) = if frame.link == tap { (0, Direction::Out) } else { (1, Direction::In) };
        let encoded = encoder.encode(frame).map_err(io::Error::other)?;
        file.write(&Record {
            interface,
            at: Duration::from_nanos(at.ps() / 1000),
            direction,
            bytes: encoded.bytes,
            fcs: wire::ethernet::FCS_LEN as u32,
            comment: encoded.comment,
            number: None,
        })?;
    }
    file.finish()
}

/// The frames at the port, by time; at the same time outgoing frames come first.
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

/// Name of a direction of a link, such as `leaf0:3 -> h4`. The only port of a host needs no number.
pub fn name(fabric: &Fabric, link: LinkId) -> String {
    let link = &fabric.links()[link.index()];
    let end = |node: NodeId, port: u16| match fabric.is_host(node) {
        true => fabric.host_name(fabric.endpoint(node, PortIndex(port))).into_owned(),
        false => format!("{}:{port}", fabric.name(node)),
    };
    format!("{} -> {}", end(link.from, link.port.0), end(link.to, link.peer_port.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{HostId, Kind, Packet, Psn, QpId};
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
    use pcap_file::pcapng::blocks::section_header::SectionHeaderOption;
    use pcap_file::pcapng::{Block, PcapNgReader};
    use results::testing;

    #[test]
    fn a_file_names_its_port_and_the_time_of_each_frame() {
        let plan = testing::plan(1);
        let data = Packet::new(Kind::Data, QpId(0), HostId(1), Psn::new(1), 1500);
        let ack = Packet::new(Kind::Ack, QpId(0), HostId(0), Psn::new(1), 66);
        let frame = |ps, link, what| Frame { at: Time(ps), link: LinkId(link), what };
        // Port 0 of the switch leads to host a. The last two frames do not pass it: one is lost, one is on another link.
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
        // An incoming frame arrives one link delay, 1 us, after its start.
        assert_eq!(packets, [(1, 1001, 1500, 1), (0, 5_000_000, 66, 0), (0, 5_000_000, 64, 0)]);
    }
}
