//! Reads the settings of GitHub, where the relay makes pull requests and gets credentials for repositories.

use std::{net::IpAddr, path::PathBuf};

use platform_core::invalid::InvalidValue;

use super::{BaseUrl, Scheme};
use crate::config::Section;

/// Web and git address of github.com.
const GITHUB_COM: &str = "https://github.com";
/// REST API of github.com.
const API_GITHUB_COM: &str = "https://api.github.com";
/// Ending of the hosts of GitHub Enterprise Cloud with data residency, where the API has its own host.
const RESIDENT: &str = ".ghe.com";
/// Path of the REST API of a GitHub Enterprise Server.
const ENTERPRISE_API: &str = "/api/v3";
/// Most characters of a path.
const MAX_PATH: usize = 100;

/// `[github]`
#[derive(Debug, Clone)]
pub struct GitHub {
    /// Web and git address. A credential belongs to this host alone.
    pub url: ServiceUrl,
    /// Address of the REST API.
    pub api_url: ServiceUrl,
    /// File that holds a token and nothing else; without it the environment may have the token.
    pub token_file: Option<PathBuf>,
    /// The GitHub App that gets its own tokens, if no token is given.
    pub app: Option<GitHubApp>,
}

/// A GitHub App.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHubApp {
    /// Number of the App.
    pub id: u64,
    /// PEM file of its private key.
    pub key_file: PathBuf,
}

/// Address of a service: scheme, host and port, and a path below which it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrl {
    /// Scheme, host and port; the host is in lower case.
    pub base: BaseUrl,
    /// Path without a slash at its end: empty, or one that begins with a slash.
    pub path: String,
}

impl GitHub {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let doc = "Web and git address of GitHub or of a GitHub Enterprise Server. Tokens are sent to this host and to that of `api_url` alone.";
        let url: String = section.field("url", doc).or(GITHUB_COM.to_owned());
        let doc = "Address of the REST API; if absent, `https://api.github.com` for github.com, and `/api/v3` below `url` for a GitHub Enterprise Server.";
        let api_url: Option<String> = section.field("api_url", doc).optional();
        let doc = "File of the token for repositories and pull requests, and nothing else; closed to other users. Without it GITHUB_TOKEN is the token. A token comes before a GitHub App.";
        let token_file = section.field("token_file", doc).optional();
        let doc = "Number of a GitHub App, which gets tokens for one repository and one hour each, if there is no token. Needs `app_key_file`.";
        let app_id = section.field("app_id", doc).optional();
        let doc = "PEM file of the App's private key; closed to other users. Needs `app_id`.";
        let app_key_file = section.field("app_key_file", doc).optional();
        let url = read_url(section, "url", &url);
        let api_url = match api_url {
            Some(api_url) => read_url(section, "api_url", &api_url),
            None => url.as_ref().map(ServiceUrl::default_api),
        };
        let app = read_app(section, app_id, app_key_file);
        match (url, api_url) {
            (Some(url), Some(api_url)) => {
                reject_unfit(section, &url, &api_url);
                Self { url, api_url, token_file, app }
            }
            _ => Self { token_file, app, ..Self::default() },
        }
    }
}

impl Default for GitHub {
    fn default() -> Self {
        let public = |host: &str| ServiceUrl {
            base: BaseUrl { scheme: Scheme::Https, host: host.to_owned(), port: Scheme::Https.port() },
            path: String::new(),
        };
        let [url, api_url] = [GITHUB_COM, API_GITHUB_COM].map(|url| public(host_of(url)));
        Self { url, api_url, token_file: None, app: None }
    }
}

fn host_of(url: &str) -> &str {
    url.trim_start_matches("https://")
}

/// Rejects an API of github.com beside another host, and the reverse: tokens of one would go to the other.
fn reject_unfit(section: &Section<'_>, url: &ServiceUrl, api_url: &ServiceUrl) {
    if !url.path.is_empty() {
        section.reject("url", "it has a path: repositories are directly below the host".to_owned());
    }
    let is_public = url.base.host == host_of(GITHUB_COM);
    let is_public_api = api_url.base.host == host_of(API_GITHUB_COM);
    if is_public != is_public_api {
        let problem = format!(
            "the API at {} does not belong to {}, and would get its tokens: leave `api_url` out, or set both",
            api_url.base.host, url.base.host
        );
        section.reject("api_url", problem);
    }
}

/// Reads the address in a setting; rejects a malformed one, and returns nothing then.
fn read_url(section: &Section<'_>, name: &str, text: &str) -> Option<ServiceUrl> {
    ServiceUrl::parse(text).map_err(|problem| section.reject(name, problem)).ok()
}

/// Returns the App; rejects its number without its key, and the reverse.
fn read_app(section: &Section<'_>, id: Option<u64>, key_file: Option<PathBuf>) -> Option<GitHubApp> {
    match (id, key_file) {
        (Some(id), Some(key_file)) => Some(GitHubApp { id, key_file }),
        (Some(_), None) => {
            section.reject("app_id", "the App signs with its private key: set `app_key_file`".to_owned());
            None
        }
        (None, Some(_)) => {
            section.reject("app_key_file", "the key is that of an App: set `app_id`".to_owned());
            None
        }
        (None, None) => None,
    }
}

