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

/// Token for a repository and a use.
type TokenKey = (RepositoryName, Permission);
/// Place of a token, which one task fills at a time.
type TokenCell = Arc<tokio::sync::Mutex<Option<InstallationToken>>>;

/// Source of a GitHub App's tokens.
#[derive(Debug)]
pub(crate) struct AppTokens {
    id: u64,
    key_file: PathBuf,
    cells: Mutex<HashMap<TokenKey, TokenCell>>,
}

/// Token of an installation.
#[derive(Debug)]
struct InstallationToken {
    token: Arc<Secret>,
    expires: SystemTime,
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
        let tokens = Self { id: app.id, key_file: app.key_file.clone(), cells: Mutex::default() };
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
        let cell = self.cell(repository, permission);
        let mut held = cell.lock().await;
        let is_fresh = |held: &&InstallationToken| held.expires > SystemTime::now() + REFRESH_GRACE;
        if let Some(held) = held.as_ref().filter(is_fresh) {
            return Ok(Arc::clone(&held.token));
        }
        *held = None;
        let minted = self.mint(client, repository, permission).await?;
        let token = Arc::clone(&minted.token);
        *held = Some(minted);
        Ok(token)
    }

    /// Forgets a token, and returns whether there was one.
    pub(crate) async fn forget(&self, repository: &RepositoryName, permission: Permission) -> bool {
        self.cell(repository, permission).lock().await.take().is_some()
    }

    fn cell(&self, repository: &RepositoryName, permission: Permission) -> TokenCell {
        let mut cells = self.cells.lock();
        if cells.len() >= MAX_TOKENS {
            cells.retain(|_, cell| Arc::strong_count(cell) > 1);
        }
        Arc::clone(cells.entry((repository.clone(), permission)).or_default())
    }

    async fn mint(
        &self,
        client: &RestClient,
        repository: &RepositoryName,
        permission: Permission,
    ) -> Result<InstallationToken, Error> {
        let claim = self.claim(SystemTime::now())?;
        let find = ApiCall {
            action: "find the App's installation on the repository",
            method: Method::GET,
            path: format!("{}/installation", repository.api_path()),
            bearer: &claim,
            redirects: Redirects::Follow,
            body: None,
        };
        let installation: InstallationBody = client.call(&find).await?;
        let mint = ApiCall {
            action: "get a token of the App's installation",
            method: Method::POST,
            path: format!("/app/installations/{}/access_tokens", installation.id),
            bearer: &claim,
            redirects: Redirects::Follow,
            body: Some(json!({
                "repositories": [repository.name()],
                "permissions": permission.scopes(),
            })),
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

    /// Reads the key from its file, which may have been replaced.
    fn key(&self) -> Result<RsaKeyPair, Error> {
        let text = file::secret(&self.key_file, MAX_KEY_FILE, &Trusted::own()).map_err(|source| {
            Error::SecretFile { setting: KEY_SETTING, path: self.key_file.clone(), source }
        })?;
        let key = PrivateKeyDer::from_pem_slice(text.expose().as_bytes());
        let pair = match key.map_err(|_error| bad_key("has no private key in PEM"))? {
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
            PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
            _ => return Err(bad_key("has no RSA key, which a GitHub App has")),
        };
        pair.map_err(|_rejected| bad_key("has no RSA key of at least 2048 bits"))
    }
}

const fn bad_key(problem: &'static str) -> Error {
    Error::BadSecret { setting: KEY_SETTING, problem }
}
