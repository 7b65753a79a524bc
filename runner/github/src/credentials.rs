//! credentials returns the credential of a repository: a configured token, or one that a GitHub App gets.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Method;
use platform_core::{limit::ByteSize, name::env::GITHUB_TOKEN, secret::Secret};
use platform_outbound::Dialer;
use platform_runtime::{
    file,
    settings::{GitHub, ServiceUrl},
    trust::Trusted,
};

use runner_git::RepoUrl;

use crate::{
    app::{AppTokens, InstallationToken},
    error::Error,
    permission::Permission,
    repository::{InvalidRepositoryName, RepositoryName},
    rest::{ANSWER_TIMEOUT, ApiCall, Redirects, RestClient},
};

/// User of git with any token of GitHub.
const USER: &str = "x-access-token";
/// Setting that names the file of the token.
const TOKEN_SETTING: &str = "github.token_file";
/// Name of an account's own token.
const ACCOUNTS_TOKEN: &str = "the token of the account's connection";
/// Largest file of a token.
const MAX_TOKEN_FILE: ByteSize = ByteSize(4096);

/// Credential for git at GitHub's host.
#[derive(Debug, Clone)]
pub struct GitCredential {
    /// Name of the user.
    pub user: &'static str,
    /// Token, which is the password.
    pub token: Arc<Secret>,
}

/// Source of credentials for the repositories of one GitHub.
#[derive(Debug)]
pub struct CredentialSource {
    url: ServiceUrl,
    client: RestClient,
    tokens: TokenSource,
}

/// An account's own credential.
#[derive(Debug)]
pub enum AccountCredential {
    /// A token.
    Token(Arc<Secret>),
    /// An installation of a GitHub App.
    Installation {
        /// Number of the App.
        app_id: u64,
        /// Number of the installation.
        installation_id: u64,
        /// Private key of the App, in PEM.
        key: Secret,
    },
}

/// Origin of tokens.
#[derive(Debug)]
enum TokenSource {
    None,
    /// The environment.
    Fixed(Arc<Secret>),
    /// A file, which is read each time: it may be replaced.
    File(PathBuf),
    App(AppTokens),
}

impl CredentialSource {
    /// Opens the source that `settings` name, after a look at its secret. A token comes before an App, and that of a
    /// file before `environment_token`, the value of `GITHUB_TOKEN`.
    ///
    /// # Errors
    /// If the secret cannot be read or used, or this system trusts no certificates.
    pub fn open(settings: &GitHub, environment_token: Option<Arc<Secret>>) -> Result<Self, Error> {
        let tokens = match (&settings.token_file, environment_token, &settings.app) {
            (Some(path), _, _) => {
                read_token(path)?;
                TokenSource::File(path.clone())
            }
            (None, Some(token), _) => TokenSource::Fixed(Arc::new(checked(GITHUB_TOKEN, &token)?)),
            (None, None, Some(app)) => TokenSource::App(AppTokens::open(app)?),
            (None, None, None) => TokenSource::None,
        };
        Self::at(settings, tokens)
    }

    /// Creates the source of an account, for the GitHub of `settings`.
    ///
    /// # Errors
    /// If the credential cannot be used, or this system trusts no certificates.
    pub fn of_account(settings: &GitHub, credential: AccountCredential) -> Result<Self, Error> {
        let tokens = match credential {
            AccountCredential::Token(token) => TokenSource::Fixed(Arc::new(checked(ACCOUNTS_TOKEN, &token)?)),
            AccountCredential::Installation { app_id, installation_id, key } => {
                TokenSource::App(AppTokens::of_installation(app_id, installation_id, key)?)
            }
        };
        Self::at(settings, tokens)
    }

    fn at(settings: &GitHub, tokens: TokenSource) -> Result<Self, Error> {
        let client = RestClient {
            api: settings.api_url.clone(),
            dialer: Dialer::to(&settings.api_url.base).map_err(|_error| Error::NoRoots)?,
            answer_timeout: ANSWER_TIMEOUT,
        };
        Ok(Self { url: settings.url.clone(), client, tokens })
    }

    /// Returns a token for all that an account's installation of a GitHub App has. Cancel safe.
    ///
    /// # Errors
    /// If GitHub gives none, or the source is for no installation.
    pub async fn installation_token(&self) -> Result<InstallationToken, Error> {
        match &self.tokens {
            TokenSource::App(app) => app.installation_token(&self.client).await,
            _ => Err(Error::NoInstallation),
        }
    }

