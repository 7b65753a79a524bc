//! figures lists every count that `ratchet.toml` holds, and how it is counted.

use std::fs;

use crate::{
    Error, Offender, commits,
    file::{Area, SourceFile},
    habits::{self, Habits},
    language, modules, names,
    ratchet::{self, Ratchet},
    sleeps,
    sources::Repository,
};

/// A count that may only fall.
#[derive(Debug)]
pub struct Figure {
    /// Its name in `ratchet.toml`.
    pub key: &'static str,
    /// The rule that would make it zero.
    pub rule: &'static str,
    find: fn(&Repository) -> Result<Vec<Offender>, Error>,
}

impl Figure {
    /// Returns the places that break the rule today.
    ///
    /// # Errors
    /// If a file does not parse.
    pub fn offenders(&self, repository: &Repository) -> Result<Vec<Offender>, Error> {
        (self.find)(repository)
    }

    /// Returns the figure called `key`.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn named(key: &str) -> Result<&'static Self, Error> {
        let found = FIGURES.iter().find(|figure| figure.key == key);
        found.ok_or_else(|| Error::UnknownFigure { name: key.to_owned() })
    }
}

/// All figures. `shipped` counts shipped crates with the tests inside them, `tools` tests, benchmarks and fuzzers.
pub const FIGURES: &[Figure] = &[
    Figure {
        key: "retired_words_shipped",
        rule: "comments name the user, process or component instead of whoever, nobody, somebody",
        find: |repository| each(shipped(repository), language::retired_in_comments),
    },
    Figure {
        key: "retired_words_tools",
        rule: "the same in comments of tests, benchmarks and fuzzers",
        find: |repository| each(tools(repository), language::retired_in_comments),
    },
    Figure {
        key: "retired_words_documents",
        rule: "the same in Markdown",
        find: |repository| each(repository.markdown(), language::retired_in_document),
    },
    Figure {
        key: "retired_words_code",
        rule: "the same in names and texts of product code",
        find: |repository| try_each(repository.product(), names::retired),
    },
    Figure {
        key: "heavy_phrases_shipped",
        rule: "comments say what is the case; without `is no`, `is none`, `is not one`, `whose`, `of its own`",
        find: |repository| each(shipped(repository), language::heavy_in_comments),
    },
    Figure {
        key: "heavy_phrases_tools",
        rule: "the same in tests, benchmarks and fuzzers",
        find: |repository| each(tools(repository), language::heavy_in_comments),
    },
    Figure {
        key: "doc_openings_shipped",
        rule: "documentation opens with a verb or a noun, not with What, How, Whether, It, …",
        find: |repository| each(shipped(repository), language::bad_openings),
    },
    Figure {
        key: "doc_openings_tools",
        rule: "the same in tests, benchmarks and fuzzers",
        find: |repository| each(tools(repository), language::bad_openings),
    },
    Figure {
        key: "long_sentences_shipped",
        rule: "sentences of module documentation have at most 25 words",
        find: |repository| each(shipped(repository), language::long_sentences),
    },
    Figure {
        key: "long_sentences_tools",
        rule: "the same in tests, benchmarks and fuzzers",
        find: |repository| each(tools(repository), language::long_sentences),
    },
    Figure {
        key: "overused_type_names",
        rule: "a type name has at most two meanings in the product",
        find: |repository| Ok(names::overused(&names::types(repository.product())?)),
    },
    Figure {
        key: "long_test_names",
        rule: "a test's name has at most 45 characters: subject and result",
        find: |repository| try_each(repository.rust(), names::long_tests),
    },
    Figure {
        key: "bare_errors",
        rule: "the log shows an error with its causes, not by `%error`",
        find: |repository| try_each(repository.product(), habits::bare_errors),
    },
    Figure {
        key: "text_errors_shipped",
        rule: "an error has a type; a `String` in its place has no causes, no code and one reader",
        find: |repository| try_each(shipped(repository), habits::text_errors),
    },
    Figure {
        key: "text_errors_tools",
        rule: "the same in tests, benchmarks and fuzzers",
        find: |repository| try_each(tools(repository), habits::text_errors),
    },
    Figure {
        key: "vague_constants",
        rule: "a constant says whether it is an interval, a timeout or a delay",
        find: |repository| habit(repository, |habits| habits.vague_constants),
    },
    Figure {
        key: "unnamed_durations",
        rule: "a duration ends in _INTERVAL, _TIMEOUT, _DELAY, _GRACE, _RETENTION, or begins with MAX_ or MIN_",
        find: |repository| habit(repository, |habits| habits.unnamed_durations),
    },
    Figure {
        key: "paired_lets",
        rule: "`let (a, b) = (x, y);` is two lines",
        find: |repository| habit(repository, |habits| habits.paired_lets),
    },
    Figure {
        key: "tuple_parameters",
        rule: "a function takes a named struct instead of a tuple",
        find: |repository| habit(repository, |habits| habits.tuple_parameters),
    },
    Figure {
        key: "fixed_sleeps_shipped",
        rule: "a test beside the code waits for a condition with a bound, or by a clock that it moves",
        find: |repository| try_each(shipped(repository), sleeps::find),
    },
    Figure {
        key: "fixed_sleeps_tools",
        rule: "a test waits by `eventually`; `pace` and `holds_for` name every other pause",
        find: |repository| try_each(tools(repository), sleeps::find),
    },
    Figure {
        key: "fixed_sleeps_scripts",
        rule: "a script waits for a condition by `until`, or by `idle` until its page stays the same",
        find: |repository| each(scripts(repository), sleeps::find_in_script),
    },
    Figure {
        key: "file_loops",
        rule: "files of the product import each other in one direction",
        find: file_loops,
    },
    Figure {
        key: "long_commit_subjects",
        rule: "a commit's subject has at most 72 characters",
        find: |repository| {
            let base = Ratchet::read(repository)?;
            Ok(commits::long_subjects(repository.root(), base.base_commit()).unwrap_or_default())
        },
    },
];

