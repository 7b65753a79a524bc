//! A run's workspace on the host: made before the container, mounted into it, removed after it.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use platform_core::{
    id::WorkspaceId,
    name::{SANDBOX_UID, path},
};
use platform_runtime::socket::{self, private_dir};

use crate::conversation::Message;

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

/// A workspace. It stays until [`Workspace::remove`].
#[derive(Debug)]
pub(crate) struct Workspace {
    id: WorkspaceId,
    path: PathBuf,
}

/// Where workspaces are.
#[derive(Debug, Clone)]
pub(crate) struct Workspaces {
    root: PathBuf,
}

impl Workspaces {
    pub(crate) fn open(settings: &platform_runtime::settings::Sandbox) -> Result<Self, Error> {
        Ok(Self { root: settings.workspace_dir.clone() })
    }
    pub(crate) async fn create(&self, id: &WorkspaceId, messages: &[Message]) -> Result<Workspace, Error> {
        Workspace::create(&self.root, id, messages)
    }
    pub(crate) async fn adopt(&self, id: &WorkspaceId) -> Result<Workspace, Error> {
        Ok(Workspace { id: id.clone(), path: self.root.join(id.as_str()) })
    }
    pub(crate) async fn remove(&self, id: &WorkspaceId) -> Result<(), Error> {
        let workspace = Workspace { id: id.clone(), path: self.root.join(id.as_str()) };
        if workspace.path.exists() && !workspace.remove() {
            return Err(io("remove", &self.root)(io::Error::other("stays")));
        }
        Ok(())
    }
    pub(crate) fn room(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Workspace {
    pub(crate) async fn watch(&self) {
        std::future::pending().await
    }
    /// Makes the workspace of `run` below `root`, owned by the sandbox's user, with the conversation in it.
    /// Leaves nothing behind when it fails.
    pub(crate) fn create(root: &Path, run: &WorkspaceId, messages: &[Message]) -> Result<Self, Error> {
        private_root(root)?;
        let workspace = Self { id: run.clone(), path: root.join(run.as_str()) };
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

    pub(crate) const fn id(&self) -> &WorkspaceId {
        &self.id
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
