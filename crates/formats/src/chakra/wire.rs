//! The wire format of protocol buffers: numbered fields of numbers and of bytes.

/// A mistake: its byte in the file, and what is wrong.
pub(super) type Mistake = (u64, String);

/// Longest varint: 64 bits in groups of 7.
const LONGEST: usize = 10;

/// The fields of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    bytes: &'a [u8],
    /// Position in the file of the first byte that is left.
    at: u64,
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) value: Value<'a>,
    /// Position of the field in the file.
    pub(super) at: u64,
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// A varint.
    Varint(u64),
    /// 8 bytes, little-endian.
    Fixed64(u64),
    /// 4 bytes, little-endian.
    Fixed32(u32),
    /// A text, a message, or a packed list of numbers.
    Bytes(Message<'a>),
}

impl<'a> Message<'a> {
    /// A message, or a stream of messages, that begins at the byte `at` of its file.
    pub(super) fn new(bytes: &'a [u8], at: u64) -> Self {
        Message { bytes, at }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Position in the file of the next byte.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The next varint.
    pub(super) fn varint(&mut self) -> Result<u64, Mistake> {
        let mut number = 0u64;
        for (i, &byte) in self.bytes.iter().enumerate().take(LONGEST) {
            let bits = u64::from(byte & 0x7f);
            if i + 1 == LONGEST && bits > 1 {
                break;
            }
            number |= bits << (7 * i);
            if byte < 0x80 {
                self.take(i + 1);
                return Ok(number);
            }
        }
        let text = match self.bytes.len() < LONGEST {
            true => "the file ends inside a number",
            false => "expected a number of at most 64 bits",
        };
        Err((self.at, text.into()))
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.bytes.split_at(count);
        (self.bytes, self.at) = (left, self.at + count as u64);
        taken
    }

    /// The bytes behind a length; messages call them `what`.
    pub(super) fn counted(&mut self, what: &str) -> Result<Message<'a>, Mistake> {
        let start = self.at;
        let length = self.varint()?;
        if length > self.bytes.len() as u64 {
            let left = self.bytes.len();
            return Err((start, format!("expected {what} of {length} bytes, and {left} bytes are left")));
        }
        let at = self.at;
        Ok(Message { bytes: self.take(length as usize), at })
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Mistake> {
        match self.bytes.first_chunk::<N>() {
            Some(&chunk) => {
                self.take(N);
                Ok(chunk)
            }
            None => {
                Err((self.at, format!("expected a number of {N} bytes, and {} are left", self.bytes.len())))
            }
        }
    }

    /// The next field; `None` at the end.
    pub(super) fn field(&mut self) -> Result<Option<Field<'a>>, Mistake> {
        if self.is_empty() {
            return Ok(None);
        }
        let at = self.at;
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => Value::Bytes(self.counted("a field")?),
            5 => Value::Fixed32(u32::from_le_bytes(self.fixed()?)),
            kind => {
                return Err((
                    at,
                    format!("field {} has the wire type {kind}, which no Chakra field has", tag >> 3),
                ));
            }
        };
        if tag >> 3 == 0 {
            return Err((at, "expected a field number of at least 1, found 0".into()));
        }
        Ok(Some(Field { number: tag >> 3, value, at }))
    }
}

impl<'a> Field<'a> {
    /// A mistake at the field.
    pub(super) fn wrong<T>(&self, text: impl Into<String>) -> Result<T, Mistake> {
        Err((self.at, text.into()))
    }

    /// The field's varint.
    pub(super) fn varint(&self, what: &str) -> Result<u64, Mistake> {
        match self.value {
            Value::Varint(number) => Ok(number),
            _ => self.wrong(format!("expected {what}, a number")),
        }
    }

    /// The field's message.
    pub(super) fn message(&self, what: &str) -> Result<Message<'a>, Mistake> {
        match self.value {
            Value::Bytes(message) => Ok(message),
            _ => self.wrong(format!("expected {what}")),
        }
    }

    /// The field's text. Bytes that are not UTF-8 are replaced.
    pub(super) fn text(&self, what: &str) -> Result<String, Mistake> {
        Ok(String::from_utf8_lossy(self.message(what)?.bytes).into_owned())
    }

    /// Adds the field's numbers to a list: one number, or a packed list of them.
    pub(super) fn numbers(&self, what: &str, list: &mut Vec<u64>) -> Result<(), Mistake> {
        let Value::Bytes(mut packed) = self.value else {
            list.push(self.varint(what)?);
            return Ok(());
        };
        while !packed.is_empty() {
            list.push(packed.varint()?);
        }
        Ok(())
    }
}
