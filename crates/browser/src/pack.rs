//! A header in JSON and columns of numbers, as bytes that JavaScript views without a copy.
//!
//! The bytes are: the length of the JSON (32 bits), the JSON, zeros up to a multiple of 8, and then the columns, each filled
//! up to a multiple of 8. The JSON is `{"head": ..., "columns": {NAME: {"type", "at", "length"}}}`, where `at` counts bytes
//! from the first column. All numbers are little-endian, as WebAssembly's are.

use serde_json::{Value, json};

/// A number of a column.
pub trait Number: Copy {
    /// Name of the typed array in the header.
    const TYPE: &'static str;

    /// Appends the number.
    fn put(self, to: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($type:ident),*) => {$(
        impl Number for $type {
            const TYPE: &'static str = stringify!($type);

            fn put(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

numbers!(f64, u32, u8);

/// Columns to be packed.
#[derive(Debug, Default)]
pub struct Pack {
    described: serde_json::Map<String, Value>,
    data: Vec<u8>,
}

impl Pack {
    /// Adds a column.
    pub fn column<N: Number>(&mut self, name: &str, values: impl IntoIterator<Item = N>) {
        let at = self.data.len();
        let mut length = 0;
        for value in values {
            value.put(&mut self.data);
            length += 1;
        }
        fill(&mut self.data);
        let about = json!({ "type": N::TYPE, "at": at, "length": length });
        self.described.insert(name.to_owned(), about);
    }

    /// The bytes of a header and of all columns.
    pub fn finish(self, head: Value) -> Vec<u8> {
        let json = json!({ "head": head, "columns": self.described }).to_string();
        let mut bytes = Vec::with_capacity(json.len() + self.data.len() + 16);
        (json.len() as u32).put(&mut bytes);
        bytes.extend_from_slice(json.as_bytes());
        fill(&mut bytes);
        bytes.extend_from_slice(&self.data);
        bytes
    }
}

fn fill(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_where_the_header_says() {
        let mut pack = Pack::default();
        pack.column("bytes", [1u8, 2, 3]);
        pack.column("numbers", [7u32, 9]);
        pack.column("times", [0.5f64]);
        let bytes = pack.finish(json!("a head of odd length"));
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
        assert_eq!(header["head"], "a head of odd length");
        let data = &bytes[(4 + length).next_multiple_of(8)..];
        let column = |name: &str| {
            let about = &header["columns"][name];
            (&data[about["at"].as_u64().unwrap() as usize..], about["length"].as_u64().unwrap())
        };
        assert_eq!((&column("bytes").0[..3], column("bytes").1), (&[1, 2, 3][..], 3));
        assert_eq!((&column("numbers").0[..8], column("numbers").1), (&[7, 0, 0, 0, 9, 0, 0, 0][..], 2));
        assert_eq!((&column("times").0[..8], column("times").1), (&0.5f64.to_le_bytes()[..], 1));
    }
}
