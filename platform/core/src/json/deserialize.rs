//! Deserializes a checked text with serde.

use std::{borrow::Cow, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, Unexpected, Visitor, value::CowStrDeserializer},
    forward_to_deserialize_any,
};

use super::{
    error::{Error, ErrorKind},
    parts::{Parts, Variant},
    raw::RAW,
    text,
};

/// Deserializes `text` after its form was checked.
pub(super) fn deserialize<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Error> {
    let mut reader = Reader { text, at: 0 };
    T::deserialize(&mut reader).map_err(|error| error.or_at(text, reader.at))
}

/// A place in a text of checked form.
pub(super) struct Reader<'de> {
    text: &'de str,
    at: usize,
}

impl<'de> Reader<'de> {
    /// Returns the next byte behind spaces.
    pub(super) fn peek(&mut self) -> u8 {
        let rest = &self.text.as_bytes()[self.at..];
        let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.at += spaces;
        rest.get(spaces).copied().unwrap_or_default()
    }

    pub(super) fn skip_if(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == byte;
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes a number, `true`, `false` or `null`.
    fn word(&mut self) -> &'de str {
        let rest = &self.text[self.at..];
        let ends = |byte: u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
        let word = &rest[..rest.bytes().position(ends).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// Takes a string; returns what stands between its quotes.
    fn quoted(&mut self) -> &'de str {
        let rest = &self.text[self.at + 1..];
        let mut length = 0;
        loop {
            let plain = rest.as_bytes()[length..].iter().position(|byte| matches!(byte, b'"' | b'\\'));
            length += plain.unwrap_or_default();
            if rest.as_bytes()[length] == b'"' {
                break;
            }
            length += 2;
        }
        self.at += length + 2;
        &rest[..length]
    }

    pub(super) fn string(&mut self) -> Result<Cow<'de, str>, Error> {
        text::decode(self.quoted()).map_err(Error::without_place)
    }

    /// Takes any value, in a loop.
    fn skip(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                b'"' => drop(self.quoted()),
                _ => drop(self.word()),
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Takes any value; returns it as it is written.
    fn raw(&mut self) -> &'de str {
        self.peek();
        let start = self.at;
        self.skip();
        &self.text[start..self.at]
    }

    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let word = self.word();
        let out_of_range = || Error::without_place(ErrorKind::Number);
        if word.contains(['.', 'e', 'E']) {
            let float = word.parse::<f64>().ok().filter(|float| float.is_finite());
            return visitor.visit_f64(float.ok_or_else(out_of_range)?);
        }
        match (word.parse::<u64>(), word.parse::<i64>()) {
            // Only a float has a negative zero.
            (_, Ok(0)) if word.starts_with('-') => visitor.visit_f64(-0.0),
            (Ok(number), _) => visitor.visit_u64(number),
            (_, Ok(number)) => visitor.visit_i64(number),
            _ => Err(out_of_range()),
        }
    }

    /// Takes a whole number that a type of 128 bits holds, if there is one.
    fn wide<N: FromStr>(&mut self) -> Option<N> {
        let is_number = matches!(self.peek(), b'-' | b'0'..=b'9');
        let start = self.at;
        let number = is_number.then(|| self.word().parse().ok()).flatten();
        if number.is_none() {
            self.at = start;
        }
        number
    }

    fn unexpected(&mut self) -> Unexpected<'de> {
        match self.peek() {
            b'[' => Unexpected::Seq,
            b'{' => Unexpected::Map,
            b'"' => Unexpected::Other("a string"),
            b'n' => Unexpected::Unit,
            b't' | b'f' => Unexpected::Other("a boolean"),
            _ => Unexpected::Other("a number"),
        }
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.peek() {
            b'{' => {
                self.at += 1;
                let value = visitor.visit_map(Parts::of(self))?;
                self.end(b'}')?;
                Ok(value)
            }
            b'[' => {
                self.at += 1;
                let value = visitor.visit_seq(Parts::of(self))?;
                self.end(b']')?;
                Ok(value)
            }
            b'"' => match self.string()? {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            b'n' => {
                self.word();
                visitor.visit_unit()
            }
            b't' | b'f' => visitor.visit_bool(self.word() == "true"),
            _ => self.number(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek() == b'n' {
            self.word();
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == RAW { visitor.visit_borrowed_str(self.raw()) } else { visitor.visit_newtype_struct(self) }
    }

    /// An array of the fields is another text of the same meaning, and refused.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    /// A map of serde_json takes `null` for an empty one.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek() == b'{' {
            return self.deserialize_any(visitor);
        }
        Err(Error::invalid_type(self.unexpected(), &"an object"))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek() == b'[' {
            return self.deserialize_any(visitor);
        }
        Err(Error::invalid_type(self.unexpected(), &"an array"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.peek() {
            b'"' => visitor.visit_enum(CowStrDeserializer::new(self.string()?)),
            b'{' => {
                self.at += 1;
                let value = visitor.visit_enum(Variant { reader: self })?;
                self.end(b'}')?;
                Ok(value)
            }
            _ => Err(Error::invalid_type(self.unexpected(), &"a string or an object with one member")),
        }
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.wide() {
            Some(number) => visitor.visit_i128(number),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.wide() {
            Some(number) => visitor.visit_u128(number),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.skip();
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple tuple_struct identifier
    }
}

impl Reader<'_> {
    /// Takes the end of an array or object, of which a visitor may have left a rest.
    fn end(&mut self, byte: u8) -> Result<(), Error> {
        if self.skip_if(byte) {
            return Ok(());
        }
        Err(Error::custom("it has more parts than expected"))
    }
}
