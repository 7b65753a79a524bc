//! Reads a directory that an agent writes to while it is read: lists one level at a time, and opens files. Follows no link.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use rustix::{
    fs::{AtFlags, Dir, FileType, StatxFlags, statx},
    io::Errno,
};

use super::{
    beneath::{PlainFile, TreeRoot, Unreadable},
    path::RelativePath,
};

/// Directory of an agent.
#[derive(Debug)]
pub struct AgentDirectory(TreeRoot);

/// Entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its path in the agent's directory.
    pub path: RelativePath,
    /// Its form.
    pub form: DirectoryEntryForm,
}

/// Form of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryEntryForm {
    /// A file, with its size in bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A symbolic link, which nothing here follows.
    Link,
    /// A socket, a pipe or a device.
    Special,
}

/// Part of a listed directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDirectory {
    /// Entries, sorted by path.
    pub entries: Vec<DirectoryEntry>,
    /// True if there are more entries, or some that no path can name.
    pub is_cut: bool,
}

impl AgentDirectory {
    /// Opens the directory `relative` of `base`. The path to `base` is trusted, and what is below is not.
    ///
    /// # Errors
    /// [`Unreadable`], with the reason.
    pub fn open(base: &Path, relative: &Path) -> Result<Self, Unreadable> {
        Ok(Self(TreeRoot::open(base)?.subtree(relative)?))
    }

    /// Lists at most `most` entries of the directory itself, or of `below` in it.
    ///
    /// # Errors
    /// [`Unreadable`], with the reason.
    pub fn list(&self, below: Option<&RelativePath>, most: usize) -> Result<ListedDirectory, Unreadable> {
        let path = below.map_or(Path::new(""), RelativePath::as_path);
        let mut listed = Dir::new(self.0.open_dir(path)?)?;
        let mut found = ListedDirectory { entries: Vec::new(), is_cut: false };
        while let Some(entry) = listed.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if found.entries.len() == most {
                found.is_cut = true;
                break;
            }
            let form = match form(listed.fd()?, name) {
                Ok(form) => form,
                // It was removed a moment ago.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno.into()),
            };
            match RelativePath::parse(path.join(name)) {
                Ok(path) => found.entries.push(DirectoryEntry { path, form }),
                // It cannot be opened either.
                Err(_too_long) => found.is_cut = true,
            }
        }
        found.entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// Opens the file `path`, which must have one name.
    ///
    /// # Errors
    /// [`Unreadable`], with the reason.
    pub fn open_file(&self, path: &RelativePath) -> Result<PlainFile, Unreadable> {
        self.0.open_file(path.as_path())?.with_one_name()
    }
}

fn form(dir: impl std::os::fd::AsFd, name: &OsStr) -> Result<DirectoryEntryForm, Errno> {
    let found = statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)?;
    Ok(match FileType::from_raw_mode(found.stx_mode.into()) {
        FileType::RegularFile => DirectoryEntryForm::File(found.stx_size),
        FileType::Directory => DirectoryEntryForm::Directory,
        FileType::Symlink => DirectoryEntryForm::Link,
        _special => DirectoryEntryForm::Special,
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn relative(path: &str) -> RelativePath {
        RelativePath::parse(path).unwrap()
    }

    #[test]
    fn one_level_is_listed_and_no_link_followed() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("state");
        fs::create_dir_all(base.join("agents/bot/src")).unwrap();
        fs::write(base.join("agents/bot/notes.md"), "hello").unwrap();
        fs::write(base.join("agents/bot/src/main.rs"), "fn").unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        symlink("../../../secret", base.join("agents/bot/link")).unwrap();
        symlink("/", base.join("agents/other")).unwrap();

        let bot = AgentDirectory::open(&base, Path::new("agents/bot")).unwrap();
        let listed = bot.list(None, 10).unwrap();
        let entries: Vec<_> = listed.entries.iter().map(|entry| (entry.path.as_path(), entry.form)).collect();
        assert_eq!(
            entries,
            [
                (Path::new("link"), DirectoryEntryForm::Link),
                (Path::new("notes.md"), DirectoryEntryForm::File(5)),
                (Path::new("src"), DirectoryEntryForm::Directory),
            ]
        );
        let below = bot.list(Some(&relative("src")), 10).unwrap().entries;
        assert_eq!(below[0].path, relative("src/main.rs"));
        let few = bot.list(None, 1).unwrap();
        assert_eq!((few.entries.len(), few.is_cut, listed.is_cut), (1, true, false));

        assert!(bot.open_file(&relative("notes.md")).is_ok());
        for path in ["link", "link/x", "none", "src"] {
            assert!(bot.open_file(&relative(path)).is_err(), "{path}");
        }
        assert!(bot.list(Some(&relative("link")), 10).is_err());
        assert!(AgentDirectory::open(&base, Path::new("agents/other")).is_err(), "an agent made it a link");
        fs::hard_link(dir.path().join("secret"), base.join("agents/bot/named-twice")).unwrap();
        assert!(bot.open_file(&relative("named-twice")).is_err());
    }
}
