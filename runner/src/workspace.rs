//! A run's workspace on the host: made before the container, mounted into it, removed after it.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use platform_core::{
    id::RunId,
    name::{SANDBOX_UID, path},
};
use platform_runtime::socket::{self, private_dir};
use serde::Serialize;

/// Why there is no workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A directory cannot be made.
    #[error("cannot make a directory of the workspace")]
    Directory(#[from] socket::Error),
    /// The system said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// One message of the conversation an agent is given.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Message {
    /// `user`, `assistant` or `system`.
    pub(crate) role: &'static str,
    /// The text.
    pub(crate) content: String,
}

/// A workspace. It stays until [`Workspace::remove`].
#[derive(Debug)]
pub(crate) struct Workspace {
    path: PathBuf,
}

impl Workspace {
    /// Makes the workspace of `run` below `root`, owned by the sandbox's user, with the conversation in it.
    /// Leaves nothing behind when it fails.
    pub(crate) fn create(root: &Path, run: &RunId, messages: &[Message]) -> Result<Self, Error> {
        private_root(root)?;
        let workspace = Self { path: root.join(run.as_str()) };
        fs::DirBuilder::new().mode(0o755).create(&workspace.path).map_err(io("make", &workspace.path))?;
        match workspace.fill(messages) {
            Ok(()) => Ok(workspace),
            Err(error) => {
                workspace.remove();
                Err(error)
            }
        }
    }

    fn fill(&self, messages: &[Message]) -> Result<(), Error> {
        let cogni = self.path.join(path::COGNI_DIR);
        let file = cogni.join(path::MESSAGES_FILE);
        private_dir(&cogni, 0o755)?;
        let json = serde_json::to_vec_pretty(messages).map_err(|error| io("write", &file)(error.into()))?;
        fs::write(&file, json).map_err(io("write", &file))?;
        for path in [&self.path, &cogni, &file] {
            chown(path, Some(SANDBOX_UID), Some(SANDBOX_UID))
                .map_err(io("give to the sandbox's user", path))?;
        }
        Ok(())
    }

    /// One that is there already.
    pub(crate) const fn found(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with everything the agent put there; says whether it is gone. Symbolic links are removed, not followed.
    pub(crate) fn remove(self) -> bool {
        // A tree deeper than we may have files open is left to rm, which does not mind.
        let removed = fs::remove_dir_all(&self.path).or_else(|_error| {
            let removed =
                Command::new("rm").args(["-rf", "--one-file-system", "--"]).arg(&self.path).status()?;
            if removed.success() { Ok(()) } else { Err(io::Error::other(format!("rm: {removed}"))) }
        });
        if let Err(error) = &removed {
            tracing::warn!(path = %self.path.display(), %error, "workspace stays behind");
        }
        removed.is_ok()
    }
}

/// The root is ours alone: only this user gets in from the host, the container has each workspace mounted
/// directly. One that is there already is not changed: it may be somebody else's.
fn private_root(root: &Path) -> Result<(), Error> {
    if !root.exists() {
        if let Some(parent) = root.parent() {
            fs::create_dir_all(parent).map_err(io("make", parent))?;
        }
        private_dir(root, 0o700)?;
    }
    let mode = fs::metadata(root).map_err(io("look at", root))?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        let advice = "name a directory of its own in sandbox.workspace_dir, or `chmod 700` it";
        return Err(io("use", root)(io::Error::other(format!(
            "others can enter it (mode {mode:o}): {advice}"
        ))));
    }
    Ok(())
}

fn io<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Error + use<'p> {
    move |source| Error::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn messages() -> [Message; 1] {
        [Message { role: "user", content: "hello \"there\"".to_owned() }]
    }

    #[test]
    fn belongs_to_the_sandboxs_user_and_holds_the_conversation() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("workspaces");
        let workspace = Workspace::create(&root, &RunId::parse("r1").unwrap(), &messages()).unwrap();
        let file = workspace.path().join(".cogni/messages.json");
        for path in [workspace.path(), file.as_path()] {
            let found = fs::metadata(path).unwrap();
            assert_eq!((found.uid(), found.gid()), (1001, 1001), "{}", path.display());
        }
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(json, serde_json::json!([{ "role": "user", "content": "hello \"there\"" }]));
        assert_eq!(fs::metadata(&root).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn removal_does_not_follow_links_out_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "x").unwrap();
        let root = dir.path().join("workspaces");
        let workspace = Workspace::create(&root, &RunId::parse("r1").unwrap(), &messages()).unwrap();
        symlink(&precious, workspace.path().join("link")).unwrap();
        workspace.remove();
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
        assert!(precious.join("file").exists());
    }

    #[test]
    fn a_deep_tree_is_removed_too() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("workspaces");
        let workspace = Workspace::create(&root, &RunId::parse("r1").unwrap(), &messages()).unwrap();
        fs::create_dir_all(workspace.path().join("d/".repeat(1900))).unwrap();
        workspace.remove();
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    }

    #[test]
    fn a_root_that_others_can_enter_is_refused_and_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Workspace::create(dir.path(), &RunId::parse("r1").unwrap(), &messages()).unwrap_err();
        assert!(platform_runtime::report::chain(&refused).contains("chmod 700"), "{refused:?}");
        assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o777, 0o777);
    }

    #[test]
    fn a_run_never_gets_the_workspace_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("workspaces");
        let run = RunId::parse("r1").unwrap();
        let _first = Workspace::create(&root, &run, &messages()).unwrap();
        assert!(Workspace::create(&root, &run, &messages()).is_err());
        assert!(root.join("r1/.cogni/messages.json").exists(), "the first one is untouched");
    }
}
