//! history reads from git what commits hold: their objects, the entries they change, and contents.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use platform_core::limit::ByteSize;
use tokio::task::spawn_blocking;

use crate::{
    error::Error,
    object_id::ObjectId,
    program::{Git, GitCommand},
};

/// Most bytes of contents that are read at once, except one larger object.
const CHUNK: ByteSize = ByteSize::mib(16);
/// Memory for a list of changes. Few objects can name more files than any memory holds.
const CHANGES_MEMORY: ByteSize = ByteSize::mib(1024);

/// Kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    /// Content of a file or link.
    Blob,
    /// Directory.
    Tree,
    /// Commit.
    Commit,
    /// Tag with a message.
    Tag,
}

/// Object with its size when expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SizedObject {
    pub(crate) id: ObjectId,
    pub(crate) kind: ObjectKind,
    pub(crate) size: u64,
}

/// Commit with its parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ancestry {
    pub(crate) commit: ObjectId,
    pub(crate) parents: usize,
}

/// Entry that a commit added, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChangedEntry {
    pub(crate) path: Vec<u8>,
    /// Mode in octal digits, zeros for a removed entry.
    pub(crate) mode: String,
    /// Content. `None` for a removed entry.
    pub(crate) id: Option<ObjectId>,
}

/// Repository from which objects are read, by their names alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectReader<'h> {
    pub(crate) git: &'h Git,
    pub(crate) dir: &'h Path,
}

impl<'h> ObjectReader<'h> {
    fn command(self, name: &'static str) -> GitCommand<'h> {
        self.git.command(name, self.dir)
    }

    /// Returns whether `tip` descends from `start`.
    pub(crate) async fn descends(self, start: &ObjectId, tip: &ObjectId) -> Result<bool, Error> {
        let command = self.command("merge-base");
        let output = command.arguments(["--is-ancestor", start.as_str(), tip.as_str()]).run().await?;
        match output.status() {
            Some(1) => Ok(false),
            _ => output.checked().map(|_nothing| true),
        }
    }

    /// Returns the commits that `tip` has and `start` lacks, at most `max`, each before its parents.
    pub(crate) async fn commits(
        self,
        start: &ObjectId,
        tip: &ObjectId,
        max: usize,
    ) -> Result<Vec<Ancestry>, Error> {
        let command = self.command("rev-list").argument(format!("--max-count={max}"));
        let command =
            command.arguments(["--topo-order", "--parents", tip.as_str(), &format!("^{start}"), "--"]);
        let output = command.output().await?;
        let line = |line: &[u8]| {
            let mut ids = line.split(|byte| *byte == b' ');
            let commit = ObjectId::from_bytes(ids.next().unwrap_or_default());
            commit.map(|commit| Ancestry { commit, parents: ids.count() })
        };
        lines(&output).map(line).collect::<Result<_, _>>().map_err(Error::odd_id("rev-list"))
    }

    /// Returns the objects that `tip` has and `start` lacks.
    pub(crate) async fn objects(self, start: &ObjectId, tip: &ObjectId) -> Result<Vec<ObjectId>, Error> {
        let command = self.command("rev-list").arguments(["--objects", "--no-object-names"]);
        let output = command.arguments([tip.as_str(), &format!("^{start}"), "--"]).output().await?;
        lines(&output).map(ObjectId::from_bytes).collect::<Result<_, _>>().map_err(Error::odd_id("rev-list"))
    }

    /// Returns kinds and sizes of objects. `None` stands for an object that is missing.
    pub(crate) async fn sizes(self, names: &[impl AsRef<str>]) -> Result<Vec<Option<SizedObject>>, Error> {
        let input: String = names.iter().flat_map(|name| [name.as_ref(), "\n"]).collect();
        let command = self.command("cat-file").argument("--batch-check").input(input);
        let output = command.output().await?;
        let odd = || Error::OddAnswer { command: "cat-file" };
        let found: Vec<_> = lines(&output).map(parse_size).collect::<Option<_>>().ok_or_else(odd)?;
        if found.len() == names.len() { Ok(found) } else { Err(odd()) }
    }

    /// Returns every entry that the commits change, each compared with all parents, sorted and without repetitions.
    pub(crate) async fn entries(self, commits: &[Ancestry]) -> Result<Vec<ChangedEntry>, Error> {
        let input: String = commits.iter().map(|ancestry| format!("{}\n", ancestry.commit)).collect();
        let command = self.command("diff-tree").arguments(["--stdin", "-r", "-m", "--root", "-z", "--raw"]);
        let command = command.arguments(["--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv"]);
        let command = command.argument("--no-commit-id").memory(CHANGES_MEMORY);
        let output = command.input(input).output().await?;
        let mut entries = parse_entries(&output).ok_or(Error::OddAnswer { command: "diff-tree" })?;
        entries.sort_unstable();
        entries.dedup();
        Ok(entries)
    }

    /// Reads the content of each object on a thread that may block, and returns what `read` makes of it.
    pub(crate) async fn contents<R: Send + 'static>(
        self,
        objects: &[&SizedObject],
        read: impl Fn(&SizedObject, &[u8]) -> R + Send + Sync + 'static,
    ) -> Result<Vec<R>, Error> {
        let read = Arc::new(read);
        let mut results = Vec::new();
        for chunk in chunks(objects) {
            let input: String = chunk.iter().map(|object| format!("{}\n", object.id)).collect();
            let output = self.command("cat-file").argument("--batch").input(input).output().await?;
            let chunk: Vec<SizedObject> = chunk.into_iter().cloned().collect();
            let read = Arc::clone(&read);
            let read = spawn_blocking(move || read_each(&chunk, &output, &*read)).await;
            let read = read.map_err(|_ended| Error::Thread)?;
            results.extend(read.ok_or(Error::OddAnswer { command: "cat-file" })?);
        }
        Ok(results)
    }
}

