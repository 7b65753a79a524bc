//! add adds a repository, and waits for its first fetch.

use platform_core::id::RepoName;

use crate::{entry::RepoEntry, error::Error, refresh::RefreshOutcome, repos::Repos, token_file};

impl Repos {
    /// Adds a repository, and starts to mirror it. A failed call may be repeated.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::TokenFile`], and if the image is missing: then the repository is not added. After
    /// [`Error::SyncFailed`] it is, and `git-sync` tries again.
    pub async fn add(&self, name: &RepoName, entry: &RepoEntry) -> Result<RefreshOutcome, Error> {
        // A missing image or an unsuitable token is known before the entry is kept.
        entry.token_file.as_deref().map(token_file::check).transpose()?;
        self.spec(name, entry).await?;
        self.registry().insert(name, entry)?;
        self.refresh(name).await
    }
}