impl ServiceUrl {
    /// Parses `https://host[:port][/path]`; also `http://`, which is for this host alone.
    ///
    /// # Errors
    /// A description of the error.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        if text.contains('@') {
            return Err("it has a user or a password; the token goes into github.token_file".into());
        }
        let url = Self::split(text)?;
        let base = BaseUrl { host: url.base.host.to_ascii_lowercase(), ..url.base };
        let url = Self { base, ..url };
        if url.base.scheme == Scheme::Http && !is_loopback(&url.base.host) {
            return Err(format!("tokens would be sent to {} in clear: use https://", url.base.host).into());
        }
        Ok(url)
    }

    /// Parses `http[s]://host[:port][/path]`, also where no token is sent. The host stays as it is written.
    ///
    /// # Errors
    /// A description of the error, without a user or a password.
    pub fn split(text: &str) -> Result<Self, InvalidValue> {
        // Before the text is cut: a password may have a slash.
        BaseUrl::check_user(text)?;
        let start = text.find("://").map_or(0, |at| at + "://".len());
        let end = text[start..].find('/').map_or(text.len(), |at| start + at);
        let base = BaseUrl::parse(&text[..end])?;
        let path = text[end..].trim_end_matches('/');
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        let is_odd = |part: &str| part.is_empty() || part == "." || part == "..";
        if path.len() > MAX_PATH || !path.bytes().all(is_plain) || path.split('/').skip(1).any(is_odd) {
            return Err(format!(
                "its path has more than {MAX_PATH} bytes, a part `..`, or characters other than letters, digits and `-._~/`"
            )
            .into());
        }
        Ok(Self { base, path: path.to_owned() })
    }

    /// Returns scheme and host, and the port unless it is that of the scheme.
    #[must_use]
    pub fn origin(&self) -> String {
        let name = match self.base.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        format!("{name}://{}", self.authority())
    }

    /// Returns the host, and the port unless it is that of the scheme.
    #[must_use]
    pub fn authority(&self) -> String {
        let BaseUrl { scheme, host, port } = &self.base;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        if *port == scheme.port() { host } else { format!("{host}:{port}") }
    }

    /// Returns the address of the API of the GitHub at this address.
    fn default_api(&self) -> Self {
        let at_host =
            |host: String| Self { base: BaseUrl { host, ..self.base.clone() }, path: String::new() };
        match self.base.host.as_str() {
            host if host == host_of(GITHUB_COM) => at_host(host_of(API_GITHUB_COM).to_owned()),
            host if host.ends_with(RESIDENT) => at_host(format!("api.{host}")),
            _ => Self { base: self.base.clone(), path: ENTERPRISE_API.to_owned() },
        }
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{ConfigErrors, Sources},
        settings::Settings,
    };

    fn read(section: &str) -> Result<GitHub, ConfigErrors> {
        let text = format!("[github]\n{section}");
        let sources = Sources { file: Some(("s.toml".into(), text)), ..Sources::default() };
        Settings::read(&sources).map(|settings| settings.github)
    }

    #[test]
    fn the_api_follows_from_the_address() {
        for (section, url, api) in [
            ("", "https://github.com", "https://api.github.com"),
            ("url = 'https://GitHub.com/'", "https://github.com", "https://api.github.com"),
            ("url = 'https://git.example'", "https://git.example", "https://git.example/api/v3"),
            ("url = 'https://team.ghe.com'", "https://team.ghe.com", "https://api.team.ghe.com"),
            (
                "url = 'https://git.example:8443'",
                "https://git.example:8443",
                "https://git.example:8443/api/v3",
            ),
            (
                "url = 'http://127.0.0.1:80'\napi_url = 'http://[::1]:81/x/'",
                "http://127.0.0.1",
                "http://[::1]:81/x",
            ),
        ] {
            let settings = read(section).unwrap();
            assert_eq!(settings.url.origin(), url, "{section}");
            assert_eq!(format!("{}{}", settings.api_url.origin(), settings.api_url.path), api, "{section}");
        }
    }

    #[test]
    fn all_mistakes_of_github_are_reported() {
        let errors = read(
            "url = 'http://git.example'\napi_url = 'https://token@api.github.com'\napp_id = 1\ntoken_file = 1\n",
        );
        let errors = errors.unwrap_err().to_string();
        for problem in ["in clear", "a user or a password", "set `app_key_file`", "token_file"] {
            assert!(errors.contains(problem), "{problem}: {errors}");
        }
        for (section, problem) in [
            ("app_key_file = '/k'", "set `app_id`"),
            ("app_id = 0\napp_key_file = '/k'", "app_id"),
            ("url = 'https://git.example'\napi_url = 'https://api.github.com'", "does not belong"),
            ("api_url = 'https://git.example/api/v3'", "does not belong"),
            ("url = 'https://git.example/team'", "it has a path"),
            ("api_url = 'https://api.github.com/a/../b'", "its path has"),
            ("api_url = 'https://api.github.com/?a'", "its path has"),
            ("url = 'ssh://git.example'", "not a base URL"),
            ("url = 'http://127.0.0.1.example.org'", "in clear"),
        ] {
            let errors = read(section).unwrap_err().to_string();
            assert!(errors.contains(problem), "{section}: {errors}");
        }
    }

    #[test]
    fn a_token_and_an_app_may_both_be_set() {
        let settings = read("token_file = '/t'\napp_id = 7\napp_key_file = '/k'").unwrap();
        assert_eq!(settings.app, Some(GitHubApp { id: 7, key_file: "/k".into() }));
        assert_eq!(settings.token_file, Some("/t".into()));
    }
}
