//! language judges words: how documentation opens, how long its sentences are, and which words are retired.

use crate::{
    Offender,
    comments::{self, Kind, Line},
    file::SourceFile,
};

/// Words that stand for an unnamed person; say which user, process or component.
pub const RETIRED: [&str; 3] = ["whoever", "nobody", "somebody"];

/// Phrases that deny instead of saying what is the case, or hang a clause on a noun.
pub const HEAVY: [&str; 5] = ["is no", "is none", "is not one", "whose", "of its own"];

/// Openings that hide a noun or a verb behind a clause.
pub const OPENINGS: [&str; 17] = [
    "What", "How", "Whether", "Why", "Who", "Whose", "Where", "When", "Which", "By", "Of", "So", "One", "It",
    "They", "Has", "For",
];

/// Most words that a sentence of a module's documentation may have.
pub const SENTENCE: usize = 25;

/// Returns each retired word in the comments of a Rust file.
#[must_use]
pub fn retired_in_comments(file: &SourceFile) -> Vec<Offender> {
    let lines = comments::lines(&file.text);
    lines.iter().flat_map(|line| retired_in(&line.text, file, line.number)).collect()
}

/// Returns each heavy phrase in the comments of a Rust file.
#[must_use]
pub fn heavy_in_comments(file: &SourceFile) -> Vec<Offender> {
    let found = |line: &Line| {
        let offender = |phrase: &str| Offender {
            path: file.path.clone(),
            line: line.number,
            what: format!("{phrase}: {}", line.text.trim()),
        };
        heavy(&line.text).map(offender).collect::<Vec<_>>()
    };
    comments::lines(&file.text).iter().flat_map(found).collect()
}

/// Returns the heavy phrases of a text, each at most once.
pub fn heavy(text: &str) -> impl Iterator<Item = &'static str> {
    let text = format!(" {} ", text.to_lowercase().replace(|c: char| !c.is_alphabetic(), " "));
    HEAVY.into_iter().filter(move |phrase| text.contains(&format!(" {phrase} ")))
}

/// Returns each retired word in a document.
#[must_use]
pub fn retired_in_document(file: &SourceFile) -> Vec<Offender> {
    let lines = file.text.lines().enumerate();
    lines.flat_map(|(index, line)| retired_in(line, file, index + 1)).collect()
}

fn retired_in(text: &str, file: &SourceFile, line: usize) -> Vec<Offender> {
    retired(text).map(|word| Offender { path: file.path.clone(), line, what: word.to_owned() }).collect()
}

/// Returns the retired words of a text, one for each time it occurs.
pub fn retired(text: &str) -> impl Iterator<Item = &'static str> {
    let words = text.split(|c: char| !c.is_alphabetic());
    words.filter_map(|word| RETIRED.into_iter().find(|retired| word.eq_ignore_ascii_case(retired)))
}

/// Returns the documentation comments of a file that open badly.
#[must_use]
pub fn bad_openings(file: &SourceFile) -> Vec<Offender> {
    let blocks = comments::documentation(&file.text);
    let bad = blocks.iter().filter(|block| opening(&block.text).is_some());
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    bad.map(|block| Offender { path: file.path.clone(), line: block.line, what: first(&block.text) })
        .collect()
}

/// Returns the opening of a documentation comment, if it is one to avoid.
#[must_use]
pub fn opening(text: &str) -> Option<&'static str> {
    let first = text.split(|c: char| !c.is_alphabetic()).next()?;
    OPENINGS.into_iter().find(|opening| *opening == first)
}

/// Returns the sentences of module documentation that are too long.
#[must_use]
pub fn long_sentences(file: &SourceFile) -> Vec<Offender> {
    let blocks = comments::documentation(&file.text).into_iter().filter(|block| block.kind == Kind::Module);
    let found = blocks.flat_map(|block| {
        let sentences = sentences(&block.text).into_iter();
        sentences.map(move |sentence| Sentence { line: block.line + sentence.line, ..sentence })
    });
    let long = found.filter(|sentence| sentence.words() > SENTENCE);
    let offender = |sentence: Sentence| Offender {
        path: file.path.clone(),
        line: sentence.line,
        what: format!("{} words: {}", sentence.words(), sentence.text),
    };
    long.map(offender).collect()
}

/// A sentence or paragraph, with its place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Lines before it in the text.
    pub line: usize,
    /// Its words and marks.
    pub text: String,
}

impl Sentence {
    /// Returns the number of its words; marks alone are none.
    #[must_use]
    pub fn words(&self) -> usize {
        self.text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
    }
}

/// Returns the sentences of a documentation text. Headings, tables, examples and link targets have none.
#[must_use]
pub fn sentences(text: &str) -> Vec<Sentence> {
    paragraphs(text).iter().flat_map(split).collect()
}

/// Returns the paragraphs and list items of a text, with their line breaks.
fn paragraphs(text: &str) -> Vec<Sentence> {
    let mut found: Vec<Sentence> = Vec::new();
    let mut fenced = false;
    let mut begins = true;
    for (number, line) in text.lines().map(str::trim).enumerate() {
        let is_fence = line.starts_with("```");
        fenced ^= is_fence;
        let is_target = line.starts_with('[') && line.contains("]: ");
        if fenced || is_fence || line.is_empty() || line.starts_with(['#', '|']) || is_target {
            begins = true;
            continue;
        }
        begins |= line.starts_with(['*', '-']) || line.trim_start_matches(char::is_numeric).starts_with(". ");
        match found.last_mut().filter(|_| !begins) {
            Some(last) => last.text = format!("{}\n{line}", last.text),
            None => found.push(Sentence { line: number, text: line.to_owned() }),
        }
        begins = false;
    }
    found
}

/// Splits a paragraph where a full stop, exclamation or question mark is followed by the start of a sentence.
fn split(paragraph: &Sentence) -> Vec<Sentence> {
    let text = &paragraph.text;
    let sentence = |start: usize, end: usize| Sentence {
        line: paragraph.line + text[..start].matches('\n').count(),
        text: text[start..end].trim().replace('\n', " "),
    };
    let mut found = Vec::new();
    let mut start = 0;
    for (at, mark) in text.match_indices(['.', '!', '?']) {
        let rest = text[at + mark.len()..].trim_start_matches(['"', ')', '`', '*', '_', '”']);
        let next = rest.trim_start();
        let begins = |c: char| c.is_uppercase() || c.is_numeric() || ['`', '[', '"', '“', '('].contains(&c);
        if next.len() < rest.len() && next.chars().next().is_none_or(begins) {
            let end = text.len() - next.len();
            found.push(sentence(start, end));
            start = end;
        }
    }
    if !text[start..].trim().is_empty() {
        found.push(sentence(start, text.len()));
    }
    found
}
