//! Reads the requests to the API.

use std::collections::BTreeMap;

use hyper::http::request;
use serde_json::Value;

/// Path of the API.
const API_PATH: &str = "/api/v3";

/// Route of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GitHubRoute {
    /// `GET /repos/{owner}/{repo}/installation`
    Installation,
    /// `POST /app/installations/{id}/access_tokens`
    Token,
    /// `GET /repos/{owner}/{repo}/pulls`
    FindPulls,
    /// `POST /repos/{owner}/{repo}/pulls`
    MakePull,
    /// `POST /repos/{owner}/{repo}/issues/{number}/labels`
    Label,
    /// `GET /repos/{owner}/{repo}/pulls/{number}`
    ReadPull,
    /// `GET /repos/{owner}/{repo}/issues`
    ListIssues,
    /// `GET /repos/{owner}/{repo}/issues/{number}`
    ReadIssue,
    /// `GET /repos/{owner}/{repo}/issues/{number}/comments`
    ListComments,
    /// `POST /repos/{owner}/{repo}/issues/{number}/comments`
    Comment,
    /// `GET /search/issues`
    SearchIssues,
    /// `GET /rate_limit`
    RateLimit,
}

/// Request to the API.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) route: Option<GitHubRoute>,
    pub(super) method: String,
    /// Path below the API.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
}

impl Asked {
    pub(super) fn read(parts: &request::Parts, body: &[u8]) -> Self {
        let path = parts.uri.path();
        let below = path.strip_prefix(API_PATH);
        let method = parts.method.to_string();
        let segments: Vec<&str> = below.unwrap_or_default().split('/').skip(1).collect();
        let route = match (method.as_str(), segments.as_slice()) {
            ("GET", ["repos", _, _, "installation"]) => Some(GitHubRoute::Installation),
            ("POST", ["app", "installations", _, "access_tokens"]) => Some(GitHubRoute::Token),
            ("GET", ["repos", _, _, "pulls"]) => Some(GitHubRoute::FindPulls),
            ("POST", ["repos", _, _, "pulls"]) => Some(GitHubRoute::MakePull),
            ("POST", ["repos", _, _, "issues", _, "labels"]) => Some(GitHubRoute::Label),
            ("GET", ["repos", _, _, "pulls", _]) => Some(GitHubRoute::ReadPull),
            ("GET", ["repos", _, _, "issues"]) => Some(GitHubRoute::ListIssues),
            ("GET", ["repos", _, _, "issues", _]) => Some(GitHubRoute::ReadIssue),
            ("GET", ["repos", _, _, "issues", _, "comments"]) => Some(GitHubRoute::ListComments),
            ("POST", ["repos", _, _, "issues", _, "comments"]) => Some(GitHubRoute::Comment),
            ("GET", ["search", "issues"]) => Some(GitHubRoute::SearchIssues),
            ("GET", ["rate_limit"]) => Some(GitHubRoute::RateLimit),
            _ => None,
        };
        let headers = parts.headers.iter();
        let headers = headers
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        Self {
            route,
            method,
            path: below.unwrap_or(path).to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: headers.collect(),
            body: serde_json::from_slice(body).unwrap_or_default(),
        }
    }

    /// Returns a part of the path, from 0 on.
    pub(super) fn part(&self, index: usize) -> &str {
        self.path.split('/').nth(index + 1).unwrap_or_default()
    }

    /// Returns the value of a parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns the token of the request.
    pub(super) fn bearer(&self) -> &str {
        let header = self.headers.get("authorization").map(String::as_str).unwrap_or_default();
        header.strip_prefix("Bearer ").unwrap_or_default()
    }
}
