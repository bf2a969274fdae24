//! Code that all views share: a check of the length, and fields in network byte order.

/// Defines `View` for a header of `LEN` bytes.
macro_rules! view {
    ($(#[$doc:meta])* $layer:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct View<T>(T);

        impl<T: AsRef<[u8]>> View<T> {
            /// A view of bytes that begin with the header.
            ///
            /// # Errors
            /// [`Error::Short`](crate::Error::Short) if the bytes end within the header.
            pub fn new(bytes: T) -> Result<Self, crate::Error> {
                crate::enough(crate::Layer::$layer, LEN, bytes.as_ref().len())?;
                Ok(View(bytes))
            }

            /// Bytes behind the header.
            pub fn payload(&self) -> &[u8] {
                &self.0.as_ref()[LEN..]
            }

            fn bytes(&self) -> &[u8] {
                self.0.as_ref()
            }
        }

        impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
            /// Bytes behind the header.
            pub fn payload_mut(&mut self) -> &mut [u8] {
                &mut self.0.as_mut()[LEN..]
            }

            fn bytes_mut(&mut self) -> &mut [u8] {
                self.0.as_mut()
            }
        }
    };
}

/// Reads a 16-bit number at `at`.
pub(crate) fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Reads a 24-bit number at `at`.
pub(crate) fn get24(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

/// Reads a 32-bit number at `at`.
pub(crate) fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads a 64-bit number at `at`.
pub(crate) fn get64(bytes: &[u8], at: usize) -> u64 {
    u64::from(get32(bytes, at)) << 32 | u64::from(get32(bytes, at + 4))
}

/// Writes bytes at `at`.
pub(crate) fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

/// Writes the lowest 24 bits of a number at `at`.
pub(crate) fn put24(bytes: &mut [u8], at: usize, value: u32) {
    let [_, a, b, c] = value.to_be_bytes();
    put(bytes, at, [a, b, c]);
}

/// Sets the bits of `mask` at `at` to `value`.
pub(crate) fn put_bits(bytes: &mut [u8], at: usize, mask: u8, value: u8) {
    bytes[at] = bytes[at] & !mask | value & mask;
}
