//! one_file reads one file of a commit, and makes a commit that changes one file: work that is the host's own.

use platform_core::limit::ByteSize;

use crate::{
    agent_clone::AuthorIdentity,
    error::Error,
    mirror::{CloneDepth, Copied, Mirror},
    object_id::ObjectId,
    program::GitCommand,
    quarantine::{Quarantine, START},
};

/// Mode of a file that is new.
const PLAIN_MODE: &str = "100644";
/// Beginning of the modes of files that are neither links nor submodules.
const FILE_MODES: &str = "100";

/// Place of a commit, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAt {
    /// Nothing is at the path.
    Missing,
    /// A file with this text.
    Text(String),
    /// Anything else: a directory, a link, a submodule, bytes, or a larger file.
    Other,
}

/// Change of one file. The same change of the same commit is the same commit each time.
#[derive(Debug, Clone, Copy)]
pub struct FileChange<'c> {
    /// Path in the repository: plain names, as the caller has checked.
    pub path: &'c str,
    /// Whole new text of the file.
    pub text: &'c str,
    /// Message of the commit.
    pub message: &'c str,
    /// Author of the commit.
    pub author: &'c AuthorIdentity,
    /// Time of the commit, in seconds since 1970.
    pub time: u64,
}

/// Entry of a directory, as git lists it.
struct ListedEntry {
    mode: String,
    id: ObjectId,
    size: Option<u64>,
}

impl Mirror {
    /// Returns what `commit` has at `path`, a file of at most `most` bytes.
    ///
    /// # Errors
    /// If git fails.
    pub async fn file(&self, commit: &ObjectId, path: &str, most: ByteSize) -> Result<FileAt, Error> {
        let entry = match list(self.command("ls-tree"), commit, path).await? {
            None => return Ok(FileAt::Missing),
            Some(entry) => entry,
        };
        let is_file = entry.mode.starts_with(FILE_MODES) && entry.size.is_some_and(|size| size <= most.0);
        if !is_file {
            return Ok(FileAt::Other);
        }
        let content = self.command("cat-file").arguments(["blob", entry.id.as_str()]).output().await?;
        Ok(String::from_utf8(content).map_or(FileAt::Other, FileAt::Text))
    }
}

impl Quarantine {
    /// Takes the commit `start` from `mirror`, and makes a commit on top of it that changes one file. To be judged and
    /// pushed as an agent's is.
    ///
    /// # Errors
    /// If git or the system fails, as for a path that leads through a file.
    pub async fn commit_file(
        &self,
        mirror: &Mirror,
        start: &ObjectId,
        change: &FileChange<'_>,
    ) -> Result<(), Error> {
        mirror.copy_to(self.dir(), start, &Copied { reference: START, depth: CloneDepth::default() }).await?;
        let listed = list(self.git().command("ls-tree", self.dir()), start, change.path).await?;
        let mode = listed.map_or_else(|| PLAIN_MODE.to_owned(), |entry| entry.mode);
        let blob = self.store("blob", change.text.as_bytes()).await?;
        // The index of a quarantine is its own, as all else in it.
        self.writing("read-tree").argument(start.as_str()).output().await?;
        let entry = format!("{mode},{blob},{}", change.path);
        self.writing("update-index").arguments(["--add", "--cacheinfo", &entry]).output().await?;
        let tree = self.writing("write-tree").output().await?;
        let tree = ObjectId::from_bytes(tree.trim_ascii_end()).map_err(Error::odd_id("write-tree"))?;
        let tip = self.store("commit", change.commit(&tree, start).as_bytes()).await?;
        self.set_tip(&tip).await
    }

    /// Stores an object, and returns its name.
    pub(crate) async fn store(&self, kind: &'static str, content: &[u8]) -> Result<ObjectId, Error> {
        let command = self.writing("hash-object").arguments(["-t", kind, "-w", "--stdin"]);
        let output = command.input(content).output().await?;
        ObjectId::from_bytes(output.trim_ascii_end()).map_err(Error::odd_id("hash-object"))
    }

    fn writing(&self, name: &'static str) -> GitCommand<'_> {
        self.git().command(name, self.dir()).writes(self.dir())
    }
}

impl FileChange<'_> {
    /// Returns the commit, in the format of git's objects.
    fn commit(&self, tree: &ObjectId, parent: &ObjectId) -> String {
        let Self { message, author, time, .. } = self;
        let person = format!("{author} {time} +0000");
        format!("tree {tree}\nparent {parent}\nauthor {person}\ncommitter {person}\n\n{message}\n")
    }
}

/// Returns what `commit` has at `path`, by a command that lists a directory.
async fn list(command: GitCommand<'_>, commit: &ObjectId, path: &str) -> Result<Option<ListedEntry>, Error> {
    let command = command.arguments(["-z", "--long", "--full-tree", commit.as_str(), "--", path]);
    let output = command.output().await?;
    let odd = || Error::OddAnswer { command: "ls-tree" };
    let text = std::str::from_utf8(&output).or(Err(odd()))?;
    let Some((facts, _path)) = text.trim_end_matches('\0').split_once('\t') else { return Ok(None) };
    let mut facts = facts.split_ascii_whitespace();
    let mode = facts.next().ok_or_else(odd)?.to_owned();
    let id = facts.nth(1).ok_or_else(odd)?;
    let id = ObjectId::parse(id).map_err(Error::odd_id("ls-tree"))?;
    // A directory has no size.
    Ok(Some(ListedEntry { mode, id, size: facts.next().and_then(|size| size.parse().ok()) }))
}
