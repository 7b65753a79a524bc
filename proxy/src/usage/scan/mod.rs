//! Reads one JSON document as it comes, in pieces of any size, in bounded memory.
//!
//! A [`Visit`] names the fields that matter, from the outermost object down. Everything else is skipped by its brackets
//! and quotes, however long or deep it is. Nothing is checked: broken values are read as far as they make sense. A
//! value within one piece is shown in place; only one that is split is copied, up to a limit.

mod visit;

use memchr::memchr2;

use self::visit::whole_of;
pub(super) use self::visit::{Bracket, ContainerMode, StringText, TextRange, Visit, Wants};
use super::byte_order_mark;

/// Nested containers that are read. Deeper ones are skipped or measured.
const MAX_DEPTH: usize = 8;
/// Longest name of a member that can matter.
const MAX_NAME: usize = 48;

/// Position of the reader in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ScanState {
    /// Its first bracket has not come.
    #[default]
    Before,
    /// Between two values that may matter.
    Between,
    /// In a string.
    Text,
    /// Behind the backslash in a string.
    Escape,
    /// In a number or a word.
    Scalar,
    /// The document has ended, or is not an object.
    Done,
}

/// Treatment of a container that is not entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Passing {
    #[default]
    Skipped,
    Measured,
}

/// Role of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum TokenRole {
    #[default]
    Value,
    Name,
}

/// The string, number or word in which a piece ended, as far as it was read.
#[derive(Debug, Default)]
struct Token {
    role: TokenRole,
    /// Bytes of it in earlier pieces, and of these those that the visitor has received.
    seen: u64,
    handed: u64,
    /// Its escapes: those of two bytes, and those of six.
    short: u64,
    long: u64,
}

impl Token {
    /// Returns the string, of which `raw` is kept and `written` bytes came.
    const fn text<'r>(&self, raw: &'r [u8], written: u64) -> StringText<'r> {
        let Self { short, long, handed, .. } = *self;
        StringText {
            raw,
            // Most of what is written as four digits is of a script that takes three bytes for a letter.
            bytes: written.saturating_sub(short).saturating_sub(3 * long),
            is_escaped: short + long > 0,
            is_cut: (raw.len() as u64 + handed) < written,
            range: None,
        }
    }
}

/// A string in a measured container. The next byte decides whether it is a name.
#[derive(Debug, Clone, Copy)]
struct PendingText {
    bytes: u64,
    is_no_text: bool,
}

/// A container that was entered.
#[derive(Debug, Clone, Copy)]
struct OpenContainer<P> {
    field: P,
    bracket: Bracket,
}

/// Reader of one document.
#[derive(Debug)]
pub(super) struct Scanner<P> {
    state: ScanState,
    open: [Option<OpenContainer<P>>; MAX_DEPTH],
    depth: usize,
    /// Containers that are open within the innermost one that was entered.
    passed: u64,
    passing: Passing,
    /// Field of the value that comes next in an object; none where its name comes next.
    next: Option<P>,
    token: Token,
    held: Vec<u8>,
    pending: Option<PendingText>,
    /// Set if strings count as text, by the last name.
    counts: bool,
}

impl<P: Copy + Eq> Scanner<P> {
    pub(super) const fn new() -> Self {
        Self {
            state: ScanState::Before,
            open: [None; MAX_DEPTH],
            depth: 0,
            passed: 0,
            passing: Passing::Skipped,
            next: None,
            token: Token { role: TokenRole::Value, seen: 0, handed: 0, short: 0, long: 0 },
            held: Vec::new(),
            pending: None,
            counts: true,
        }
    }

    /// Begins another document.
    pub(super) fn reset(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        held.clear();
        *self = Self { held, ..Self::new() };
    }

    /// Skips a whole document that was measured elsewhere.
    pub(super) fn pass_over(&mut self, root: P) {
        self.open[0] = Some(OpenContainer { field: root, bracket: Bracket::Object });
        self.state = ScanState::Done;
    }

