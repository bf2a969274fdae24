//! IPv4 (RFC 791).

use crate::ecn::TrafficClass;
use crate::view::{get16, put};
use crate::{Error, Layer, enough};
use core::net::Ipv4Addr;

/// Length of a header without options, bytes. RoCEv2 packets have no options.
pub const LEN: usize = 20;
/// Protocol number of UDP (IANA).
pub const UDP: u8 = 17;

const DONT_FRAGMENT: u16 = 1 << 14;

/// A view of an IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<T>(T);

impl<T: AsRef<[u8]>> View<T> {
    /// A view of bytes that begin with a packet.
    ///
    /// # Errors
    /// The bytes are not IPv4, they end within the packet, or its lengths contradict each other. The checksum is not checked.
    pub fn new(bytes: T) -> Result<Self, Error> {
        let has = bytes.as_ref().len();
        enough(Layer::Ipv4, LEN, has)?;
        let view = View(bytes);
        let wrong = |field, value: u16| Err(Error::Field { layer: Layer::Ipv4, field, value: value.into() });
        let first = view.bytes()[0];
        if first >> 4 != 4 {
            return wrong("version", u16::from(first >> 4));
        }
        if view.header_len() < LEN {
            return wrong("IHL", u16::from(first & 0xF));
        }
        let total = view.total_len();
        if usize::from(total) < view.header_len() {
            return wrong("total length", total);
        }
        enough(Layer::Ipv4, total.into(), has)?;
        Ok(view)
    }

    /// Length of the header with its options, bytes.
    pub fn header_len(&self) -> usize {
        usize::from(self.bytes()[0] & 0xF) * 4
    }

    /// Type of service: DSCP and ECN.
    pub fn traffic_class(&self) -> TrafficClass {
        TrafficClass(self.bytes()[1])
    }

    /// Length of header and payload, bytes.
    pub fn total_len(&self) -> u16 {
        get16(self.bytes(), 2)
    }

    /// Number that all fragments of one packet share.
    pub fn identification(&self) -> u16 {
        get16(self.bytes(), 4)
    }

    /// True if routers may not fragment the packet.
    pub fn dont_fragment(&self) -> bool {
        get16(self.bytes(), 6) & DONT_FRAGMENT != 0
    }

    /// True for a fragment of a packet.
    pub fn is_fragment(&self) -> bool {
        get16(self.bytes(), 6) & !(DONT_FRAGMENT | 1 << 15) != 0
    }

    /// Number of hops that are left.
    pub fn time_to_live(&self) -> u8 {
        self.bytes()[8]
    }

    /// Protocol of the payload.
    pub fn protocol(&self) -> u8 {
        self.bytes()[9]
    }

    /// Checksum of the header.
    pub fn checksum(&self) -> u16 {
        get16(self.bytes(), 10)
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        self.address(12)
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        self.address(16)
    }

    /// The correct checksum of the header.
    pub fn right_checksum(&self) -> u16 {
        let bytes = self.bytes();
        checksum(&bytes[..self.header_len().min(bytes.len())])
    }

    /// Payload, as long as the total length demands.
    pub fn payload(&self) -> &[u8] {
        let (start, end) = self.span();
        &self.bytes()[start..end]
    }

    fn span(&self) -> (usize, usize) {
        // `new` has checked both. The bytes may have changed since, so the span is limited again.
        let end = usize::from(self.total_len()).min(self.bytes().len());
        (self.header_len().min(end), end)
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        let b = self.bytes();
        Ipv4Addr::new(b[at], b[at + 1], b[at + 2], b[at + 3])
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets DSCP and ECN, and the checksum with them.
    pub fn set_traffic_class(&mut self, class: TrafficClass) {
        self.0.as_mut()[1] = class.0;
        self.fill_checksum();
    }

    /// Sets the number of hops that are left, and the checksum with it.
    pub fn set_time_to_live(&mut self, hops: u8) {
        self.0.as_mut()[8] = hops;
        self.fill_checksum();
    }

    /// Sets the correct checksum.
    pub fn fill_checksum(&mut self) {
        let right = self.right_checksum();
        put(self.0.as_mut(), 10, right.to_be_bytes());
    }

    /// Payload, as long as the total length demands.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let (start, end) = self.span();
        &mut self.0.as_mut()[start..end]
    }
}

/// Checksum of a header: the complement of the ones' complement sum of all its words except the checksum (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words = (0..header.len() / 2).filter(|&i| i != 5).map(|i| u32::from(get16(header, 2 * i)));
    let sum: u32 = words.sum();
    // A header has at most 29 such words, so two folds leave no carry.
    let sum = (sum & 0xFFFF) + (sum >> 16);
    !((sum & 0xFFFF) + (sum >> 16)) as u16
}

/// An IPv4 header without options, of a packet that is not a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// DSCP and ECN.
    pub traffic_class: TrafficClass,
    /// Number that all fragments of one packet share.
    pub identification: u16,
    /// True if routers may not fragment the packet.
    pub dont_fragment: bool,
    /// Number of hops that are left.
    pub time_to_live: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Length of the payload, bytes.
    pub payload_len: u16,
}