/// Returns the Rust files of shipped crates, tests inside them too.
pub fn shipped(repository: &Repository) -> impl Iterator<Item = &SourceFile> {
    repository.rust().filter(|file| file.area() != Area::Tools)
}

/// Returns the Rust files of tests, benchmarks and fuzzers.
pub fn tools(repository: &Repository) -> impl Iterator<Item = &SourceFile> {
    repository.rust().filter(|file| file.area() == Area::Tools)
}

fn scripts(repository: &Repository) -> impl Iterator<Item = &SourceFile> {
    repository.files().iter().filter(|file| file.path.ends_with(".mjs"))
}

fn each<'f>(
    files: impl Iterator<Item = &'f SourceFile>,
    find: fn(&SourceFile) -> Vec<Offender>,
) -> Result<Vec<Offender>, Error> {
    Ok(files.flat_map(find).collect())
}

fn try_each<'f>(
    files: impl Iterator<Item = &'f SourceFile>,
    find: fn(&SourceFile) -> Result<Vec<Offender>, Error>,
) -> Result<Vec<Offender>, Error> {
    let found: Vec<Vec<Offender>> = files.map(find).collect::<Result<_, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

fn habit(repository: &Repository, pick: fn(Habits) -> Vec<Offender>) -> Result<Vec<Offender>, Error> {
    let found: Vec<Habits> = repository.product().map(habits::find).collect::<Result<_, _>>()?;
    Ok(found.into_iter().flat_map(pick).collect())
}

/// Returns each group of files in which each reaches each other by imports, under the directory of its crate.
fn file_loops(repository: &Repository) -> Result<Vec<Offender>, Error> {
    let mut found = Vec::new();
    for own in repository.crates() {
        if !modules::tree(repository, own).all(|file| file.area() == Area::Product) {
            continue;
        }
        for group in modules::by_file(repository, own)?.loops() {
            let what = group.into_iter().collect::<Vec<_>>().join(", ");
            found.push(Offender { path: own.dir.clone(), line: 1, what });
        }
    }
    Ok(found)
}

/// Writes the figures that have fallen to the ratchet's file, and returns them in words.
///
/// # Errors
/// If a source does not parse, or the file cannot be written.
pub fn lower(repository: &Repository) -> Result<Vec<String>, Error> {
    let mut ratchet = Ratchet::read(repository)?;
    let mut lowered = Vec::new();
    for figure in FIGURES {
        let most = ratchet.figure(figure.key);
        let today = figure.offenders(repository)?.len();
        if today < most {
            ratchet = Ratchet::parse(ratchet.with(figure.key, today))?;
            lowered.push(format!("{} {most} -> {today}", figure.key));
        }
    }
    let path = repository.root().join(ratchet::FILE);
    fs::write(&path, ratchet.text()).map_err(|source| Error::Access { path, source })?;
    Ok(lowered)
}
