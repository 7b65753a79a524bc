//! Reads the settings of connections: the key that seals them, and the OAuth providers that refresh them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use platform_core::{connection::ConnectionProvider, invalid::InvalidValue, limit::Millis, name};
use serde::{Deserialize, Serialize};

use super::{SectionName, ServiceUrl};
use crate::config::{Section, written_as_word};

/// Time before its end at which a credential is refreshed.
const REFRESH_BEFORE: Millis = Millis::seconds(300);
/// Longest wait for a provider.
const REFRESH_TIMEOUT: Millis = Millis::seconds(10);
const KEY_FILE: &str = "key_file";
/// Name of the entry from which the schema is built.
const EXAMPLE: &str = "*";
/// Most of both: tools end after half a minute, and few credentials live for more than an hour.
const MAX_REFRESH_BEFORE: Millis = Millis::seconds(3600);
const MAX_REFRESH_TIMEOUT: Millis = Millis::seconds(25);

/// `[connections]`
#[derive(Debug, Clone)]
pub struct ConnectionSettings {
    /// File of the keys that seal connections; without it there are none.
    pub key_file: Option<KeyFile>,
    /// Time before its end at which a credential is refreshed.
    pub refresh_before: Millis,
    /// Longest wait for a provider.
    pub refresh_timeout: Millis,
    /// Providers that refresh by OAuth 2.
    pub providers: BTreeMap<ConnectionProvider, OAuthProvider>,
}

/// File of sealing keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFile {
    /// A path.
    Path(PathBuf),
    /// A credential that systemd gives the unit.
    Credential {
        /// Name of the credential.
        name: String,
        /// Directory of the unit's credentials; absent outside such a unit.
        directory: Option<PathBuf>,
    },
}

/// `[connections.providers.NAME]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthProvider {
    /// Address that gives tokens. Refresh tokens and the client's secret are sent there alone.
    pub token_url: ServiceUrl,
    /// Id of this client at the provider.
    pub client_id: String,
    /// File of this client's secret; absent for a public client.
    pub client_secret_file: Option<PathBuf>,
    /// Way in which the secret is sent.
    pub client_authentication: ClientAuthentication,
}

/// Way in which a client proves itself to an OAuth provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuthentication {
    /// The header `Authorization: Basic`.
    Basic,
    /// The field `client_secret` of the body.
    Body,
}

written_as_word!(ClientAuthentication { Basic: "basic", Body: "body" });

impl ConnectionSettings {
    pub(super) fn read(root: &Section<'_>) -> Self {
        let doc = "Connections: credentials of accounts at providers, which host tools use.";
        root.section(SectionName::Connections.name(), doc, Self::section)
    }

    fn section(section: &Section<'_>) -> Self {
        let doc = "File with the keys that seal connections, one a line, as `sluice connections keygen` prints them; the first seals, all open. Closed to other users. A name without `/` is that of a credential in CREDENTIALS_DIRECTORY. No connections if absent.";
        let key_file: Option<String> = section.field(KEY_FILE, doc).optional();
        let directory = section.variable(name::env::CREDENTIALS_DIRECTORY).map(PathBuf::from);
        let key_file = key_file.and_then(|text| {
            KeyFile::parse(&text, directory).map_err(|problem| section.reject(KEY_FILE, problem)).ok()
        });
        let doc = "Time before its end at which a credential is refreshed.";
        let refresh_before =
            section.field("refresh_before", doc).at_most(&MAX_REFRESH_BEFORE).or(REFRESH_BEFORE);
        let doc = "Longest wait for a provider that refreshes a credential.";
        let refresh_timeout =
            section.field("refresh_timeout", doc).at_most(&MAX_REFRESH_TIMEOUT).or(REFRESH_TIMEOUT);
        let doc = "Providers that refresh credentials by OAuth 2. The table's name is the provider of the connection.";
        let providers = section.each("providers", doc, read_provider);
        Self {
            key_file,
            refresh_before,
            refresh_timeout,
            providers: providers.into_iter().flatten().collect(),
        }
    }
}

impl KeyFile {
    fn parse(text: &str, directory: Option<PathBuf>) -> Result<Self, InvalidValue> {
        if Path::new(text).is_absolute() {
            Ok(Self::Path(text.into()))
        } else if text.is_empty() || text.contains('/') {
            Err(format!("expected an absolute path, or the name of a credential, found `{text}`").into())
        } else {
            Ok(Self::Credential { name: text.to_owned(), directory })
        }
    }

    /// Returns the path of the file.
    ///
    /// # Errors
    /// The name of the credential, if systemd gives this process none.
    pub fn path(&self) -> Result<PathBuf, &str> {
        match self {
            Self::Path(path) => Ok(path.clone()),
            Self::Credential { name, directory } => {
                directory.as_deref().map(|directory: &Path| directory.join(name)).ok_or(name)
            }
        }
    }
}

