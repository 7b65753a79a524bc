//! agent_clone makes the repository that an agent works in: its own objects, no remote, no trace of this host.

use std::{
    fmt,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::{
    branch::{BaseBranch, SandboxBranch},
    directory::{remove_dir, remove_file},
    error::Error,
    mirror::{CloneDepth, Copied, Mirror},
    object_id::{ObjectId, SHA1},
};

/// Most bytes of an author's name or address.
const MAX_AUTHOR: usize = 200;
/// Entries of a new repository that tell of this host or that an agent does not need.
const NEEDLESS: [&str; 4] = ["logs", "hooks", "branches", "info"];
/// Files of that kind.
const NEEDLESS_FILES: [&str; 3] = ["FETCH_HEAD", "ORIG_HEAD", "description"];

/// Name and address of the author of an agent's commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorIdentity {
    name: String,
    email: String,
}

/// Error for a name or address that git cannot store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an author's name and address have 1 to {MAX_AUTHOR} characters, without quotes, `<`, `>`, `\\` and control characters"
)]
pub struct InvalidAuthor;

impl AuthorIdentity {
    /// Takes a name and an address.
    ///
    /// # Errors
    /// If one is empty or too long, or has a character with a meaning in git's settings or commits.
    pub fn new(name: &str, email: &str) -> Result<Self, InvalidAuthor> {
        let is_odd = |c: char| c.is_control() || "<>\"\\".contains(c);
        let is_good =
            |text: &str| !text.trim().is_empty() && text.len() <= MAX_AUTHOR && !text.contains(is_odd);
        if is_good(name) && is_good(email) {
            Ok(Self { name: name.to_owned(), email: email.to_owned() })
        } else {
            Err(InvalidAuthor)
        }
    }
}

impl fmt::Display for AuthorIdentity {
    /// Writes the author as commits have it: `NAME <ADDRESS>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <{}>", self.name, self.email)
    }
}

/// Choice of the commit that an agent begins with, and of what its repository says.
#[derive(Debug, Clone)]
pub struct CloneOrder {
    /// Branch from which a new branch begins.
    pub base: BaseBranch,
    /// Branch of the agent. If the remote has it, the agent goes on from its tip.
    pub branch: SandboxBranch,
    /// Depth of the history that the agent sees.
    pub depth: CloneDepth,
    /// Author of its commits.
    pub author: AuthorIdentity,
}

/// Repository of an agent, before it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentClone {
    /// Directory of its files.
    pub dir: PathBuf,
    /// Commit that it begins with. The agent's commits must descend from it.
    pub start: ObjectId,
    /// Commit of the branch at the remote: the lease of a later push. `None` if the branch does not exist.
    pub remote_tip: Option<ObjectId>,
}

impl AgentClone {
    /// Makes the repository in `dest`, which is missing or empty. The caller gives it to the agent's user.
    ///
    /// # Errors
    /// [`Error::NoBase`], and if git or the system fails. Then `dest` may hold a part.
    pub async fn make(mirror: &Mirror, dest: &Path, order: &CloneOrder) -> Result<Self, Error> {
        fs::create_dir_all(dest).map_err(Error::io("create", dest))?;
        let dest = fs::canonicalize(dest).map_err(Error::io("resolve", dest))?;
        if fs::read_dir(&dest).map_err(Error::io("list", &dest))?.next().is_some() {
            return Err(Error::io("clone into", &dest)(io::ErrorKind::DirectoryNotEmpty.into()));
        }
        let remote_tip = mirror.sandbox_tip(&order.branch).await?;
        let start = match &remote_tip {
            Some(tip) => tip.clone(),
            None => mirror.base_tip(&order.base).await?,
        };
        let git_dir = dest.join(".git");
        let init = mirror.git().command_outside("init").arguments(["--quiet", "--template="]);
        let init = init.argument(SHA1);
        let init = init.argument(format!("--initial-branch={}", order.branch));
        init.argument(&dest).writes(&dest).output().await?;
        let copy = Copied { reference: &order.branch.reference(), depth: order.depth };
        mirror.copy_to(&git_dir, &start, &copy).await?;
        let reset = mirror.git().command("reset", &git_dir).work_tree(&dest);
        reset.arguments(["--hard", "--quiet", start.as_str(), "--"]).output().await?;
        strip(&git_dir)?;
        order.author.store(&git_dir)?;
        Ok(Self { dir: dest, start, remote_tip })
    }
}

/// Removes what tells of this host.
pub(crate) fn strip(git_dir: &Path) -> Result<(), Error> {
    for name in NEEDLESS {
        remove_dir(&git_dir.join(name))?;
    }
    for name in NEEDLESS_FILES {
        remove_file(&git_dir.join(name))?;
    }
    Ok(())
}

impl AuthorIdentity {
    /// Adds this author to the settings of a new repository.
    fn store(&self, git_dir: &Path) -> Result<(), Error> {
        let path = git_dir.join("config");
        let section = format!("[user]\n\tname = \"{}\"\n\temail = \"{}\"\n", self.name, self.email);
        let mut file = OpenOptions::new().append(true).open(&path).map_err(Error::io("open", &path))?;
        file.write_all(section.as_bytes()).map_err(Error::io("write", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_are_what_settings_can_hold() {
        assert!(AuthorIdentity::new("Sandbox Agent", "agent@example.org").is_ok());
        for name in ["", " ", "a\"b", "a\nb", "a\\", "<a>", &"a".repeat(MAX_AUTHOR + 1)] {
            assert_eq!(AuthorIdentity::new(name, "a@b"), Err(InvalidAuthor), "{name}");
        }
    }
}
