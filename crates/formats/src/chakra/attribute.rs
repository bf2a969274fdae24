//! Attributes of nodes: names with values of many types.

use super::wire::{Message, Mistake, Value};

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) value: Data,
    /// Position in the file.
    pub(super) at: u64,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    /// No value, which stands for 0, false or an empty text.
    None,
    /// A whole number of any type, or a truth value.
    Number(i128),
    /// A text.
    Text(String),
    /// A list of truth values.
    Bools(Vec<bool>),
    /// A value of another type, which no attribute that counts has.
    Other,
}

impl Attribute {
    pub(super) fn read(mut message: Message<'_>, at: u64) -> Result<Self, Mistake> {
        let mut attribute = Attribute { name: String::new(), value: Data::None, at };
        while let Some(field) = message.field()? {
            match (field.number, field.value) {
                (1, _) => attribute.name = field.text("the name of an attribute")?,
                (2, _) => drop(field.text("a comment")?),
                (7 | 9, Value::Varint(n)) => attribute.value = Data::Number((n as i64).into()),
                (11 | 13 | 27, Value::Varint(n)) => attribute.value = Data::Number(n.into()),
                // Zigzag: the lowest bit is the sign.
                (15 | 17, Value::Varint(n)) => {
                    attribute.value = Data::Number(i128::from(n >> 1) ^ -i128::from(n & 1));
                }
                (19, Value::Fixed32(n)) => attribute.value = Data::Number(n.into()),
                (21, Value::Fixed64(n)) => attribute.value = Data::Number(n.into()),
                (23, Value::Fixed32(n)) => attribute.value = Data::Number((n as i32).into()),
                (25, Value::Fixed64(n)) => attribute.value = Data::Number((n as i64).into()),
                (28, Value::Bytes(list)) => attribute.value = Data::Bools(bools(list)?),
                (29, Value::Bytes(_)) => attribute.value = Data::Text(field.text("a text")?),
                (7 | 9 | 11 | 13 | 15 | 17 | 19 | 21 | 23 | 25 | 27..=29, _) => {
                    return field.wrong(format!("the value of `{}` does not have its type", attribute.name));
                }
                _ => attribute.value = Data::Other,
            }
        }
        Ok(attribute)
    }

    fn wrong<T>(&self, what: &str) -> Result<T, Mistake> {
        Err((self.at, format!("expected `{}` to be {what}", self.name)))
    }

    /// A whole number in the range of `T`.
    pub(super) fn number<T: TryFrom<i128>>(&self, what: &str) -> Result<T, Mistake> {
        let number = match self.value {
            Data::None => 0,
            Data::Number(number) => number,
            _ => return self.wrong(what),
        };
        T::try_from(number).or_else(|_| self.wrong(&format!("{what}, found {number}")))
    }

    /// A truth value.
    pub(super) fn bool(&self) -> Result<bool, Mistake> {
        Ok(self.number::<u64>("true or false")? != 0)
    }

    /// A text; numbers are written in digits.
    pub(super) fn text(&self) -> Result<String, Mistake> {
        match &self.value {
            Data::None => Ok(String::new()),
            Data::Number(number) => Ok(number.to_string()),
            Data::Text(text) => Ok(text.clone()),
            _ => self.wrong("a text"),
        }
    }

    /// True if a list of truth values has a false one.
    pub(super) fn has_false(&self) -> Result<bool, Mistake> {
        match &self.value {
            Data::None => Ok(false),
            Data::Bools(list) => Ok(list.contains(&false)),
            _ => self.wrong("a list of truth values"),
        }
    }
}

fn bools(mut list: Message<'_>) -> Result<Vec<bool>, Mistake> {
    let mut numbers = Vec::new();
    while let Some(field) = list.field()? {
        if field.number == 1 {
            field.numbers("a truth value", &mut numbers)?;
        }
    }
    Ok(numbers.into_iter().map(|number| number != 0).collect())
}
