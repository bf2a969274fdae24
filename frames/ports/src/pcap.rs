//! Capture files: frames with times. The writer makes pcapng (IETF draft-ietf-opsawg-pcapng), which has interfaces,
//! nanoseconds and comments; the reader takes pcap as well.

use byteorder_slice::LittleEndian;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::ENHANCED_PACKET_BLOCK;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{Block, PcapNgBlock, PcapNgReader, PcapNgWriter, RawBlock};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Resolution of times, as a negative power of ten: 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Resolution of times where an interface does not tell it, in ticks per second.
const DEFAULT_TICKS: u64 = 1_000_000;
/// Packet flags: direction in bits 0 and 1, length of the FCS in bytes in bits 5 to 8.
const INBOUND: u32 = 0b01;
const OUTBOUND: u32 = 0b10;
const FCS_SHIFT: u32 = 5;
/// Option `epb_packetid` of a packet: a number of 64 bits, which the library does not know.
const PACKET_ID: u16 = 5;
/// The option that ends a list of options.
const END_OF_OPTIONS: [u8; 4] = [0; 4];
/// First bytes of a pcapng file: the type of a section header.
const PCAPNG: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

/// An interface of a capture file.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Name.
    pub name: &'a str,
    /// A remark about its frames.
    pub comment: Option<&'a str>,
    /// Rate in bit/s.
    pub rate: Option<u64>,
    /// Most bytes that the file has of a frame; 0 for no limit.
    pub snap_length: u32,
}

/// Direction of a frame as the interface sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The interface has received it.
    In,
    /// The interface has sent it.
    Out,
}

/// A frame to write.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Place of its interface, from 0.
    pub interface: u32,
    /// Time since the start that the file's times count from.
    pub at: Duration,
    /// Direction.
    pub direction: Direction,
    /// The whole frame; the writer cuts it to the interface's snap length.
    pub bytes: &'a [u8],
    /// Bytes of the FCS at its end: 4 or 0.
    pub fcs: u32,
    /// A remark.
    pub comment: Option<&'a str>,
    /// Number of the frame, which tells a reader that none is missing.
    pub number: Option<u64>,
}

/// Writes a pcapng file. The bytes depend on the arguments alone.
pub struct Writer<W: Write> {
    file: PcapNgWriter<W>,
    /// By interface: the most bytes of a frame, and the number of frames written.
    interfaces: Vec<(usize, u64)>,
}

impl<W: Write> Writer<W> {
    /// Begins a file; `about` describes all of it, and `program` is its author.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub fn new(to: W, about: &str, program: &str, interfaces: &[Interface<'_>]) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            // A constant, so that the file is the same on every machine.
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::Comment(Cow::Owned(about.to_owned())),
                SectionHeaderOption::UserApplication(Cow::Owned(program.to_owned())),
            ],
            ..SectionHeaderBlock::default()
        };
        let mut file = PcapNgWriter::with_section_header(to, section).map_err(io_error)?;
        for interface in interfaces {
            let mut options = vec![InterfaceDescriptionOption::IfName(Cow::Borrowed(interface.name))];
            let comment = interface.comment.map(|text| InterfaceDescriptionOption::Comment(text.into()));
            options.extend(comment);
            options.extend(interface.rate.map(InterfaceDescriptionOption::IfSpeed));
            options.push(InterfaceDescriptionOption::IfTsResol(NANOSECONDS));
            let snaplen = interface.snap_length;
            let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen, options };
            file.write_pcapng_block(block).map_err(io_error)?;
        }
        let most = |interface: &Interface<'_>| match interface.snap_length {
            0 => usize::MAX,
            most => most as usize,
        };
        Ok(Writer { file, interfaces: interfaces.iter().map(|i| (most(i), 0)).collect() })
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        let direction = match record.direction {
            Direction::In => INBOUND,
            Direction::Out => OUTBOUND,
        };
        let Some((most, written)) = self.interfaces.get_mut(record.interface as usize) else {
            return Err(io::Error::other(format!("the file has no interface {}", record.interface)));
        };
        *written += 1;
        let kept = &record.bytes[..record.bytes.len().min(*most)];
        let mut options = vec![EnhancedPacketOption::Flags(record.fcs << FCS_SHIFT | direction)];
        options.extend(record.comment.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text))));
        let packet = EnhancedPacketBlock {
            interface_id: record.interface,
            // The library writes nanoseconds, whatever the resolution.
            timestamp: record.at,
            original_len: record.bytes.len() as u32,
            data: Cow::Borrowed(kept),
            options,
        };
        let Some(number) = record.number else {
            self.file.write_pcapng_block(packet).map_err(io_error)?;
            return Ok(());
        };
        // The library can read options that it does not know, and write none of them.
        let mut body = Vec::with_capacity(kept.len() + 64);
        packet.write_to::<LittleEndian, _>(&mut body)?;
        body.truncate(body.len() - END_OF_OPTIONS.len());
        body.extend(PACKET_ID.to_le_bytes());
        body.extend((size_of_val(&number) as u16).to_le_bytes());
        body.extend(number.to_le_bytes());
        body.extend(END_OF_OPTIONS);
        // The type and both lengths frame the body.
        let len = body.len() as u32 + 12;
        let body = Cow::Owned(body);
        let block = RawBlock { type_: ENHANCED_PACKET_BLOCK, initial_len: len, body, trailer_len: len };
        self.file.write_raw_block(&block).map_err(io_error)?;
        Ok(())
    }

    /// Number of frames written.
    pub fn frames(&self) -> u64 {
        self.interfaces.iter().map(|(_, written)| written).sum()
    }

    /// Adds the number of frames of every interface with a remark, which describes what was not known at the beginning.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn close(&mut self, remark: &str) -> io::Result<()> {
        for (interface, (_, written)) in (0..).zip(&self.interfaces) {
            let options = vec![
                InterfaceStatisticsOption::Comment(Cow::Borrowed(remark)),
                InterfaceStatisticsOption::IsbIfRecv(*written),
            ];
            let block = InterfaceStatisticsBlock { interface_id: interface, timestamp: 0, options };
            self.file.write_pcapng_block(block).map_err(io_error)?;
        }
        Ok(())
    }

    /// Writes what still waits, and returns the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> io::Result<W> {
        let mut file = self.file.into_inner();
        file.flush()?;
        Ok(file)
    }
}

