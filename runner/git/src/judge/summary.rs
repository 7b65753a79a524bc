//! summary lists commits for people: the id, the subject and the author's time of each.

use platform_core::limit::ByteSize;
use platform_runtime::terminal;
use serde::{Deserialize, Serialize};

use super::{
    history::{ObjectReader, SizedObject},
    rule::MAX_SHOWN,
    secrets::SecretScan,
};
use crate::{error::Error, object_id::ObjectId};

/// Most commits that are listed.
const MAX_LISTED: usize = 50;
/// Largest commit that is read for its subject.
const MAX_COMMIT: ByteSize = ByteSize::kib(64);
/// Latest time that programs can write, the end of the year 9999, in seconds since 1970.
const MAX_TIME: u64 = 253_402_300_799;
/// Text in place of a subject that must not be shown.
const HIDDEN: &str = "(hidden: the commit holds a secret)";

/// Commit of an agent, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitSummary {
    /// Id of the commit.
    pub id: ObjectId,
    /// First line of its message, made safe to print and shortened.
    pub subject: String,
    /// Time that its author wrote into it, if it can be read, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authored_ms: Option<i64>,
}

impl CommitSummary {
    fn read(object: &SizedObject, content: &[u8], secrets: &SecretScan) -> Self {
        let end = content.windows(2).position(|pair| pair == b"\n\n").unwrap_or(content.len());
        let (header, message) = content.split_at(end);
        let subject = match secrets.find_in_text(content) {
            Some(_) => HIDDEN.to_owned(),
            None => {
                let message = String::from_utf8_lossy(message);
                printable(message.trim_start().lines().next().unwrap_or_default().trim_end())
            }
        };
        let authored_ms = author_seconds(header).and_then(|seconds| i64::try_from(seconds * 1000).ok());
        Self { id: object.id.clone(), subject, authored_ms }
    }
}

/// Returns a line without what changes a terminal or hides characters, and not too long. No decision depends on it, so it
/// has no marks, which would be many among emoji.
fn printable(line: &str) -> String {
    let mut line = terminal::safe(line).replace(['\n', '\t'], " ");
    line.truncate(line.floor_char_boundary(MAX_SHOWN));
    line
}

/// Returns the author's time in `author NAME <ADDRESS> SECONDS ZONE`, in seconds since 1970.
fn author_seconds(header: &[u8]) -> Option<u64> {
    let line = header.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"author "))?;
    let seconds = line.rsplit(|byte| *byte == b' ').nth(1)?;
    std::str::from_utf8(seconds).ok()?.parse().ok().filter(|seconds| *seconds <= MAX_TIME)
}

impl ObjectReader<'_> {
    /// Returns the commits that `tip` has and `start` lacks, the newest first, as far as they are listed.
    pub(crate) async fn summaries(
        self,
        start: &ObjectId,
        tip: &ObjectId,
        secrets: &SecretScan,
    ) -> Result<Vec<CommitSummary>, Error> {
        let commits = self.commits(start, tip, MAX_LISTED).await?;
        let names: Vec<&str> = commits.iter().map(|ancestry| ancestry.commit.as_str()).collect();
        let found: Vec<_> = self.sizes(&names).await?.into_iter().flatten().collect();
        let small: Vec<_> = found.iter().filter(|object| object.size <= MAX_COMMIT.0).collect();
        let secrets = secrets.clone();
        let read = move |object: &SizedObject, content: &[u8]| CommitSummary::read(object, content, &secrets);
        self.contents(&small, read).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::ObjectKind;

    fn summary(content: &str) -> CommitSummary {
        let id = ObjectId::parse(&"a1".repeat(20)).unwrap();
        let object = SizedObject { id, kind: ObjectKind::Commit, size: 0 };
        CommitSummary::read(&object, content.as_bytes(), &SecretScan::default())
    }

    #[test]
    fn a_commit_has_a_subject_and_a_time() {
        let read =
            summary("tree x\nauthor A B <a@b> 1700000000 +0100\ncommitter C <c> 1 +0\n\nFix it\n\nMore");
        assert_eq!((read.subject.as_str(), read.authored_ms), ("Fix it", Some(1_700_000_000_000)));
    }

    #[test]
    fn what_an_agent_wrote_is_safe_to_print() {
        let read = summary("author A <a> 99999999999999999 +0000\n\n\x1b[31mred\u{202e}\rx\nsecond");
        assert!(!read.subject.contains(|c: char| c.is_control() || c == '\u{202e}'), "{read:?}");
        assert_eq!(summary("author\n\n♻\u{fe0f}\tTidy\u{200b} up").subject, "♻\u{fe0f} Tidy up");
        assert_eq!(read.authored_ms, None, "no program can write that time");
        assert_eq!(summary("").subject, "");
        assert!(summary(&format!("author\n\n{}", "x".repeat(1000))).subject.len() <= 300);
    }

    #[test]
    fn a_subject_shows_no_secret() {
        let token = ["gh", "p_"].concat() + &"a1B2".repeat(9);
        let read = summary(&format!("author A <a> 1 +0000\n\nUse {token}"));
        assert_eq!(read.subject, HIDDEN);
    }
}
