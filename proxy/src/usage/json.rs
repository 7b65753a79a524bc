//! A lenient look into JSON: what is there is found, what is broken or of another type is simply not there.
//!
//! For reading answers only. Nothing is checked, copied or allocated, and time is linear in the bytes at each level
//! that somebody asks for. What judges a request's body is `exchange::rewrite`, and not this.

use std::borrow::Cow;

use memchr::memchr2;

/// A value as it stands in an answer, without space around it. Empty if there is none; null counts as none.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Json<'a>(&'a [u8]);

/// Goes through an object or array. Ends where it is not understood.
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

    /// The value that `bytes` begin with, whatever follows it; all of them if it has no end.
    pub(super) fn first_of(bytes: &'a [u8]) -> Self {
        let mut walk = Walk { bytes, at: 0 };
        Self(walk.element().unwrap_or(bytes))
    }

    /// The member, and the length, of an object at the beginning of `bytes` that has one member, a string.
    pub(super) fn only_text(bytes: &'a [u8]) -> Option<(&'a [u8], Self, usize)> {
        let mut walk = Walk::into(bytes, b'{');
        let name = walk.string()?;
        if walk.peek() != Some(b':') {
            return None;
        }
        walk.at += 1;
        walk.space();
        let begin = walk.at;
        walk.string()?;
        let text = Self(&bytes[begin..walk.at]);
        (walk.peek() == Some(b'}')).then_some((name, text, walk.at + 1))
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

    /// The members of an object that are not null: names as they are written, and values.
    pub(super) fn members(self) -> impl Iterator<Item = (&'a [u8], Self)> {
        let mut walk = Walk::into(self.0, b'{');
        std::iter::from_fn(move || walk.member()).filter(|(_, value)| value.is_there())
    }

    /// The elements of an array that are not null.
    pub(super) fn elements(self) -> impl Iterator<Item = Self> {
        let mut walk = Walk::into(self.0, b'[');
        std::iter::from_fn(move || walk.value()).filter(|value| value.is_there())
    }

    /// The last member of this name, or none.
    pub(super) fn member(self, name: &str) -> Self {
        self.members().filter(|(found, _)| *found == name.as_bytes()).last().unwrap_or_default().1
    }

    /// What is between the quotes of a string.
    pub(super) fn quoted(self) -> Option<&'a [u8]> {
        self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }

    /// A string. Copied only if it has escapes.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        let quoted = self.quoted()?;
        if memchr::memchr(b'\\', quoted).is_some() {
            return serde_json::from_slice(self.0).ok().map(Cow::Owned);
        }
        std::str::from_utf8(quoted).ok().map(Cow::Borrowed)
    }

    /// A number of things: a whole number, also if it is written as a fraction or within quotes.
    pub(super) fn count(self) -> Option<u64> {
        let number = self.number()?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if digits(whole) && digits(fraction) { whole.parse().ok() } else { None }
    }

    /// What may be a number, also within quotes.
    pub(super) fn number(self) -> Option<&'a str> {
        std::str::from_utf8(self.quoted().unwrap_or(self.0)).ok()
    }

    /// Bytes of all text in this value, as text: names, and members that `but` names, do not count. Of a string without
    /// an end, what there is of it.
    pub(super) fn text_bytes(self, but: &[&[u8]]) -> u64 {
        let mut walk = Walk { bytes: self.0, at: 0 };
        // The usual case: one string and nothing else.
        if walk.string().is_some_and(|text| text.len() + 2 == self.0.len()) {
            return unescaped(&self.0[1..self.0.len() - 1]);
        }
        walk.at = 0;
        let (mut sum, mut counts) = (0, true);
        while let Some(quote) = memchr::memchr(b'"', walk.rest()) {
            walk.at += quote;
            let Some(text) = walk.string() else {
                return sum + if counts { unescaped(&walk.rest()[1..]) } else { 0 };
            };
            walk.space();
            if walk.peek() == Some(b':') {
                counts = !but.contains(&text);
            } else if counts {
                sum += unescaped(text);
            }
        }
        sum
    }
}

/// Length of a string's content without its escapes.
fn unescaped(text: &[u8]) -> u64 {
    let (mut length, mut rest) = (text.len(), text);
    while let Some(at) = memchr::memchr(b'\\', rest) {
        // Most of what is written as four digits is of a script that takes three bytes for a letter.
        let (written, meant) = if rest.get(at + 1) == Some(&b'u') { (6, 3) } else { (2, 1) };
        length = length.saturating_sub(written - meant);
        rest = rest.get(at + written..).unwrap_or_default();
    }
    length as u64
}

impl<'a> Walk<'a> {
    /// Behind the opening bracket, or at the end if there is another.
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

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn member(&mut self) -> Option<(&'a [u8], Json<'a>)> {
        self.space();
        let name = self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return None;
        }
        self.at += 1;
        Some((name, self.value()?))
    }

    /// A value and what separates it from the next. One that nothing follows may be cut, and is none.
    fn value(&mut self) -> Option<Json<'a>> {
        self.space();
        let value = self.element()?;
        self.space();
        if !matches!(self.peek()?, b',' | b'}' | b']') {
            return None;
        }
        self.at += 1;
        Some(Json::of(value))
    }

    /// A value, the walk behind it.
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

    /// The content of a string, the walk behind it.
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
    fn what_is_there_is_found_and_what_is_broken_is_not_there() {
        let object = json(r#" {"a" : 1, "b":{"c":["x\"]}",2]},"n":null, "e":"gr\u00fc\n" , "a":3} "#);
        let names: Vec<_> = object.members().map(|(name, _)| String::from_utf8_lossy(name)).collect();
        assert_eq!(names, ["a", "b", "e", "a"]);
        assert_eq!(object.member("a").count(), Some(3), "the last one holds");
        assert_eq!(object.member("b").member("c").elements().count(), 2);
        assert_eq!(object.member("e").text().unwrap(), "grü\n");
        assert!(!object.member("n").is_there() && json("{ }").is_empty_object());
        for broken in ["", "{", "[1", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":\"x", "{a:1}", "}", "\"\\"] {
            assert_eq!((json(broken).members().count(), json(broken).elements().count()), (0, 0), "{broken}");
        }
    }

    #[test]
    fn counts_are_read_however_they_are_written() {
        let table = [
            ("12", Some(12)),
            ("12.0", Some(12)),
            ("12.7", Some(12)),
            ("\"12\"", Some(12)),
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("1e3", None),
            ("+1", None),
            (".5", None),
            ("1.", None),
            ("\"\"", None),
            ("\"many\"", None),
            ("{}", None),
            ("[1]", None),
            ("true", None),
            ("null", None),
        ];
        for (text, count) in table {
            assert_eq!(json(text).count(), count, "{text}");
        }
    }

    #[test]
    fn text_is_measured_as_it_is_meant() {
        let table = [
            (r#""Gr\n""#, 3),
            (r#""\u4f60\"""#, 4),
            (r#"{"text":"abc","type":"text","list":["d",{"e":"f"}],"n":1}"#, 5),
            (r#"{"text":"cut"#, 3),
            (r#"{"type":"cut"#, 0),
            ("7", 0),
        ];
        for (text, bytes) in table {
            assert_eq!(json(text).text_bytes(&[b"type"]), bytes, "{text}");
        }
    }
}