    /// Returns whether the outermost object has begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.state, ScanState::Before | ScanState::Done)
    }

    /// Returns whether an object has begun.
    pub(super) fn is_object(&self) -> bool {
        self.open[0].is_some()
    }

    /// Returns the capacity of the buffer.
    #[cfg(any(test, feature = "internals"))]
    pub(super) fn kept(&self) -> usize {
        self.held.capacity()
    }

    /// Reads the next bytes.
    pub(super) fn feed<V: Visit<Field = P>>(&mut self, bytes: &[u8], visit: &mut V) {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.state {
                ScanState::Before => self.before(bytes, at, visit),
                ScanState::Between if self.passed > 0 => self.pass(bytes, at, visit),
                ScanState::Between => self.between(bytes, at, visit),
                ScanState::Text => self.text(bytes, at, visit),
                ScanState::Escape => self.escape(bytes, at, visit),
                ScanState::Scalar => self.scalar(bytes, at, visit),
                ScanState::Done => return,
            };
        }
    }

    /// Ends a document that may be cut; text without an end counts as far as it came.
    pub(super) fn finish<V: Visit<Field = P>>(&mut self, visit: &mut V) {
        if matches!(self.state, ScanState::Text | ScanState::Escape) && self.token.role == TokenRole::Value {
            self.end_string(&[], None, visit);
        }
        self.settle_pending(visit);
        self.state = ScanState::Done;
    }

    fn before<V: Visit<Field = P>>(&mut self, bytes: &[u8], at: usize, visit: &mut V) -> usize {
        match bytes[at] {
            b'{' => {
                self.state = ScanState::Between;
                self.begin(visit.root(), Bracket::Object, visit);
            }
            byte if byte.is_ascii_whitespace() || byte_order_mark::BYTES.contains(&byte) => {}
            _ => self.state = ScanState::Done,
        }
        at + 1
    }

    fn top(&self) -> Option<OpenContainer<P>> {
        self.open[self.depth.checked_sub(1)?]
    }

    /// Returns the field of the value that begins.
    fn field<V: Visit<Field = P>>(&self, visit: &V) -> P {
        match self.top() {
            Some(OpenContainer { field, bracket: Bracket::Array }) => visit.element(field),
            _ => self.next.unwrap_or(V::SKIPPED),
        }
    }

    fn between<V: Visit<Field = P>>(&mut self, bytes: &[u8], begin: usize, visit: &mut V) -> usize {
        let mut at = begin;
        while self.state == ScanState::Between && self.passed == 0 {
            let Some(byte) = bytes.get(at) else { break };
            at += 1;
            match byte {
                b'"' => at = self.begin_text(bytes, at, visit),
                b'{' => self.begin(self.field(visit), Bracket::Object, visit),
                b'[' => self.begin(self.field(visit), Bracket::Array, visit),
                b'}' | b']' => self.end(visit),
                b',' => self.next = None,
                b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => {
                    self.begin_token(TokenRole::Value);
                    self.state = ScanState::Scalar;
                    at = self.scalar(bytes, at - 1, visit);
                }
            }
        }
        at
    }

    /// Begins a string. Most are short, have no escape and end within this piece.
    fn begin_text<V: Visit<Field = P>>(&mut self, bytes: &[u8], begin: usize, visit: &mut V) -> usize {
        let top = self.top().filter(|open| open.bracket == Bracket::Object && self.next.is_none());
        let rest = bytes.get(begin..begin + MAX_NAME).unwrap_or(&bytes[begin..]);
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
        let Some(raw) = length.filter(|length| rest[*length] == b'"').map(|length| &rest[..length]) else {
            self.begin_token(if top.is_some() { TokenRole::Name } else { TokenRole::Value });
            self.state = ScanState::Text;
            return self.text(bytes, begin, visit);
        };
        if let Some(open) = top {
            self.next = Some(visit.member(open.field, raw));
        } else {
            let field = self.field(visit);
            self.next = None;
            if field != V::SKIPPED {
                let shown = visit.wants(field).of(raw);
                let is_cut = shown.len() < raw.len();
                let text = StringText {
                    raw: shown,
                    bytes: raw.len() as u64,
                    is_escaped: false,
                    is_cut,
                    range: Some(TextRange { begin, end: begin + raw.len() }),
                };
                visit.string(field, text);
            }
        }
        begin + raw.len() + 1
    }

    fn begin_token(&mut self, role: TokenRole) {
        self.token = Token { role, ..Token::default() };
        self.held.clear();
    }

    fn begin<V: Visit<Field = P>>(&mut self, field: P, bracket: Bracket, visit: &mut V) {
        let inside = visit.begins(field, bracket);
        if inside == ContainerMode::Entered && self.depth < MAX_DEPTH {
            self.open[self.depth] = Some(OpenContainer { field, bracket });
            self.depth += 1;
            self.next = None;
            return;
        }
        self.passed = 1;
        self.counts = true;
        self.passing = if inside == ContainerMode::Measured { Passing::Measured } else { Passing::Skipped };
    }

    fn end<V: Visit<Field = P>>(&mut self, visit: &mut V) {
        if let Some(open) = self.top() {
            visit.ends(open.field);
            self.depth -= 1;
        }
        self.next = None;
        if self.depth == 0 {
            self.state = ScanState::Done;
        }
    }

    /// Continues in a container that is not entered.
    fn pass<V: Visit<Field = P>>(&mut self, bytes: &[u8], at: usize, visit: &mut V) -> usize {
        let rest = &bytes[at..];
        if self.pending.is_some() {
            let Some(next) = rest.iter().position(|byte| !byte.is_ascii_whitespace()) else {
                return bytes.len();
            };
            if rest[next] == b':' {
                self.counts = self.pending.take().is_some_and(|name| !name.is_no_text);
                return at + next + 1;
            }
            self.settle_pending(visit);
            return at + next;
        }
        let is_sign = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
        let Some(next) = rest.iter().position(is_sign) else { return bytes.len() };
        match rest[next] {
            b'"' => {
                self.token = Token::default();
                self.held.clear();
                self.state = ScanState::Text;
            }
            b'{' | b'[' => self.passed += 1,
            _ => {
                self.passed -= 1;
                self.counts = true;
                // The value has ended.
                self.next = if self.passed == 0 { None } else { self.next };
            }
        }
        at + next + 1
    }

    fn settle_pending<V: Visit<Field = P>>(&mut self, visit: &mut V) {
        if let Some(text) = self.pending.take().filter(|_| self.counts) {
            visit.measured(text.bytes);
        }
    }

    /// Returns how much of the token is needed.
    fn wants<V: Visit<Field = P>>(&self, visit: &V) -> Wants {
        match (self.token.role, self.passed > 0, self.passing) {
            (TokenRole::Name, ..) | (_, true, Passing::Measured) => Wants::Beginning(MAX_NAME),
            (_, true, Passing::Skipped) => Wants::Beginning(0),
            (_, false, _) => visit.wants(self.field(visit)),
        }
    }

    fn keep<V: Visit<Field = P>>(&mut self, chunk: &[u8], visit: &mut V) {
        self.token.seen += chunk.len() as u64;
        let mut rest = chunk;
        match self.wants(visit) {
            Wants::Beginning(most) => {
                let room = most.saturating_sub(self.held.len());
                self.held.extend_from_slice(rest.get(..room).unwrap_or(rest));
            }
            Wants::All(most) => {
                while !rest.is_empty() {
                    let (more, after) = rest.split_at(rest.len().min(most.saturating_sub(self.held.len())));
                    self.held.extend_from_slice(more);
                    rest = after;
                    if self.held.len() >= most {
                        self.hand_on(visit);
                    }
                }
            }
        }
    }

    /// Passes to the visitor as much of a long string as is whole.
    fn hand_on<V: Visit<Field = P>>(&mut self, visit: &mut V) {
        let field = self.field(visit);
        let mut held = std::mem::take(&mut self.held);
        let whole = match whole_of(&held).len() {
            // Nothing but backslashes: each two are a character.
            0 => held.len() & !1,
            whole => whole,
        };
        let is_escaped = self.token.short + self.token.long > 0;
        visit.piece(
            field,
            StringText { raw: &held[..whole], bytes: 0, is_escaped, is_cut: false, range: None },
        );
        held.drain(..whole);
        self.token.handed += whole as u64;
        self.held = held;
    }

    fn text<V: Visit<Field = P>>(&mut self, bytes: &[u8], begin: usize, visit: &mut V) -> usize {
        let mut at = begin;
        while let Some(found) = memchr2(b'"', b'\\', &bytes[at..]) {
            at += found;
            if bytes[at] == b'"' {
                self.end_string(&bytes[begin..at], Some(TextRange { begin, end: at }), visit);
                return at + 1;
            }
            match bytes.get(at + 1) {
                Some(byte) => self.count_escape(*byte),
                None => {
                    self.state = ScanState::Escape;
                    break;
                }
            }
            at += 2;
        }
        self.keep(&bytes[begin..], visit);
        bytes.len()
    }

    fn escape<V: Visit<Field = P>>(&mut self, bytes: &[u8], at: usize, visit: &mut V) -> usize {
        self.count_escape(bytes[at]);
        self.state = ScanState::Text;
        self.keep(&bytes[at..=at], visit);
        at + 1
    }

    const fn count_escape(&mut self, escaped: u8) {
        if escaped == b'u' {
            self.token.long += 1;
        } else {
            self.token.short += 1;
        }
    }

    /// Ends the string with `chunk`, which is at `range` in its piece.
    fn end_string<V: Visit<Field = P>>(&mut self, chunk: &[u8], range: Option<TextRange>, visit: &mut V) {
        self.state = ScanState::Between;
        if self.passed > 0 && self.passing == Passing::Skipped {
            return;
        }
        if self.token.seen == 0 {
            let raw = self.wants(visit).of(chunk);
            let text = self.token.text(raw, chunk.len() as u64);
            return self.take(StringText { range, ..text }, visit);
        }
        self.keep(chunk, visit);
        let held = std::mem::take(&mut self.held);
        self.take(self.token.text(&held, self.token.seen), visit);
        self.held = held;
    }

    /// Passes to the visitor a string that has ended.
    fn take<V: Visit<Field = P>>(&mut self, text: StringText<'_>, visit: &mut V) {
        if self.passed > 0 {
            self.pending = Some(PendingText { bytes: text.bytes, is_no_text: visit.is_no_text(text.raw) });
        } else if self.token.role == TokenRole::Name {
            let of = self.top().map_or(V::SKIPPED, |open| open.field);
            self.next = Some(match (text.is_cut, text.is_escaped) {
                (true, _) => V::SKIPPED,
                (false, false) => visit.member(of, text.raw),
                (false, true) => text.decoded().map_or(V::SKIPPED, |name| visit.member(of, name.as_bytes())),
            });
        } else {
            let field = self.field(visit);
            self.next = None;
            if field != V::SKIPPED {
                visit.string(field, text);
            }
        }
    }

    fn scalar<V: Visit<Field = P>>(&mut self, bytes: &[u8], begin: usize, visit: &mut V) -> usize {
        let ends_scalar = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        let Some(length) = bytes[begin..].iter().position(ends_scalar) else {
            self.keep(&bytes[begin..], visit);
            return bytes.len();
        };
        let chunk = &bytes[begin..begin + length];
        self.state = ScanState::Between;
        let field = self.field(visit);
        if field == V::SKIPPED {
            self.held.clear();
        } else if self.token.seen == 0 {
            visit.scalar(field, visit.wants(field).of(chunk));
        } else {
            self.keep(chunk, visit);
            let held = std::mem::take(&mut self.held);
            visit.scalar(field, &held);
            self.held = held;
        }
        self.next = None;
        begin + length
    }
}
