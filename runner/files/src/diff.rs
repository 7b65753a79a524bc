//! Writes changes in git's extended unified format, which `git apply` and reviewers read.

use std::time::Duration;

use platform_core::limit::ByteSize;
use similar::TextDiff;
use std::os::unix::ffi::OsStrExt;

use super::{
    beneath::Unreadable,
    changes::{Change, NewSide, OldSide},
    error::Error,
    result_tree::{ResultTree, reason},
    stage::Stage,
};

/// Largest file that is compared line by line.
const MAX_DIFFED_SIZE: ByteSize = ByteSize::mib(4);
/// Bytes at the beginning of a file in which a zero byte shows that it is not text. Git looks at as many.
const BINARY_CHECK_LEN: usize = 8000;
/// Longest search for the shortest difference; then a longer one is taken.
const MAX_SEARCH: Duration = Duration::from_secs(3);
/// Lines around a change.
const CONTEXT_LINES: usize = 3;
/// Mark behind a last line without its end.
const NO_NEWLINE: &[u8] = b"\\ No newline at end of file\n";

/// Difference of one file as text, with its figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// The difference, in bytes: lines of files need not be UTF-8.
    pub text: Vec<u8>,
    /// Figures of the difference.
    pub figures: DiffFigures,
}

/// Figures of one difference.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffFigures {
    /// Lines of a text.
    Lines {
        /// Lines that are new.
        insertions: u64,
        /// Lines that are gone.
        deletions: u64,
    },
    /// Not a text.
    Binary {
        /// Size before.
        old_size: u64,
        /// Size now.
        new_size: u64,
    },
    /// Not compared, for this reason.
    Uncompared(String),
}

/// Both contents of a change.
struct Contents {
    old: Vec<u8>,
    new: Vec<u8>,
}

/// Reads both sides of changes.
#[derive(Debug, Clone, Copy)]
pub struct DiffReader<'d> {
    /// The files that the run received.
    pub stage: &'d Stage,
    /// The files that the run has now.
    pub result: &'d ResultTree,
}

impl DiffReader<'_> {
    /// Returns the difference of `change`.
    ///
    /// # Errors
    /// [`Error::Damaged`], if the stage cannot be read.
    pub fn diff(&self, change: &Change) -> Result<FileDiff, Error> {
        let old = change.old.as_ref();
        let new = change.new.as_ref();
        if old.zip(new).is_some_and(|(old, new)| mode(old) == LINK_MODE || new.mode() == LINK_MODE)
            && old.map(mode) != new.map(NewSide::mode)
        {
            // As git does: a deletion and an addition.
            let one = self.sides(change, old, None)?;
            let other = self.sides(change, None, new)?;
            return Ok(FileDiff {
                text: [one.text, other.text].concat(),
                figures: one.figures.plus(other.figures),
            });
        }
        self.sides(change, old, new)
    }

    fn sides(
        &self,
        change: &Change,
        old: Option<&OldSide>,
        new: Option<&NewSide>,
    ) -> Result<FileDiff, Error> {
        let mut writer =
            DiffWriter { change, old: old.map(mode), new: new.map(NewSide::mode), text: Vec::new() };
        writer.header();
        let figures = match self.contents(change, old, new)? {
            Err(why) => {
                writer.binary();
                DiffFigures::Uncompared(reason(why))
            }
            Ok(contents) if contents.is_binary() => {
                if contents.old != contents.new {
                    writer.binary();
                }
                contents.sizes()
            }
            Ok(contents) => writer.hunks(&contents),
        };
        Ok(FileDiff { text: writer.text, figures })
    }

    fn contents(
        &self,
        change: &Change,
        old: Option<&OldSide>,
        new: Option<&NewSide>,
    ) -> Result<Result<Contents, Unreadable>, Error> {
        let too_large = |size: u64| size > MAX_DIFFED_SIZE.0;
        let old = match old {
            None => Vec::new(),
            Some(OldSide::File(file)) if too_large(file.size) => {
                return Ok(Err(Unreadable::TooLarge { max_size: MAX_DIFFED_SIZE }));
            }
            Some(OldSide::File(file)) => self.stage.content(file)?,
            Some(OldSide::Link(target)) => target.as_os_str().as_bytes().to_vec(),
        };
        let new = match new {
            None => Ok(Vec::new()),
            Some(NewSide::File { .. }) => {
                self.result.open_file(&change.path).and_then(|file| file.content(MAX_DIFFED_SIZE))
            }
            Some(NewSide::Link(target)) => Ok(target.as_os_str().as_bytes().to_vec()),
        };
        Ok(new.map(|new| Contents { old, new }))
    }
}

