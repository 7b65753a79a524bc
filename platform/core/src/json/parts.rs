//! Hands the parts of arrays, objects and variants to visitors.

use std::borrow::Cow;

use serde::{
    Deserializer,
    de::{
        DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
        VariantAccess, Visitor, value::BorrowedStrDeserializer,
    },
};

use super::{
    Error, ErrorKind,
    deserialize::Reader,
    names::{Names, is_reserved},
};

/// Items of an array, or members of an object.
pub(super) struct Parts<'r, 'de> {
    reader: &'r mut Reader<'de>,
    names: Names<'de>,
}

impl<'r, 'de> Parts<'r, 'de> {
    /// Returns the parts of an array or object after its bracket has been taken.
    pub(super) fn of(reader: &'r mut Reader<'de>) -> Self {
        Self { reader, names: Names::default() }
    }
}

impl Parts<'_, '_> {
    /// Steps to the next part; returns whether there is one.
    fn step(&mut self) -> bool {
        if matches!(self.reader.peek(), b']' | b'}') {
            return false;
        }
        self.reader.skip_if(b',');
        true
    }
}

impl<'de> SeqAccess<'de> for Parts<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.step().then(|| seed.deserialize(&mut *self.reader)).transpose()
    }
}

impl<'de> MapAccess<'de> for Parts<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if !self.step() {
            self.names.check().map_err(Error::without_place)?;
            return Ok(None);
        }
        self.reader.peek();
        let name = self.reader.string()?;
        self.names.push(name.clone());
        if is_reserved(&name) {
            return Err(Error::without_place(ErrorKind::Reserved));
        }
        self.reader.skip_if(b':');
        named(seed, name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.reader)
    }
}

fn named<'de, S: DeserializeSeed<'de>>(seed: S, name: Cow<'de, str>) -> Result<S::Value, Error> {
    match name {
        Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
        Cow::Owned(name) => seed.deserialize(name.into_deserializer()),
    }
}

/// A variant with data: the only member of an object.
pub(super) struct Variant<'r, 'de> {
    pub(super) reader: &'r mut Reader<'de>,
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        if self.reader.peek() != b'"' {
            return Err(Error::custom("expected an object with one member"));
        }
        let name = self.reader.string()?;
        self.reader.skip_if(b':');
        Ok((named(seed, name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    /// A variant without data is a string, and nothing else.
    fn unit_variant(self) -> Result<(), Error> {
        Err(Error::invalid_type(Unexpected::Map, &"a string"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        self.reader.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.reader.deserialize_struct("", fields, visitor)
    }
}