    /// Asks the API whether it takes the credential. Returns the end of the token, if there is one.
    ///
    /// # Errors
    /// If the credential is missing, or the API does not take it.
    pub async fn check(&self) -> Result<Option<SystemTime>, Error> {
        let no_credential = || Error::NoCredential { host: self.url.origin() };
        let (token, expires) = match &self.tokens {
            TokenSource::None => return Err(no_credential()),
            TokenSource::Fixed(token) => (Arc::clone(token), None),
            TokenSource::File(path) => (Arc::new(read_token(path)?), None),
            TokenSource::App(app) => {
                let InstallationToken { token, expires } = app.installation_token(&self.client).await?;
                (token, Some(expires))
            }
        };
        // It takes every kind of token, and refuses one that is not valid.
        let call = ApiCall {
            action: "use the credential",
            method: Method::GET,
            path: "/rate_limit".to_owned(),
            bearer: &token,
            redirects: Redirects::Refuse,
            body: None,
        };
        let _limits: serde_json::Value = self.client.call(&call).await?;
        Ok(expires)
    }

    /// Checks that a credential is configured, and that its file can be read now. Does not ask GitHub whether it is valid.
    ///
    /// # Errors
    /// [`Error::NoCredential`], and those of a file that cannot be used.
    pub fn check_configured(&self) -> Result<(), Error> {
        match &self.tokens {
            TokenSource::None => Err(Error::NoCredential { host: self.url.origin() }),
            TokenSource::File(path) => read_token(path).map(drop),
            TokenSource::Fixed(_) | TokenSource::App(_) => Ok(()),
        }
    }

    /// Limits the time of each request to the API.
    #[must_use]
    pub fn with_answer_timeout(mut self, answer_timeout: Duration) -> Self {
        self.client.answer_timeout = answer_timeout;
        self
    }

    /// Returns the repository at an address; none if it is on another host.
    ///
    /// # Errors
    /// If this GitHub has no repository with such an address.
    pub fn repository(&self, url: &RepoUrl) -> Result<Option<RepositoryName>, InvalidRepositoryName> {
        RepositoryName::on(&self.url, url)
    }

    /// Returns the credential for `permission` on `repository`; none if the repository is on another host, or no
    /// credential is configured. Cancel safe.
    ///
    /// # Errors
    /// If a secret cannot be read, or GitHub gives the App no token.
    pub async fn token_for(
        &self,
        repository: &RepositoryName,
        permission: Permission,
    ) -> Result<Option<GitCredential>, Error> {
        if !repository.is_at(&self.url) {
            return Ok(None);
        }
        let token = match &self.tokens {
            TokenSource::None => return Ok(None),
            TokenSource::Fixed(token) => Arc::clone(token),
            TokenSource::File(path) => Arc::new(read_token(path)?),
            TokenSource::App(app) => app.token(&self.client, repository, permission).await?,
        };
        Ok(Some(GitCredential { user: USER, token }))
    }

    /// Forgets the token of an App that GitHub did not accept. Returns whether the next one is another one.
    pub async fn forget(&self, repository: &RepositoryName, permission: Permission) -> bool {
        match &self.tokens {
            TokenSource::App(app) => app.forget(repository, permission).await,
            _ => false,
        }
    }

    /// Returns the credential with which a pull request is made.
    pub(crate) async fn for_pull_request(&self, repository: &RepositoryName) -> Result<GitCredential, Error> {
        self.required(repository, Permission::Push).await
    }

    /// Returns the credential for `permission` on `repository`; an error if it is missing.
    pub(crate) async fn required(
        &self,
        repository: &RepositoryName,
        permission: Permission,
    ) -> Result<GitCredential, Error> {
        let host = self.url.origin();
        if !repository.is_at(&self.url) {
            return Err(Error::OtherHost { repository: repository.to_string(), host });
        }
        let credential = self.token_for(repository, permission).await?;
        credential.ok_or(Error::NoCredential { host })
    }

    pub(crate) const fn client(&self) -> &RestClient {
        &self.client
    }
}

fn read_token(path: &Path) -> Result<Secret, Error> {
    let unread = |source| Error::SecretFile { setting: TOKEN_SETTING, path: path.to_owned(), source };
    let text = file::secret(path, MAX_TOKEN_FILE, &Trusted::own()).map_err(unread)?;
    checked(TOKEN_SETTING, &text)
}

/// Returns a secret without the blanks around it.
fn checked(setting: &'static str, secret: &Secret) -> Result<Secret, Error> {
    let text = secret.expose().trim();
    let problem = match text {
        "" => "is empty",
        text if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            "is not a token: it has other characters than a token"
        }
        text => return Ok(Secret::new(text.to_owned())),
    };
    Err(Error::BadSecret { setting, problem })
}