/// Reads each object's line and content from the output of git. `None` stands for other output.
fn read_each<R>(
    objects: &[SizedObject],
    mut output: &[u8],
    read: &impl Fn(&SizedObject, &[u8]) -> R,
) -> Option<Vec<R>> {
    let mut results = Vec::new();
    for object in objects {
        let header = output.iter().position(|byte| *byte == b'\n')? + 1;
        let size = usize::try_from(object.size).ok()?;
        results.push(read(object, output.get(header..header + size)?));
        output = output.get(header + size + 1..)?;
    }
    Some(results)
}

fn lines(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Groups objects so that their contents are read in few pieces.
fn chunks<'o>(objects: &[&'o SizedObject]) -> Vec<Vec<&'o SizedObject>> {
    let mut chunks: Vec<Vec<&SizedObject>> = Vec::new();
    let mut size = u64::MAX;
    for object in objects {
        if size.saturating_add(object.size) > CHUNK.0 {
            chunks.push(Vec::new());
            size = 0;
        }
        size += object.size;
        if let Some(last) = chunks.last_mut() {
            last.push(object);
        }
    }
    chunks
}

/// Reads `<id> <kind> <size>`, or a line that says that the object is missing.
#[expect(clippy::option_option, reason = "an unreadable line is not a missing object")]
fn parse_size(line: &[u8]) -> Option<Option<SizedObject>> {
    if line.ends_with(b" missing") || line.ends_with(b" ambiguous") {
        return Some(None);
    }
    let mut parts = std::str::from_utf8(line).ok()?.split(' ');
    let id = ObjectId::parse(parts.next()?).ok()?;
    let kind = match parts.next()? {
        "blob" => ObjectKind::Blob,
        "tree" => ObjectKind::Tree,
        "commit" => ObjectKind::Commit,
        "tag" => ObjectKind::Tag,
        _ => return None,
    };
    Some(Some(SizedObject { id, kind, size: parts.next()?.parse().ok()? }))
}

/// Reads raw differences: `:<mode> <mode> <id> <id> <status>` and a path, each with a zero byte behind it.
fn parse_entries(output: &[u8]) -> Option<Vec<ChangedEntry>> {
    let mut entries = Vec::new();
    let mut tokens = output.split(|byte| *byte == 0);
    while let Some(token) = tokens.next().filter(|token| !token.is_empty()) {
        let parts: Vec<&str> = std::str::from_utf8(token.strip_prefix(b":")?).ok()?.split(' ').collect();
        let [_old_mode, mode, _old_id, id, _status] = parts[..] else { return None };
        let path = tokens.next()?.to_owned();
        entries.push(ChangedEntry { path, mode: mode.to_owned(), id: ObjectId::parse(id).ok() });
    }
    Some(entries)
}

/// Returns a path for each content, the first in the order of paths.
pub(crate) fn paths_of(entries: &[ChangedEntry]) -> BTreeMap<&ObjectId, &[u8]> {
    let mut paths = BTreeMap::new();
    for entry in entries {
        if let Some(id) = &entry.id {
            paths.entry(id).or_insert(&entry.path[..]);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_differences_are_read() {
        let id = "a1".repeat(20);
        let zero = "00".repeat(20);
        let raw = format!(":100644 000000 {id} {zero} D\0gone\0:000000 120000 {zero} {id} A\0a\nb\0");
        let entries = parse_entries(raw.as_bytes()).unwrap();
        assert_eq!(entries[0].id, None);
        assert_eq!((&entries[1].path[..], entries[1].mode.as_str()), (&b"a\nb"[..], "120000"));
        assert_eq!(parse_entries(b""), Some(Vec::new()));
        for odd in [&b"x"[..], b":1 2 3\0a\0", b":1 2 3 4 5"] {
            assert_eq!(parse_entries(odd), None);
        }
    }

    #[test]
    fn large_objects_are_read_alone() {
        let object = |size| SizedObject {
            id: ObjectId::parse(&"a1".repeat(20)).unwrap(),
            kind: ObjectKind::Blob,
            size,
        };
        let objects = [object(1), object(2), object(CHUNK.0 * 2), object(3)];
        let chunks = chunks(&objects.iter().collect::<Vec<_>>());
        assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1]);
    }
}
