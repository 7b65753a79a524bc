//! Reads JSON leniently: a value that is broken, or of another type, counts as absent.
//!
//! This module is for answers only. Nothing is checked, copied or allocated, and time is linear in the bytes at each
//! level that a caller asks for. `exchange::rewrite` judges a request's body, not this.

use memchr::memchr2;

/// A value as an answer writes it, without space around it. Empty if it is absent; null counts as absent.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Json<'a>(&'a [u8]);

/// Walk through an object or array, which ends where it is not understood.
#[derive(Debug, Clone)]
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Json<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let value = bytes.trim_ascii();
        if value == b"null" { Self::default() } else { Self(value) }
    }

    pub(super) const fn is_there(self) -> bool {
        !self.0.is_empty()
    }

    pub(super) const fn raw(self) -> &'a [u8] {
        self.0
    }

    pub(super) fn is_empty_object(self) -> bool {
        self.0.first() == Some(&b'{') && self.members().next().is_none()
    }

    /// Returns the members of an object that are not null: names as they are written, and values.
    pub(super) fn members(self) -> impl Iterator<Item = (&'a [u8], Self)> {
        let mut walk = Walk::into(self.0, b'{');
        std::iter::from_fn(move || walk.member()).filter(|(_, value)| value.is_there())
    }

    /// Returns the elements of an array that are not null.
    pub(super) fn elements(self) -> impl Iterator<Item = Self> {
        let mut walk = Walk::into(self.0, b'[');
        std::iter::from_fn(move || walk.value()).filter(|value| value.is_there())
    }

    /// Returns the last member of this name, or none.
    pub(super) fn member(self, name: &str) -> Self {
        self.members().filter(|(found, _)| *found == name.as_bytes()).last().unwrap_or_default().1
    }

    /// Returns the content of a string, between its quotes.
    pub(super) fn quoted(self) -> Option<&'a [u8]> {
        self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }
}

impl<'a> Walk<'a> {
    /// Starts behind the opening bracket, or at the end if another byte comes first.
    fn into(bytes: &'a [u8], bracket: u8) -> Self {
        let at = if bytes.first() == Some(&bracket) { 1 } else { bytes.len() };
        Self { bytes, at }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn member(&mut self) -> Option<(&'a [u8], Json<'a>)> {
        self.skip_space();
        let name = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return None;
        }
        self.at += 1;
        Some((name, self.value()?))
    }

    /// Reads a value and its separator. A value that nothing follows may be cut, and counts as none.
    fn value(&mut self) -> Option<Json<'a>> {
        self.skip_space();
        let value = self.element()?;
        self.skip_space();
        if !matches!(self.peek()?, b',' | b'}' | b']') {
            return None;
        }
        self.at += 1;
        Some(Json::of(value))
    }

    /// Reads a value.
    fn element(&mut self) -> Option<&'a [u8]> {
        let begin = self.at;
        match self.peek()? {
            b'"' => drop(self.string()?),
            b'{' | b'[' => self.container()?,
            b'}' | b']' => return None,
            _ => self.scalar(),
        }
        self.bytes.get(begin..self.at)
    }

    /// Reads a string, and returns its content.
    fn string(&mut self) -> Option<&'a [u8]> {
        if self.peek() != Some(b'"') {
            return None;
        }
        let begin = self.at + 1;
        let mut at = begin;
        loop {
            at += memchr2(b'"', b'\\', self.bytes.get(at..)?)?;
            if self.bytes[at] == b'"' {
                self.at = at + 1;
                return Some(&self.bytes[begin..at]);
            }
            at += 2;
        }
    }

    fn container(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            self.at += self.rest().iter().position(|byte| matches!(byte | 0x20, b'"' | b'{' | b'}'))?;
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return Some(());
            }
        }
    }

    fn scalar(&mut self) {
        while self.peek().is_some_and(|byte| !matches!(byte, b',' | b'}' | b']')) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json<'_> {
        Json::of(text.as_bytes())
    }

    #[test]
    fn broken_values_count_as_absent() {
        let object = json(r#" {"a" : 1, "b":{"c":["x\"]}",2]},"n":null, "e":"gr\u00fc\n" , "a":3} "#);
        let names: Vec<_> = object.members().map(|(name, _)| String::from_utf8_lossy(name)).collect();
        assert_eq!(names, ["a", "b", "e", "a"]);
        assert_eq!(object.member("a").raw(), b"3", "the last one holds");
        assert_eq!(object.member("b").member("c").elements().count(), 2);
        assert!(!object.member("n").is_there() && json("{ }").is_empty_object());
        for broken in ["", "{", "[1", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":\"x", "{a:1}", "}", "\"\\"] {
            assert_eq!((json(broken).members().count(), json(broken).elements().count()), (0, 0), "{broken}");
        }
    }
}
