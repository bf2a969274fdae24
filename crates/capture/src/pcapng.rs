//! The frames of a tap in a pcapng file. The crate `ports` writes the format.
//!
//! A tap has two interfaces, one for each direction. Times are simulated nanoseconds since the start of the run,
//! rounded down; the start is shown as 1970-01-01. Frames that start in the same nanosecond stand in order.

use super::encode::{Encoder, Memory};
use engine::outcome::{Frame, Passed};
use model::{Fabric, LinkId, NodeId, Plan, PortIndex, Time};
use ports::pcap::{Direction, Interface, Record, Writer};
use std::io::{self, Write};
use std::time::Duration;

/// Bytes of the file around each frame, at most: block header, flags and comment.
pub(crate) const AROUND: u64 = 128;

/// Comment of each interface about the frames in the file.
const ABOUT: &str = "Simulated frames, encoded as real ones. Addresses, queue pair numbers (2q + 2 at the sender of queue pair \
q, 2q + 3 at its receiver) and UDP source ports are derived from the simulator's numbers. Frames include the FCS and have the \
length that the simulator counts. The simulator does not count the RETH, so in a message's first packet it replaces 16 bytes \
of payload. Payload is zeros. Fields without an encoding in RoCEv2 are left out: in-band telemetry, selective \
acknowledgements, tags of schemes. A pause lasts until its resume, whatever its quanta are.";

/// The file of a tap in the making. Frames come in parts, as the run goes on.
pub struct Tape<W: Write> {
    /// The link into which the tapped port sends, and the way back.
    links: [LinkId; 2],
    /// Delay of the way back.
    delay: Time,
    file: Writer<W>,
    encoder: Memory,
    /// Frames that have not passed the port yet, with the times at which they do, in order.
    coming: Vec<(Time, Frame)>,
    /// Time at which the last frame in the file passed the port.
    reached: Time,
}

impl<W: Write> Tape<W> {
    /// Begins the file of the port that sends into `tap`, in both directions. `about` describes the run, and the file has
    /// `snap_length` bytes of each frame, or all for 0.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub fn begin(to: W, about: &str, plan: &Plan, tap: LinkId, snap_length: u32) -> io::Result<Self> {
        let links = [tap, plan.fabric.reverse(tap)];
        let names = links.map(|link| name(&plan.fabric, link));
        let interface = |link: LinkId, name| {
            let rate = Some(plan.fabric.links()[link.index()].rate.0);
            Interface { name, comment: Some(ABOUT), rate, snap_length }
        };
        let interfaces = [interface(links[0], names[0].as_str()), interface(links[1], names[1].as_str())];
        let program = concat!("ropewalk ", env!("CARGO_PKG_VERSION"));
        Ok(Tape {
            links,
            delay: plan.fabric.links()[links[1].index()].delay,
            file: Writer::new(to, about, program, &interfaces)?,
            encoder: Memory::default(),
            coming: Vec::new(),
            reached: Time::ZERO,
        })
    }

    /// Adds those of the `frames` of a run that pass the port. They come in order of time and link, and every later frame
    /// starts at `until` or later.
    ///
    /// The time of a frame is the time at which its first bit passes the port. An incoming frame has the time of its
    /// sending plus the delay of the link, and is missing if the link lost it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, plan: &Plan, frames: &[Frame], until: Time) -> io::Result<()> {
        let ([tap, back], delay) = (self.links, self.delay);
        self.coming.extend(frames.iter().filter_map(|frame| match frame.what {
            _ if frame.link == tap => Some((frame.at, *frame)),
            Passed::Packet(_, true) => None,
            _ if frame.link == back => Some((Time(frame.at.ps() + delay.ps()), *frame)),
            _ => None,
        }));
        // At the same time outgoing frames come first.
        self.coming.sort_by_key(|(at, frame)| (*at, frame.link != tap));
        let known = self.coming.partition_point(|(at, _)| until == Time::NEVER || *at < until);
        let mut encoder = Encoder::resume(plan, std::mem::take(&mut self.encoder));
        for (at, frame) in self.coming.drain(..known) {
            let (interface, direction) =
                if frame.link == tap { (0, Direction::Out) } else { (1, Direction::In) };
            let encoded = encoder.encode(&frame).map_err(io::Error::other)?;
            self.file.write(&Record {
                interface,
                at: Duration::from_nanos(at.ps() / 1000),
                direction,
                bytes: encoded.bytes,
                fcs: wire::ethernet::FCS_LEN as u32,
                comment: encoded.comment,
                number: None,
            })?;
            self.reached = at;
        }
        self.encoder = encoder.into_memory();
        Ok(())
    }

    /// Number of frames in the file, and the time at which the last one passed the port.
    pub fn so_far(&self) -> (u64, Time) {
        (self.file.frames(), self.reached)
    }

    /// Ends the file with a remark about the run, and returns it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, remark: &str) -> io::Result<W> {
        self.file.close(remark)?;
        self.file.finish()
    }
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
    use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
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
        let written = |parts: &[(usize, u64)]| {
            let mut tape = Tape::begin(Vec::new(), "test, seed 1", &plan, LinkId(2), 128).unwrap();
            let mut from = 0;
            for &(to, until) in parts {
                tape.add(&plan, &frames[from..to], Time(until)).unwrap();
                from = to;
            }
            tape.add(&plan, &frames[from..], Time::NEVER).unwrap();
            assert_eq!(tape.so_far(), (3, Time(5_000_000_124)));
            tape.finish("digest 7").unwrap()
        };
        let bytes = written(&[]);
        // The first frame passes the port 1 us after its start, in the second part.
        assert_eq!(written(&[(1, 2_000), (2, 5_000_000_124)]), bytes);

        let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
        let comment = SectionHeaderOption::Comment("test, seed 1".into());
        assert!(reader.section().options.contains(&comment));
        let (mut names, mut packets, mut ends) = (vec![], vec![], vec![]);
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
                        (packet.original_len, packet.data.len()),
                        comments,
                    ));
                }
                Block::InterfaceStatistics(end) => ends.push(end.options[0].clone().into_owned()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ends, vec![InterfaceStatisticsOption::Comment("digest 7".into()); 2]);
        assert_eq!(names, ["s:0 -> a", "a -> s:0"]);
        // An incoming frame arrives one link delay, 1 us, after its start.
        assert_eq!(
            packets,
            [(1, 1001, (1500, 128), 1), (0, 5_000_000, (66, 66), 0), (0, 5_000_000, (64, 64), 0)]
        );
    }
}
