//! Makes bodies from seeds: a few random edits, such as a person would try, leave a body nearly whole.
//!
//! What is written are the words of `words`, one a line, and pieces of other seeds.

use std::{fs, ops::Range, path::Path};

use proptest::{
    collection::vec,
    prelude::{Strategy, any, prop_oneof},
    sample::{Index, select},
};

use super::{
    OrderRoute,
    pieces::{JsonPiece, Sort, pieces},
};

const MAX_EDITS: usize = 6;
const WORDS: &str = include_str!("words");

/// Body of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditedBody {
    pub(super) route: OrderRoute,
    /// Text in which `~` stands for two thousand letters.
    text: Vec<u8>,
}

impl EditedBody {
    /// Returns the body as it is sent.
    pub(super) fn bytes(&self) -> Vec<u8> {
        String::from_utf8_lossy(&self.text).replace('~', &"x".repeat(2000)).into_bytes()
    }
}

/// Texts that edits write.
struct Words {
    members: Vec<String>,
    values: Vec<String>,
    all: Vec<String>,
}

impl Words {
    fn of(seeds: &[EditedBody]) -> Self {
        let taken = seeds.iter().flat_map(|EditedBody { text, .. }| {
            let contents = pieces(text).into_iter().map(|piece| piece.content(text));
            contents.map(|content| String::from_utf8_lossy(&text[content]).into_owned())
        });
        let mut all: Vec<_> = WORDS.lines().map(str::to_owned).chain(taken).collect();
        all.sort_unstable();
        all.dedup();
        let of_sort = |sort| all.iter().filter(|word| Sort::of(word) == sort).cloned().collect();
        Self { members: of_sort(Sort::Member), values: of_sort(Sort::Value), all }
    }

    /// Returns members of the same name.
    fn of_name(&self, member: &[u8]) -> Vec<&str> {
        let end = member.iter().position(|byte| *byte == b':').map_or(0, |colon| colon + 1);
        self.members
            .iter()
            .map(String::as_str)
            .filter(|word| word.as_bytes().starts_with(&member[..end]))
            .collect()
    }

    /// Returns a word that can stand in place of a piece.
    fn pick(&self, sort: Sort, word: Index) -> &str {
        let words = match sort {
            Sort::Member => &self.members,
            Sort::Element | Sort::Value => &self.values,
            Sort::Fragment => &self.all,
        };
        &words[word.index(words.len())]
    }
}

/// Part of a text.
#[derive(Debug, Clone)]
enum EditedPart {
    /// Piece of JSON. Most edits of one leave JSON.
    Piece(Index),
    /// Tokens of JSON: the place of the first, and their number.
    Tokens(Index, usize),
    /// Bytes: the place of the first, and their number.
    Bytes(Index, usize),
}

impl EditedPart {
    /// Returns the part of `text`.
    fn of(&self, text: &[u8]) -> JsonPiece {
        self.among(pieces(text), text)
    }

    /// Returns the part of `text`, one that has others beside it.
    fn of_list(&self, text: &[u8]) -> JsonPiece {
        let pieces = pieces(text).into_iter().filter(|piece| piece.sort != Sort::Value);
        self.among(pieces.collect(), text)
    }

    fn among(&self, mut pieces: Vec<JsonPiece>, text: &[u8]) -> JsonPiece {
        let range = match self {
            Self::Piece(piece) if !pieces.is_empty() => return pieces.swap_remove(piece.index(pieces.len())),
            Self::Piece(_) => 0..text.len(),
            Self::Tokens(start, length) => between(&token_ends(text), *start, *length),
            Self::Bytes(start, length) => between(&(0..=text.len()).collect::<Vec<_>>(), *start, *length),
        };
        JsonPiece { range, sort: Sort::Fragment }
    }
}

/// Returns what lies between one of `ends` and the one that follows it by `length`, or the last one.
fn between(ends: &[usize], start: Index, length: usize) -> Range<usize> {
    let start = start.index(ends.len());
    let end = ends.len().min(start + length + 1) - 1;
    ends[start]..ends[end]
}