fn read_provider(name: &str, section: &Section<'_>) -> Option<(ConnectionProvider, OAuthProvider)> {
    const TOKEN_URL: &str = "token_url";
    const CLIENT_ID: &str = "client_id";
    let doc = "Address that gives tokens, `https://`. Refresh tokens are sent there alone; a redirect is not followed.";
    let token_url: Option<String> = section.field(TOKEN_URL, doc).optional();
    let client_id: Option<String> = section.field(CLIENT_ID, "Id of this client at the provider.").optional();
    let doc =
        "File of this client's secret, and nothing else; closed to other users. None for a public client.";
    let client_secret_file = section.field("client_secret_file", doc).optional();
    let doc = "Way in which the secret is sent: `basic` or `body`.";
    let client_authentication = section.field("client_authentication", doc).or(ClientAuthentication::Basic);
    // The schema is built from an empty entry of this name.
    if name == EXAMPLE && !section.has(TOKEN_URL) {
        return None;
    }
    let provider = ConnectionProvider::parse(name);
    let provider = provider.map_err(|error| section.reject_itself(error.to_string())).ok();
    let missing = |name: &str| section.reject_itself(format!("it has no `{name}`, which a refresh needs"));
    if token_url.is_none() {
        missing(TOKEN_URL);
    }
    let token_url = token_url
        .and_then(|text| parse_url(&text).map_err(|problem| section.reject(TOKEN_URL, problem)).ok());
    let is_plain = |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if client_id.is_none() {
        missing(CLIENT_ID);
    } else if !client_id.as_ref().is_some_and(is_plain) {
        section.reject(CLIENT_ID, "it has other characters than visible ASCII ones".to_owned());
    }
    let client_id = client_id.filter(is_plain);
    Some((
        provider?,
        OAuthProvider {
            token_url: token_url?,
            client_id: client_id?,
            client_secret_file,
            client_authentication,
        },
    ))
}

fn parse_url(text: &str) -> Result<ServiceUrl, InvalidValue> {
    if text.contains('@') {
        return Err("it has a user or a password: the client's secret goes into client_secret_file".into());
    }
    ServiceUrl::parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{ConfigErrors, Environment, Sources},
        settings::Settings,
    };

    fn read(text: &str, environment: Environment) -> Result<ConnectionSettings, ConfigErrors> {
        let file = Some(("s.toml".into(), text.to_owned()));
        let settings = Settings::read(&Sources { file, environment, ..Sources::default() });
        settings.map(|settings| settings.connections)
    }

    #[test]
    fn a_key_file_is_a_path_or_a_credential() {
        let unit = || Environment::from([("CREDENTIALS_DIRECTORY", "/run/credentials/sluice.service")]);
        for (file, environment, path) in [
            ("/etc/k", unit(), Ok("/etc/k")),
            ("k", unit(), Ok("/run/credentials/sluice.service/k")),
            ("k", Environment::default(), Err("k")),
        ] {
            let settings = read(&format!("[connections]\nkey_file = '{file}'"), environment).unwrap();
            let found = settings.key_file.unwrap();
            let found = found.path();
            assert_eq!(found.as_deref().map_err(|name| *name), path.map(Path::new), "{file}");
        }
        let relative = read("[connections]\nkey_file = './k'", unit()).unwrap_err().to_string();
        assert!(relative.contains("absolute path"), "{relative}");
        assert_eq!(read("", unit()).unwrap().key_file, None, "a file without the section is complete");
    }

    #[test]
    fn all_mistakes_of_a_provider_are_reported() {
        let good = "[connections.providers.linear]\ntoken_url = 'https://api.linear.example/oauth/token'\nclient_id = 'a'\n";
        let settings = read(good, Environment::default()).unwrap();
        let provider = settings.providers.values().next().unwrap();
        assert_eq!(provider.token_url.path, "/oauth/token");
        assert_eq!(provider.client_authentication, ClientAuthentication::Basic);
        for (section, problem) in [
            ("[connections.providers.x]", "no `token_url`"),
            ("[connections.providers.x]\ntoken_url = 'https://a.example'", "no `client_id`"),
            ("[connections.providers.x]\ntoken_url = 'http://a.example'\nclient_id = 'a'", "in clear"),
            (
                "[connections.providers.x]\ntoken_url = 'https://u:p@a.example'\nclient_id = 'a'",
                "client_secret_file",
            ),
            (
                "[connections.providers.x]\ntoken_url = 'https://a.example'\nclient_id = \"a\\nb\"",
                "visible ASCII",
            ),
            ("[connections.providers.X]\ntoken_url = 'https://a.example'\nclient_id = 'a'", "not a provider"),
            ("[connections]\nrefresh_timeout = '26s'", "refresh_timeout"),
            ("[connections]\nrefresh_timeout = '0s'", "refresh_timeout"),
        ] {
            let errors = read(section, Environment::default()).unwrap_err().to_string();
            assert!(errors.contains(problem), "{section}: {errors}");
        }
        assert!(
            read(
                "[connections.providers.x]\ntoken_url = 'http://127.0.0.1:1/t'\nclient_id = 'a'",
                Environment::default()
            )
            .is_ok()
        );
    }
}