/// Modes of files and links in git's format.
const FILE_MODE: &str = "100644";
const EXECUTABLE_MODE: &str = "100755";
const LINK_MODE: &str = "120000";

const fn mode(side: &OldSide) -> &'static str {
    match side {
        OldSide::File(file) if file.executable => EXECUTABLE_MODE,
        OldSide::File(_) => FILE_MODE,
        OldSide::Link(_) => LINK_MODE,
    }
}

impl NewSide {
    const fn mode(&self) -> &'static str {
        match self {
            Self::File { executable: true, .. } => EXECUTABLE_MODE,
            Self::File { .. } => FILE_MODE,
            Self::Link(_) => LINK_MODE,
        }
    }
}

impl Contents {
    fn is_binary(&self) -> bool {
        let has_zero = |content: &[u8]| content.iter().take(BINARY_CHECK_LEN).any(|byte| *byte == 0);
        has_zero(&self.old) || has_zero(&self.new)
    }

    const fn sizes(&self) -> DiffFigures {
        DiffFigures::Binary { old_size: self.old.len() as u64, new_size: self.new.len() as u64 }
    }
}

impl DiffFigures {
    /// Returns the figures of two differences of one file.
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::Lines { insertions, deletions },
                Self::Lines { insertions: more_insertions, deletions: more_deletions },
            ) => Self::Lines {
                insertions: insertions + more_insertions,
                deletions: deletions + more_deletions,
            },
            (Self::Lines { .. }, other) => other,
            (this, _) => this,
        }
    }
}

/// Difference that is being written.
struct DiffWriter<'c> {
    change: &'c Change,
    old: Option<&'static str>,
    new: Option<&'static str>,
    text: Vec<u8>,
}

impl DiffWriter<'_> {
    fn line(&mut self, line: &str) {
        self.text.extend_from_slice(line.as_bytes());
        self.text.push(b'\n');
    }

    fn header(&mut self) {
        let path = &self.change.path;
        self.line(&format!("diff --git {} {}", path.git_quoted("a/"), path.git_quoted("b/")));
        match (self.old, self.new) {
            (Some(old), Some(new)) if old != new => {
                self.line(&format!("old mode {old}"));
                self.line(&format!("new mode {new}"));
            }
            (Some(old), None) => self.line(&format!("deleted file mode {old}")),
            (None, Some(new)) => self.line(&format!("new file mode {new}")),
            _ => {}
        }
    }

    fn names(&self) -> [String; 2] {
        let name = |side: Option<_>, prefix| {
            side.map_or_else(|| "/dev/null".to_owned(), |_mode: &str| self.change.path.git_quoted(prefix))
        };
        [name(self.old, "a/"), name(self.new, "b/")]
    }

    fn binary(&mut self) {
        let [old, new] = self.names();
        self.line(&format!("Binary files {old} and {new} differ"));
    }

    fn hunks(&mut self, contents: &Contents) -> DiffFigures {
        let [old, new] = [&contents.old, &contents.new].map(|content| lines(content));
        let diff = TextDiff::configure().timeout(MAX_SEARCH).diff_slices(&old, &new);
        let mut unified = diff.unified_diff();
        unified.context_radius(CONTEXT_LINES);
        let [mut insertions, mut deletions] = [0, 0];
        for (index, hunk) in unified.iter_hunks().enumerate() {
            if index == 0 {
                // A tab ends a name with blanks, as git has it.
                let [old, new] = self.names().map(|name| if name.contains(' ') { name + "\t" } else { name });
                self.line(&format!("--- {old}"));
                self.line(&format!("+++ {new}"));
            }
            self.line(&hunk.header().to_string());
            for line in hunk.iter_changes() {
                let sign = match line.tag() {
                    similar::ChangeTag::Equal => b' ',
                    similar::ChangeTag::Insert => b'+',
                    similar::ChangeTag::Delete => b'-',
                };
                insertions += u64::from(sign == b'+');
                deletions += u64::from(sign == b'-');
                self.text.push(sign);
                self.text.extend_from_slice(line.value());
                if !line.value().ends_with(b"\n") {
                    self.text.push(b'\n');
                    self.text.extend_from_slice(NO_NEWLINE);
                }
            }
        }
        DiffFigures::Lines { insertions, deletions }
    }
}

/// Returns the lines of `content` with their ends. Only a line feed ends one, as in git.
fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}
