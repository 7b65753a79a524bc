//! Opens GitHub for the relays of this process, when the first one needs it.

use std::sync::Arc;

use platform_core::secret::Secret;
use platform_runtime::{settings, sync::Mutex};
use runner_github::{CredentialSource, Error};

/// GitHub, as the configuration names it.
#[derive(Debug)]
pub struct GitHubAccess {
    settings: settings::GitHub,
    /// Value of `GITHUB_TOKEN`.
    environment_token: Option<Arc<Secret>>,
    /// The source once it was opened: an App's tokens are shared by all relays.
    source: Mutex<Option<Arc<CredentialSource>>>,
}

impl GitHubAccess {
    /// Creates the access that `settings` name. `environment_token` is the value of `GITHUB_TOKEN`. Reads no file.
    #[must_use]
    pub fn new(settings: &settings::GitHub, environment_token: Option<Arc<Secret>>) -> Self {
        Self { settings: settings.clone(), environment_token, source: Mutex::default() }
    }

    /// Returns the source of credentials.
    ///
    /// # Errors
    /// If a secret cannot be read. The next call tries again.
    pub fn source(&self) -> Result<Arc<CredentialSource>, Error> {
        let mut opened = self.source.lock();
        if let Some(source) = &*opened {
            return Ok(Arc::clone(source));
        }
        let source = Arc::new(CredentialSource::open(&self.settings, self.environment_token.clone())?);
        *opened = Some(Arc::clone(&source));
        Ok(source)
    }

    /// Checks that a credential is configured: without one the commits of a run would reach no pull request.
    ///
    /// # Errors
    /// If no credential is configured, or a secret cannot be read.
    pub fn check_credential(&self) -> Result<(), Error> {
        self.source()?.check_configured()
    }

    /// Returns where the credential comes from, in words; `None` without one. A token comes before an App.
    #[must_use]
    pub fn origin(&self) -> Option<&'static str> {
        match (&self.settings.token_file, &self.environment_token, &self.settings.app) {
            (Some(_), _, _) => Some("the token of github.token_file"),
            (None, Some(_), _) => Some("the token of GITHUB_TOKEN"),
            (None, None, Some(_)) => Some("the GitHub App of github.app_id"),
            (None, None, None) => None,
        }
    }

    /// Returns the settings.
    #[must_use]
    pub const fn settings(&self) -> &settings::GitHub {
        &self.settings
    }
}