/// Returns the places where tokens of a text begin or end.
fn token_ends(text: &[u8]) -> Vec<usize> {
    let marks = text.iter().enumerate().filter(|(_, byte)| b"{}[],:".contains(byte));
    let mut ends: Vec<_> = marks.flat_map(|(at, _)| [at, at + 1]).chain([0, text.len()]).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// Change of a text.
#[derive(Debug, Clone)]
enum Edit {
    /// Writes a word before a part.
    Insert(EditedPart, Index),
    /// Writes a word in place of a part.
    Write(EditedPart, Index),
    /// Gives a member a value that words give it.
    Assign(Index, Index),
    Delete(EditedPart),
    /// Writes a part twice.
    Double(EditedPart),
    /// Writes a byte in place of another.
    Replace(Index, u8),
}

impl Edit {
    fn apply(&self, text: &mut Vec<u8>, words: &Words) {
        match self {
            Self::Insert(part, word) => {
                let piece = part.of_list(text);
                insert(text, &piece, words.pick(piece.sort, *word).as_bytes());
            }
            Self::Write(part, word) => {
                let piece = part.of(text);
                let content = piece.content(text);
                text.splice(content, words.pick(piece.sort, *word).bytes());
            }
            Self::Assign(member, word) => {
                let members: Vec<_> =
                    pieces(text).into_iter().filter(|piece| piece.sort == Sort::Member).collect();
                if !members.is_empty() {
                    let content = member.get(&members).content(text);
                    let same = words.of_name(&text[content.clone()]);
                    if !same.is_empty() {
                        text.splice(content, word.get(&same).bytes());
                    }
                }
            }
            Self::Delete(part) => drop(text.drain(part.of(text).range)),
            Self::Double(part) => {
                let piece = part.of_list(text);
                let doubled = text[piece.content(text)].to_vec();
                insert(text, &piece, &doubled);
            }
            Self::Replace(at, byte) => {
                if !text.is_empty() {
                    let at = at.index(text.len());
                    text[at] = *byte;
                }
            }
        }
    }
}

/// Writes `word` before a piece, with the comma that it needs.
fn insert(text: &mut Vec<u8>, piece: &JsonPiece, word: &[u8]) {
    let comma: &[u8] = if piece.sort == Sort::Fragment { b"" } else { b"," };
    let at = piece.content(text).start;
    text.splice(at..at, [word, comma].concat());
}

/// Returns all seeds. The directory of a seed names its route.
pub(super) fn seeds() -> Vec<EditedBody> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/seeds");
    let routes =
        [("chat", OrderRoute::Chat), ("completions", OrderRoute::Completions), ("runs", OrderRoute::Runs)];
    let seeds_of = |(name, route)| {
        let entries = fs::read_dir(dir.join(name)).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        // The order of a directory differs between machines.
        paths.sort_unstable();
        paths.into_iter().map(move |path| EditedBody { route, text: fs::read(path).unwrap() })
    };
    routes.into_iter().flat_map(seeds_of).collect()
}

/// Returns seeds with a few edits.
pub(super) fn edited() -> impl Strategy<Value = EditedBody> {
    let seeds = seeds();
    let words = Words::of(&seeds);
    // Of many edits one is nearly always refused.
    let few = prop_oneof![3 => vec(edits(), 1..=2), 1 => vec(edits(), 3..=MAX_EDITS)];
    (select(seeds), few).prop_map(move |(mut body, edits)| {
        for edit in edits {
            edit.apply(&mut body.text, &words);
        }
        body
    })
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        3 => (parts(), any::<Index>()).prop_map(|(part, word)| Edit::Insert(part, word)),
        3 => (parts(), any::<Index>()).prop_map(|(part, word)| Edit::Write(part, word)),
        4 => (any::<Index>(), any::<Index>()).prop_map(|(member, word)| Edit::Assign(member, word)),
        2 => parts().prop_map(Edit::Delete),
        1 => parts().prop_map(Edit::Double),
        1 => (any::<Index>(), bytes()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
    ]
}

fn parts() -> impl Strategy<Value = EditedPart> {
    prop_oneof![
        10 => any::<Index>().prop_map(EditedPart::Piece),
        1 => (any::<Index>(), 0_usize..6).prop_map(|(start, length)| EditedPart::Tokens(start, length)),
        1 => (any::<Index>(), 0_usize..6).prop_map(|(start, length)| EditedPart::Bytes(start, length)),
    ]
}

fn bytes() -> impl Strategy<Value = u8> {
    prop_oneof![3 => b' '..=b'~', 1 => any::<u8>()]
}