/// A frame that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Place of its interface, from 0; always 0 in pcap files.
    pub interface: u32,
    /// Time since the start that the file's times count from.
    pub at: Duration,
    /// Direction, if the file tells it.
    pub direction: Option<Direction>,
    /// Number of the frame, if the file numbers its frames.
    pub number: Option<u64>,
    /// The frame without its FCS, as much of it as the file has.
    pub bytes: Vec<u8>,
}

/// True if a file with these first bytes may be a capture.
pub fn is_capture(first: &[u8]) -> bool {
    // The magic numbers of pcap with microseconds and with nanoseconds, in both byte orders.
    let pcap = [
        [0xA1, 0xB2, 0xC3, 0xD4],
        [0xD4, 0xC3, 0xB2, 0xA1],
        [0xA1, 0xB2, 0x3C, 0x4D],
        [0x4D, 0x3C, 0xB2, 0xA1],
    ];
    first.first_chunk().is_some_and(|magic| *magic == PCAPNG || pcap.contains(magic))
}

/// Reads the frames of a pcap or a pcapng file in their order, and hands each to `take`. Other blocks are skipped. Returns the
/// names of the interfaces; one without a name, or a pcap file's, is called by its number.
///
/// # Errors
/// If the file cannot be read or is damaged; the frames in front of the damage have been handed over.
pub fn read(mut from: impl Read, mut take: impl FnMut(Captured)) -> io::Result<Vec<String>> {
    let mut first = [0; 4];
    from.read_exact(&mut first)?;
    let from = io::Cursor::new(first).chain(from);
    if first != PCAPNG {
        let mut file = PcapReader::new(from).map_err(io_error)?;
        while let Some(packet) = file.next_packet() {
            let packet = packet.map_err(io_error)?;
            let (at, bytes) = (packet.timestamp, packet.data.into_owned());
            take(Captured { interface: 0, at, direction: None, number: None, bytes });
        }
        return Ok(vec!["0".to_owned()]);
    }
    let mut file = PcapNgReader::new(from).map_err(io_error)?;
    let big = file.section().endianness == Endianness::Big;
    let (mut names, mut ticks) = (Vec::new(), Vec::new());
    while let Some(block) = file.next_block() {
        match block.map_err(io_error)? {
            Block::InterfaceDescription(interface) => {
                names.push(name(&interface, names.len()));
                ticks.push(ticks_per_second(&interface));
            }
            Block::EnhancedPacket(packet) => {
                let ticks = ticks.get(packet.interface_id as usize).copied().unwrap_or(DEFAULT_TICKS);
                take(captured(packet, ticks, big));
            }
            _ => {}
        }
    }
    Ok(names)
}

/// Name of an interface, or its place.
fn name(interface: &InterfaceDescriptionBlock<'_>, place: usize) -> String {
    let named = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfName(name) => Some(name.clone().into_owned()),
        _ => None,
    });
    named.unwrap_or_else(|| place.to_string())
}

/// Resolution of an interface's times. The highest bit of the option means a power of two.
fn ticks_per_second(interface: &InterfaceDescriptionBlock<'_>) -> u64 {
    let resolution = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(value) => Some(*value),
        _ => None,
    });
    let ticks = match resolution {
        None => Some(DEFAULT_TICKS),
        Some(value) if value & 0x80 != 0 => 1u64.checked_shl(u32::from(value & 0x7F)),
        Some(value) => 10u64.checked_pow(u32::from(value)),
    };
    ticks.unwrap_or(u64::MAX)
}

