//! app gets tokens of a GitHub App: each for one repository, with the least permissions, for an hour.
//!
//! The App signs a claim with its private key. For that GitHub gives a token of the App's installation on a repository.
//! A token is kept until shortly before its end. Requests for the same token wait for one another.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::Method;
use platform_core::{limit::ByteSize, secret::Secret};
use platform_runtime::{file, settings::GitHubApp, sync::Mutex, trust::Trusted};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use serde::Deserialize;
use serde_json::json;

use crate::{
    error::Error,
    permission::Permission,
    repository::RepositoryName,
    rest::{ApiCall, Redirects, RestClient},
};

/// Setting that names the file of the key.
const KEY_SETTING: &str = "github.app_key_file";
/// Largest file of a key.
const MAX_KEY_FILE: ByteSize = ByteSize::kib(64);
/// Time before now at which a claim begins: GitHub's clock may be behind.
const CLAIM_GRACE: Duration = Duration::from_secs(60);
/// Time from now until a claim ends. GitHub takes claims of at most ten minutes.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(540);
/// Time before its end at which a token is replaced: a push with it takes minutes.
const REFRESH_GRACE: Duration = Duration::from_secs(300);
/// Most tokens that are kept.
const MAX_TOKENS: usize = 1024;

/// Use of a token: a permission on a repository; all that the installation has if absent.
type TokenKey = Option<(RepositoryName, Permission)>;
/// Place of a token, which one task fills at a time.
type TokenCell = Arc<tokio::sync::Mutex<Option<InstallationToken>>>;

/// Source of a GitHub App's tokens.
#[derive(Debug)]
pub(crate) struct AppTokens {
    id: u64,
    key: AppKey,
    /// Installation of the App; if absent, the one on a repository is found.
    installation: Option<u64>,
    cells: Mutex<HashMap<TokenKey, TokenCell>>,
}

/// Private key of an App.
#[derive(Debug)]
enum AppKey {
    File(PathBuf),
    Held(Secret),
}

/// Token of an installation.
#[derive(Debug, Clone)]
pub struct InstallationToken {
    /// The token.
    pub token: Arc<Secret>,
    /// End of the token.
    pub expires: SystemTime,
}

/// Installation of the App on a repository, as the API has it.
#[derive(Deserialize)]
struct InstallationBody {
    id: u64,
}

/// Token of an installation, as the API has it.
#[derive(Deserialize)]
struct TokenBody {
    token: String,
    expires_at: String,
}

impl AppTokens {
    /// Creates a source of tokens, after a look at the App's key.
    ///
    /// # Errors
    /// If the key cannot be read or used.
    pub(crate) fn open(app: &GitHubApp) -> Result<Self, Error> {
        Self::checked(app.id, AppKey::File(app.key_file.clone()), None)
    }

    /// Creates a source of tokens of one installation, after a look at the App's `key`, in PEM.
    ///
    /// # Errors
    /// If the key cannot be used.
    pub(crate) fn of_installation(app_id: u64, installation_id: u64, key: Secret) -> Result<Self, Error> {
        Self::checked(app_id, AppKey::Held(key), Some(installation_id))
    }

    fn checked(id: u64, key: AppKey, installation: Option<u64>) -> Result<Self, Error> {
        let tokens = Self { id, key, installation, cells: Mutex::default() };
        tokens.key()?;
        Ok(tokens)
    }

    /// Returns a token for `repository` that lives for some minutes at least.
    pub(crate) async fn token(
        &self,
        client: &RestClient,
        repository: &RepositoryName,
        permission: Permission,
    ) -> Result<Arc<Secret>, Error> {
        let held = self.held(client, Some((repository.clone(), permission))).await?;
        Ok(held.token)
    }

    /// Returns a token for all that the installation has, if the source is for one installation.
    pub(crate) async fn installation_token(&self, client: &RestClient) -> Result<InstallationToken, Error> {
        self.held(client, None).await
    }