impl Repr {
    /// Reads the header.
    ///
    /// # Errors
    /// The checksum is wrong, the header has options, or the packet is a fragment.
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Result<Self, Error> {
        let (found, right) = (view.checksum(), view.right_checksum());
        if found != right {
            return Err(Error::Checksum { layer: Layer::Ipv4, found: found.into(), right: right.into() });
        }
        plain(view)?;
        Ok(Repr {
            traffic_class: view.traffic_class(),
            identification: view.identification(),
            dont_fragment: view.dont_fragment(),
            time_to_live: view.time_to_live(),
            protocol: view.protocol(),
            source: view.source(),
            destination: view.destination(),
            payload_len: view.total_len().saturating_sub(LEN as u16),
        })
    }

    /// Writes the header at the start of `bytes`, with its checksum.
    ///
    /// # Errors
    /// Header and payload do not fit into `bytes`, or the payload is longer than a packet can be.
    pub fn emit(&self, bytes: &mut [u8]) -> Result<(), Error> {
        let Some(total) = self.payload_len.checked_add(LEN as u16) else {
            let value = self.payload_len.into();
            return Err(Error::Field { layer: Layer::Ipv4, field: "total length", value });
        };
        enough(Layer::Ipv4, total.into(), bytes.len())?;
        put(bytes, 0, [0x45, self.traffic_class.0]);
        put(bytes, 2, total.to_be_bytes());
        put(bytes, 4, self.identification.to_be_bytes());
        put(bytes, 6, if self.dont_fragment { DONT_FRAGMENT } else { 0 }.to_be_bytes());
        put(bytes, 8, [self.time_to_live, self.protocol]);
        put(bytes, 12, self.source.octets());
        put(bytes, 16, self.destination.octets());
        let sum = checksum(&bytes[..LEN]);
        put(bytes, 10, sum.to_be_bytes());
        Ok(())
    }
}

/// Fails for a packet with options and for a fragment, which RoCEv2 never sends.
pub(crate) fn plain<T: AsRef<[u8]>>(view: &View<T>) -> Result<(), Error> {
    let wrong = |field, value| Err(Error::Field { layer: Layer::Ipv4, field, value });
    if view.header_len() != LEN {
        return wrong("IHL", view.header_len() as u32 / 4);
    }
    if view.is_fragment() {
        return wrong("fragment", get16(view.bytes(), 6).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecn::Ecn;

    const REPR: Repr = Repr {
        traffic_class: TrafficClass::new(26, Ecn::Ect0),
        identification: 0x1C46,
        dont_fragment: true,
        time_to_live: 64,
        protocol: UDP,
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 1, 2),
        payload_len: 6,
    };

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let mut bytes = [0xAA; 40];
        REPR.emit(&mut bytes).unwrap();
        let view = View::new(&bytes[..]).unwrap();
        assert_eq!((Repr::parse(&view), view.payload()), (Ok(REPR), &[0xAA; 6][..]));
    }

    /// The header of a widely used worked example; its checksum is 0xB861.
    #[test]
    fn the_checksum_equals_that_of_a_worked_example() {
        let bytes =
            [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xC0, 0xA8, 0, 1, 0xC0, 0xA8, 0, 0xC7];
        assert_eq!(checksum(&bytes), 0xB861);
    }

    #[test]
    fn marking_updates_the_checksum() {
        let mut bytes = [0; 26];
        REPR.emit(&mut bytes).unwrap();
        let mut view = View::new(&mut bytes[..]).unwrap();
        view.set_traffic_class(view.traffic_class().with_ecn(Ecn::Ce));
        view.set_time_to_live(63);
        let read = Repr::parse(&view).unwrap();
        assert_eq!((read.traffic_class.ecn(), read.time_to_live), (Ecn::Ce, 63));
    }

    #[test]
    fn the_error_names_the_field_that_is_not_plain_ipv4() {
        let mut good = [0; 26];
        REPR.emit(&mut good).unwrap();
        let field = |at: usize, value: u8| {
            let mut bytes = good;
            bytes[at] = value;
            match View::new(bytes).and_then(|mut view| {
                view.fill_checksum();
                Repr::parse(&view)
            }) {
                Err(Error::Field { field, .. }) => field,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(field(0, 0x65), "version");
        assert_eq!(field(0, 0x44), "IHL");
        assert_eq!(field(0, 0x46), "IHL", "options");
        assert_eq!(field(3, 19), "total length");
        assert_eq!(field(6, 0x20), "fragment");
        assert_eq!(field(7, 1), "fragment");
        good[15] ^= 1;
        let parsed = Repr::parse(&View::new(&good[..]).unwrap());
        assert!(matches!(parsed, Err(Error::Checksum { layer: Layer::Ipv4, .. })));
        assert!(matches!(View::new(&good[..25]), Err(Error::Short { needs: 26, has: 25, .. })));
    }
}
