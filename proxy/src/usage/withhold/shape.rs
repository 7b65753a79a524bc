//! Tells an answer of a model from anything else by its JSON members, fed in arbitrary pieces.
//!
//! In a stream an event must have the form of its route. Nothing that is not recognised counts as an answer. On the
//! way the texts are noted that clients join from one event to the next.

use memchr::memchr2;

use super::names::{Container, Expected, Kind, Name, recognises};

/// Deeper than any answer: a request has at most 127 levels, and its echo lies a few levels below the answer's own.
const MAX_DEPTH: usize = 160;
/// Most texts of one event that are noted. One word or two of a model are in a few.
const MAX_LEAVES: usize = 256;
/// Most of a name or word that is compared with those that matter.
const MAX_WORD: usize = 48;

/// A text that clients join with the text of the same channel in the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Text that it belongs to: the member, and the indices around it.
    pub(super) channel: u64,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// A reader of one JSON document after the other.
#[derive(Debug)]
pub(crate) struct Shape {
    expected: Expected,
    next: Next,
    lexeme: Lexeme,
    levels: Vec<Level>,
    /// The name of the member that is being read.
    name: Name,
    word: Vec<u8>,
    /// Start of the string that is being read.
    string: usize,
    leaves: Vec<Leaf>,
    /// The last string of the outermost level that decides nothing.
    last: Option<(usize, usize)>,
    /// Members of the outermost level.
    members: usize,
    is_recognised: bool,
    is_wrong: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// A value, or the end of an array that just began.
    FirstValue,
    Name,
    /// A name, or the end of an object that just began.
    FirstName,
    Colon,
    CommaOrEnd,
    /// The document has ended.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lexeme {
    Nothing,
    String(Quoted),
    Scalar,
}

/// A string that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Quoted {
    role: StringRole,
    has_escapes: bool,
    /// The next byte belongs to a backslash.
    escapes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringRole {
    Name,
    Value,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    container: Container,
    is_object: bool,
    /// Hash of the indices in it.
    index: u64,
    first_leaf: usize,
}

impl Shape {
    pub(crate) fn new(expected: Expected) -> Self {
        Self {
            expected,
            next: Next::Value,
            lexeme: Lexeme::Nothing,
            levels: Vec::new(),
            name: Name::Other,
            word: Vec::new(),
            string: 0,
            leaves: Vec::new(),
            last: None,
            members: 0,
            is_recognised: false,
            is_wrong: false,
        }
    }

    /// Begins another document.
    pub(crate) fn begin(&mut self) {
        self.next = Next::Value;
        self.lexeme = Lexeme::Nothing;
        self.name = Name::Other;
        self.levels.clear();
        self.leaves.clear();
        self.last = None;
        self.members = 0;
        self.is_recognised = false;
        self.is_wrong = false;
    }

    /// Returns whether the document, which has come whole, is an answer.
    pub(crate) fn is_answer(&self) -> bool {
        let has_ended = self.next == Next::Nothing && !self.is_wrong;
        has_ended && (self.is_recognised || self.members == 0)
    }

    /// Returns whether all that has come so far belongs to an answer.
    pub(crate) fn looks_like_an_answer(&self) -> bool {
        self.is_recognised && !self.is_wrong
    }

    /// Returns the texts of the document that clients join.
    pub(super) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Returns the position of the last string of the outermost level that decides nothing.
    pub(super) fn last_string(&self) -> Option<(usize, usize)> {
        self.last
    }

    /// Reads the next piece, which begins at `offset`. Returns how much of it may belong to an answer: the same bytes,
    /// however they are cut.
    pub(crate) fn read(&mut self, piece: &[u8], offset: usize) -> usize {
        let mut at = 0;
        while at < piece.len() && !self.is_wrong {
            match self.lexeme {
                Lexeme::String(quoted) => at = self.string(quoted, piece, at, offset),
                Lexeme::Scalar => at = self.scalar(piece, at),
                Lexeme::Nothing => {
                    self.token(piece[at], offset + at);
                    // A scalar's first byte belongs to it.
                    at += usize::from(self.lexeme != Lexeme::Scalar && !self.is_wrong);
                }
            }
        }
        at
    }