    async fn held(&self, client: &RestClient, key: TokenKey) -> Result<InstallationToken, Error> {
        let cell = self.cell(key.clone());
        let mut held = cell.lock().await;
        let is_fresh = |held: &&InstallationToken| held.expires > SystemTime::now() + REFRESH_GRACE;
        if let Some(held) = held.as_ref().filter(is_fresh) {
            return Ok(held.clone());
        }
        *held = None;
        let minted = self.mint(client, key.as_ref()).await?;
        *held = Some(minted.clone());
        Ok(minted)
    }

    /// Forgets a token, and returns whether there was one.
    pub(crate) async fn forget(&self, repository: &RepositoryName, permission: Permission) -> bool {
        self.cell(Some((repository.clone(), permission))).lock().await.take().is_some()
    }

    fn cell(&self, key: TokenKey) -> TokenCell {
        let mut cells = self.cells.lock();
        if cells.len() >= MAX_TOKENS {
            cells.retain(|_, cell| Arc::strong_count(cell) > 1);
        }
        Arc::clone(cells.entry(key).or_default())
    }

    async fn mint(
        &self,
        client: &RestClient,
        key: Option<&(RepositoryName, Permission)>,
    ) -> Result<InstallationToken, Error> {
        let claim = self.claim(SystemTime::now())?;
        let installation = match (self.installation, key) {
            (Some(installation), _) => installation,
            (None, Some((repository, _))) => find_installation(client, repository, &claim).await?,
            (None, None) => return Err(Error::NoInstallation),
        };
        let restriction = key.map(|(repository, permission)| {
            json!({ "repositories": [repository.name()], "permissions": permission.scopes() })
        });
        let mint = ApiCall {
            action: "get a token of the App's installation",
            method: Method::POST,
            path: format!("/app/installations/{installation}/access_tokens"),
            bearer: &claim,
            redirects: Redirects::Follow,
            body: Some(restriction.unwrap_or_else(|| json!({}))),
        };
        let minted: TokenBody = client.call(&mint).await?;
        let no_time = |_error| client.unexpected(&mint, "has a token without an end");
        let expires = humantime::parse_rfc3339(&minted.expires_at).map_err(no_time)?;
        Ok(InstallationToken { token: Arc::new(Secret::new(minted.token)), expires })
    }

    /// Returns a signed claim to be the App: a JSON Web Token.
    fn claim(&self, now: SystemTime) -> Result<Secret, Error> {
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let header = json!({ "alg": "RS256", "typ": "JWT" });
        let claims = json!({
            "iat": seconds(now - CLAIM_GRACE),
            "exp": seconds(now + CLAIM_TIMEOUT),
            "iss": self.id.to_string(),
        });
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let signed = [header, claims].map(|part| encode(part.to_string().as_bytes())).join(".");
        let key = self.key()?;
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_unspecified| bad_key("cannot sign"))?;
        Ok(Secret::new(format!("{signed}.{}", encode(&signature))))
    }

    /// Returns the key. That in a file may have been replaced.
    fn key(&self) -> Result<RsaKeyPair, Error> {
        match &self.key {
            AppKey::Held(text) => parse_key(text),
            AppKey::File(path) => {
                let unread = |source| Error::SecretFile { setting: KEY_SETTING, path: path.clone(), source };
                parse_key(&file::secret(path, MAX_KEY_FILE, &Trusted::own()).map_err(unread)?)
            }
        }
    }
}

async fn find_installation(
    client: &RestClient,
    repository: &RepositoryName,
    claim: &Secret,
) -> Result<u64, Error> {
    let find = ApiCall {
        action: "find the App's installation on the repository",
        method: Method::GET,
        path: format!("{}/installation", repository.api_path()),
        bearer: claim,
        redirects: Redirects::Follow,
        body: None,
    };
    let InstallationBody { id } = client.call(&find).await?;
    Ok(id)
}

fn parse_key(text: &Secret) -> Result<RsaKeyPair, Error> {
    let key = PrivateKeyDer::from_pem_slice(text.expose().as_bytes());
    let pair = match key.map_err(|_error| bad_key("has no private key in PEM"))? {
        PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
        _ => return Err(bad_key("has no RSA key, which a GitHub App has")),
    };
    pair.map_err(|_rejected| bad_key("has no RSA key of at least 2048 bits"))
}

const fn bad_key(problem: &'static str) -> Error {
    Error::BadSecret { setting: KEY_SETTING, problem }
}
