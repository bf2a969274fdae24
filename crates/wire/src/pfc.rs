//! Pause frames of priority flow control (IEEE 802.1Qbb; IEEE 802.3, annex 31D): the payload of an Ethernet frame of type MAC
//! control.

use crate::ethernet::Address;
use crate::view::{get16, put};
use crate::{Error, Layer};

/// Length of opcode, vector and times, bytes. Zeros pad the frame to the shortest length.
pub const LEN: usize = 20;
/// Opcode of priority flow control.
pub const OPCODE: u16 = 0x0101;
/// Destination address of MAC control frames, which bridges do not forward.
pub const DESTINATION: Address = Address([0x01, 0x80, 0xC2, 0x00, 0x00, 0x01]);
/// Longest pause in quanta. A quantum is the transmission time of 512 bits.
pub const LONGEST: u16 = u16::MAX;

view! {
    /// A view of a pause frame's payload.
    Pfc
}

impl<T: AsRef<[u8]>> View<T> {
    /// MAC control opcode, [`OPCODE`] in a pause frame.
    pub fn opcode(&self) -> u16 {
        get16(self.bytes(), 0)
    }

    /// True if the frame pauses or resumes a class, 0 to 7.
    pub fn enabled(&self, class: u8) -> bool {
        class < 8 && self.vector() >> class & 1 != 0
    }

    /// Class-enable vector: bit n stands for class n.
    pub fn vector(&self) -> u16 {
        get16(self.bytes(), 2)
    }

    /// Pause of a class in quanta; 0 resumes the class. `None` if the frame does not affect the class.
    pub fn quanta(&self, class: u8) -> Option<u16> {
        self.enabled(class).then(|| get16(self.bytes(), 4 + 2 * usize::from(class)))
    }
}

/// A pause frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repr {
    /// By class: pause in quanta. 0 resumes the class, and `None` does not affect it.
    pub quanta: [Option<u16>; 8],
}

impl Repr {
    /// A pause of one class, the lowest three bits of `class`.
    pub const fn of(class: u8, quanta: u16) -> Self {
        let mut all = [None; 8];
        all[(class & 7) as usize] = Some(quanta);
        Repr { quanta: all }
    }

    /// Reads the payload of a pause frame.
    ///
    /// # Errors
    /// The opcode differs from [`OPCODE`], or the vector names a class above 7.
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Result<Self, Error> {
        let wrong = |field, value: u16| Err(Error::Field { layer: Layer::Pfc, field, value: value.into() });
        if view.opcode() != OPCODE {
            return wrong("opcode", view.opcode());
        }
        if view.vector() > 0xFF {
            return wrong("class-enable vector", view.vector());
        }
        Ok(Repr { quanta: core::array::from_fn(|class| view.quanta(class as u8)) })
    }

    /// Writes the payload of a pause frame.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, view: &mut View<T>) {
        let bytes = view.bytes_mut();
        put(bytes, 0, OPCODE.to_be_bytes());
        let mut vector = 0u16;
        for (class, quanta) in self.quanta.iter().enumerate() {
            vector |= u16::from(quanta.is_some()) << class;
            put(bytes, 4 + 2 * class, quanta.unwrap_or(0).to_be_bytes());
        }
        put(bytes, 2, vector.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_class_three_has_the_standards_bytes() {
        let mut bytes = [0xEE; LEN];
        Repr::of(3, LONGEST).emit(&mut View::new(&mut bytes[..]).unwrap());
        let mut right = [0; LEN];
        right[..4].copy_from_slice(&[1, 1, 0, 0b1000]);
        right[10..12].copy_from_slice(&[0xFF, 0xFF]);
        assert_eq!(bytes, right);
        let view = View::new(&bytes[..]).unwrap();
        assert_eq!(Repr::parse(&view), Ok(Repr::of(3, LONGEST)));
        assert_eq!((view.quanta(3), view.quanta(2), view.quanta(200)), (Some(LONGEST), None, None));
    }

    #[test]
    fn a_plain_pause_or_a_ninth_class_is_refused() {
        let mut bytes = [0; LEN];
        Repr::of(0, 0).emit(&mut View::new(&mut bytes[..]).unwrap());
        bytes[2] = 1;
        let parse = |bytes: &[u8]| Repr::parse(&View::new(bytes).unwrap());
        assert!(matches!(parse(&bytes), Err(Error::Field { field: "class-enable vector", .. })));
        bytes[0] = 0;
        assert!(matches!(parse(&bytes), Err(Error::Field { field: "opcode", value: 1, .. })));
    }
}