    fn token(&mut self, byte: u8, at: usize) {
        match (byte, self.next) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => {}
            (b'"', Next::Name | Next::FirstName) => self.open_string(at, Next::Colon),
            (b'"', Next::Value | Next::FirstValue) => {
                self.value(Kind::Text);
                self.open_string(at, self.after());
            }
            (b':', Next::Colon) => self.next = Next::Value,
            (b'{', Next::Value | Next::FirstValue) => self.open(Kind::Object, Next::FirstName),
            (b'[', Next::Value | Next::FirstValue) => self.open(Kind::Array, Next::FirstValue),
            (b'}', Next::FirstName | Next::CommaOrEnd) if self.in_object() => self.close(),
            (b']', Next::FirstValue | Next::CommaOrEnd) if !self.in_object() => self.close(),
            (b',', Next::CommaOrEnd) => {
                self.next = if self.in_object() { Next::Name } else { Next::Value };
            }
            (_, Next::Value | Next::FirstValue) => {
                self.value(if byte == b'n' { Kind::Null } else { Kind::Scalar });
                self.word.clear();
                self.lexeme = Lexeme::Scalar;
                self.next = self.after();
            }
            _ => self.is_wrong = true,
        }
    }

    fn in_object(&self) -> bool {
        self.levels.last().is_some_and(|level| level.is_object)
    }

    fn after(&self) -> Next {
        if self.levels.is_empty() { Next::Nothing } else { Next::CommaOrEnd }
    }

    fn container(&self) -> Option<Container> {
        self.levels.last().map(|level| level.container)
    }

    /// Notes that a value begins.
    fn value(&mut self, kind: Kind) {
        let name = if self.in_object() { self.name } else { Name::Other };
        if Container::forbids(self.container(), name, kind) {
            self.is_wrong = true;
        }
        if self.container() == Some(Container::Root) {
            self.members += 1;
            self.is_recognised |= match self.expected {
                Expected::Event(route) => recognises(route, name, kind),
                Expected::Document => true,
            };
        }
    }

    fn open(&mut self, kind: Kind, next: Next) {
        self.value(kind);
        self.is_wrong |= self.levels.len() == MAX_DEPTH;
        let name = if self.in_object() { self.name } else { Name::Other };
        let container = Container::within(self.container(), name, kind);
        self.levels.push(Level {
            container,
            is_object: kind == Kind::Object,
            index: 0,
            first_leaf: self.leaves.len(),
        });
        self.next = next;
    }

    fn close(&mut self) {
        if let Some(level) = self.levels.pop() {
            for leaf in self.leaves.iter_mut().skip(level.first_leaf) {
                leaf.channel = mixed(leaf.channel, level.index);
            }
        }
        self.next = self.after();
    }

    fn open_string(&mut self, at: usize, next: Next) {
        let is_name = matches!(self.next, Next::Name | Next::FirstName);
        let role = if is_name { StringRole::Name } else { StringRole::Value };
        self.word.clear();
        self.lexeme = Lexeme::String(Quoted { role, has_escapes: false, escapes: false });
        self.string = at + 1;
        self.next = next;
    }

    /// Reads on in a string, and returns how far.
    fn string(&mut self, mut quoted: Quoted, piece: &[u8], at: usize, offset: usize) -> usize {
        let mut from = at;
        if std::mem::take(&mut quoted.escapes) {
            self.keep(&piece[from..=from]);
            from += 1;
        }
        while let Some(found) = memchr2(b'"', b'\\', &piece[from..]).map(|found| from + found) {
            self.keep(&piece[from..found]);
            if piece[found] == b'"' {
                self.lexeme = Lexeme::Nothing;
                self.end_string(quoted, offset + found);
                return found + 1;
            }
            quoted.has_escapes = true;
            let Some(next) = piece.get(found + 1..found + 2) else {
                self.lexeme = Lexeme::String(Quoted { escapes: true, ..quoted });
                return piece.len();
            };
            self.keep(next);
            from = found + 2;
        }
        self.keep(piece.get(from..).unwrap_or_default());
        self.lexeme = Lexeme::String(quoted);
        piece.len()
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_WORD.saturating_sub(self.word.len());
        self.word.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_string(&mut self, quoted: Quoted, to: usize) {
        let container = self.container();
        if quoted.role == StringRole::Name {
            // No model API escapes letters of a name; where names decide, this hides one.
            self.is_wrong |= quoted.has_escapes && container != Some(Container::Other);
            self.name = Name::of(&self.word);
            return;
        }
        let name = if self.in_object() { self.name } else { Name::Other };
        if name.is_joined() && self.leaves.len() < MAX_LEAVES {
            self.leaves.push(Leaf { channel: name as u64, from: self.string, to });
        }
        if !name.decides() {
            self.last = (container == Some(Container::Root)).then_some((self.string, to)).or(self.last);
            return;
        }
        if let Some(is_right) =
            container.and_then(|container| container.judge(self.expected, name, &self.word))
        {
            self.is_recognised |= is_right;
            self.is_wrong |= !is_right;
        }
    }

    /// Reads on in a number or literal, and returns how far.
    fn scalar(&mut self, piece: &[u8], at: usize) -> usize {
        let belongs = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let length = piece[at..].iter().position(|byte| !belongs(byte)).unwrap_or(piece.len() - at);
        let room = length.min(MAX_WORD - self.word.len());
        let (word, beyond) = piece[at..at + length].split_at(room);
        self.keep(word);
        if !beyond.is_empty() {
            // Numbers that the agent chose are echoed with all their digits; an index, which decides, is short.
            let is_index = self.name == Name::Index && self.in_object();
            let is_long = is_number(&self.word) && !is_index;
            if let Some(bad) = beyond.iter().position(|byte| !(is_long && is_numeric(*byte))) {
                self.is_wrong = true;
                return at + room + bad;
            }
        }
        if at + length == piece.len() {
            return piece.len();
        }
        self.lexeme = Lexeme::Nothing;
        let is_literal =
            matches!(&self.word[..], b"null" | b"true" | b"false" | b"NaN" | b"Infinity" | b"-Infinity");
        self.is_wrong |= !(is_literal || is_number(&self.word));
        if self.name == Name::Index
            && let Some(level) = self.levels.last_mut().filter(|level| level.is_object)
        {
            level.index =
                self.word.iter().fold(level.index, |index, byte| mixed(index, u64::from(*byte) + 1));
        }
        at + length
    }
}

fn is_number(word: &[u8]) -> bool {
    word.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-')
        && word.iter().all(|byte| is_numeric(*byte))
}

fn is_numeric(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE".contains(&byte)
}

/// Returns a number that depends on both, and on their order.
const fn mixed(number: u64, with: u64) -> u64 {
    (number ^ with.rotate_left(17)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
