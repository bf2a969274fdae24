//! Capture files: frames with times. The writer makes pcapng (IETF draft-ietf-opsawg-pcapng), which has interfaces,
//! nanoseconds and comments; the reader takes pcap as well.

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Resolution of times, as a negative power of ten: 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Packet flags: direction in bits 0 and 1, length of the FCS in bytes in bits 5 to 8.
const INBOUND: u32 = 0b01;
const OUTBOUND: u32 = 0b10;
const FCS_SHIFT: u32 = 5;
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
    /// The frame.
    pub bytes: &'a [u8],
    /// Bytes of the FCS at its end: 4 or 0.
    pub fcs: u32,
    /// A remark.
    pub comment: Option<&'a str>,
}

/// Writes a pcapng file. The bytes depend on the arguments alone.
pub struct Writer<W: Write> {
    file: PcapNgWriter<W>,
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
            // A snapshot length of 0 means no limit.
            let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options };
            file.write_pcapng_block(block).map_err(io_error)?;
        }
        Ok(Writer { file })
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
        let mut options = vec![EnhancedPacketOption::Flags(record.fcs << FCS_SHIFT | direction)];
        options.extend(record.comment.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text))));
        let packet = EnhancedPacketBlock {
            interface_id: record.interface,
            // The library writes nanoseconds, whatever the resolution.
            timestamp: record.at,
            original_len: record.bytes.len() as u32,
            data: Cow::Borrowed(record.bytes),
            options,
        };
        self.file.write_pcapng_block(packet).map_err(io_error)?;
        Ok(())
    }

    /// Writes what still waits.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> io::Result<()> {
        self.file.into_inner().flush()
    }
}

/// A frame that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Place of its interface, from 0; always 0 in pcap files.
    pub interface: u32,
    /// Time since the start that the file's times count from.
    pub at: Duration,
    /// The frame, as much of it as the file has.
    pub bytes: Vec<u8>,
}

/// Reads the frames of a pcap or a pcapng file in their order, and hands each to `take`. Other blocks are skipped.
///
/// # Errors
/// If the file cannot be read or is damaged; the frames in front of the damage have been handed over.
pub fn read(mut from: impl Read, mut take: impl FnMut(Captured)) -> io::Result<()> {
    let mut first = [0; 4];
    from.read_exact(&mut first)?;
    let from = io::Cursor::new(first).chain(from);
    if first != PCAPNG {
        let mut file = PcapReader::new(from).map_err(io_error)?;
        while let Some(packet) = file.next_packet() {
            let packet = packet.map_err(io_error)?;
            take(Captured { interface: 0, at: packet.timestamp, bytes: packet.data.into_owned() });
        }
        return Ok(());
    }
    let mut file = PcapNgReader::new(from).map_err(io_error)?;
    while let Some(block) = file.next_block() {
        if let Block::EnhancedPacket(packet) = block.map_err(io_error)? {
            let (interface, at) = (packet.interface_id, packet.timestamp);
            take(Captured { interface, at, bytes: packet.data.into_owned() });
        }
    }
    Ok(())
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
        let interface = Interface { name: "h1", comment: Some("a remark"), rate: Some(40_000_000) };
        let mut file = Writer::new(&mut bytes, "a test", "test 1", &[interface; 2]).unwrap();
        let (at, direction) = (Duration::new(5, 7), Direction::Out);
        file.write(&Record { interface: 1, at, direction, bytes: &[3; 60], fcs: 0, comment: None }).unwrap();
        file.finish().unwrap();
        let mut frames = vec![];
        read(&bytes[..], |frame| frames.push(frame)).unwrap();
        assert_eq!(frames, [Captured { interface: 1, at, bytes: vec![3; 60] }]);
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
        assert!(read(&b"no capture"[..], |_| {}).is_err() && read(&b""[..], |_| {}).is_err());
    }
}