/// A frame with its options.
fn captured(packet: EnhancedPacketBlock<'_>, ticks: u64, big: bool) -> Captured {
    let (mut direction, mut number, mut fcs) = (None, None, 0);
    for option in &packet.options {
        match option {
            EnhancedPacketOption::Flags(flags) => {
                direction = match flags & 0b11 {
                    INBOUND => Some(Direction::In),
                    OUTBOUND => Some(Direction::Out),
                    _ => None,
                };
                fcs = (flags >> FCS_SHIFT & 0b1111) as usize;
            }
            EnhancedPacketOption::Unknown(option) if option.code == PACKET_ID => {
                let decode = if big { u64::from_be_bytes } else { u64::from_le_bytes };
                number = option.value.first_chunk().copied().map(decode);
            }
            _ => {}
        }
    }
    // The library takes every count of ticks for nanoseconds.
    let nanos = packet.timestamp.as_nanos() * 1_000_000_000 / u128::from(ticks);
    let at = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    let mut bytes = packet.data.into_owned();
    bytes.truncate((packet.original_len as usize).saturating_sub(fcs));
    Captured { interface: packet.interface_id, at, direction, number, bytes }
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
    use pcap_file::pcap::{PcapPacket, PcapWriter};

    #[test]
    fn frames_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        let interface =
            Interface { name: "h1", comment: Some("a remark"), rate: Some(40_000_000), snap_length: 64 };
        let mut file = Writer::new(&mut bytes, "a test", "test 1", &[interface; 2]).unwrap();
        let (at, direction) = (Duration::new(5, 7), Direction::Out);
        file.write(&Record {
            interface: 1,
            at,
            direction,
            bytes: &[3; 60],
            fcs: 0,
            comment: None,
            number: Some(9),
        })
        .unwrap();
        let mut more = |interface, bytes| {
            file.write(&Record { interface, at, direction, bytes, fcs: 4, comment: None, number: Some(10) })
        };
        more(0, &[4; 65]).unwrap();
        assert!(more(2, &[]).is_err());
        assert_eq!(file.frames(), 2);
        file.close("the end").unwrap();
        file.finish().unwrap();
        let mut frames = vec![];
        let names = read(&bytes[..], |frame| frames.push(frame)).unwrap();
        assert_eq!(names, ["h1", "h1"]);
        let direction = Some(direction);
        let whole = Captured { interface: 1, at, direction, number: Some(9), bytes: vec![3; 60] };
        // The FCS is among the bytes that are cut off.
        let cut = Captured { interface: 0, at, direction, number: Some(10), bytes: vec![4; 61] };
        assert_eq!(frames, [whole, cut]);
        assert!(is_capture(&bytes));
    }

    #[test]
    fn times_and_the_fcs_of_other_programs_files_are_understood() {
        let mut bytes = vec![];
        let mut file = PcapNgWriter::new(&mut bytes).unwrap();
        let resolutions = [None, Some(6), Some(0x8A), Some(200)];
        for resolution in resolutions {
            let options = resolution.map(InterfaceDescriptionOption::IfTsResol).into_iter().collect();
            let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options };
            file.write_pcapng_block(block).unwrap();
        }
        for interface_id in 0..4 {
            let (timestamp, data) = (Duration::from_nanos(2_048), Cow::Borrowed(&b"frameFCS!"[..]));
            let options = vec![EnhancedPacketOption::Flags(4 << FCS_SHIFT)];
            let packet = EnhancedPacketBlock { interface_id, timestamp, original_len: 9, data, options };
            file.write_pcapng_block(packet).unwrap();
        }
        let mut frames = vec![];
        assert_eq!(read(&bytes[..], |frame| frames.push(frame)).unwrap(), ["0", "1", "2", "3"]);
        // Microseconds, the same, 1,024 ticks per second, and a resolution that no number has.
        let times = [
            Duration::from_micros(2_048),
            Duration::from_micros(2_048),
            Duration::from_secs(2),
            Duration::ZERO,
        ];
        assert_eq!(frames.iter().map(|frame| frame.at).collect::<Vec<_>>(), times);
        assert!(frames.iter().all(|frame| frame.bytes == b"frame" && frame.direction.is_none()));
    }

    #[test]
    fn pcap_files_are_read_too_and_damage_is_an_error() {
        let mut bytes = Vec::new();
        let mut file = PcapWriter::new(&mut bytes).unwrap();
        file.write_packet(&PcapPacket::new(Duration::new(1, 2000), 9, b"the frame")).unwrap();
        let mut frames = vec![];
        read(&bytes[..], |frame| frames.push(frame)).unwrap();
        assert_eq!((frames.len(), &frames[0].bytes[..]), (1, &b"the frame"[..]));
        assert!(read(&bytes[..bytes.len() - 1], |_| {}).is_err());
        assert!(is_capture(&bytes) && !is_capture(b"[fabric]"));
        assert!(read(&b"no capture"[..], |_| {}).is_err() && read(&b""[..], |_| {}).is_err());
    }
}
