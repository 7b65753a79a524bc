//! Keeps issues, and shows them as the API does.

use serde_json::{Value, json};

use super::{
    answers::GitHubAnswer,
    pulls::{example, label_of},
    route::Asked,
};

/// Issue of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredIssue {
    /// Owner and name of the repository.
    pub repository: String,
    /// Number in the repository.
    pub number: u64,
    /// Title.
    pub title: String,
    /// Text.
    pub body: String,
    /// Labels.
    pub labels: Vec<String>,
    /// Texts of its comments.
    pub comments: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Issues {
    pub(super) stored: Vec<StoredIssue>,
}

impl Issues {
    /// Returns whether an issue of any repository has a number.
    pub(super) fn has(&self, number: &str) -> bool {
        self.stored.iter().any(|issue| issue.number.to_string() == number)
    }

    pub(super) fn list(&self, asked: &Asked) -> GitHubAnswer {
        let repository = repository_of(asked);
        let of_it = self.stored.iter().filter(|issue| issue.repository == repository);
        GitHubAnswer::new(200, of_it.map(|issue| show(issue, "")).collect())
    }

    pub(super) fn read(&self, asked: &Asked) -> Option<GitHubAnswer> {
        let issue = self.stored.iter().find(|issue| is_asked(issue, asked))?;
        Some(GitHubAnswer::new(200, show(issue, "")))
    }

    pub(super) fn comments(&self, asked: &Asked) -> Option<GitHubAnswer> {
        let issue = self.stored.iter().find(|issue| is_asked(issue, asked))?;
        let shown = issue.comments.iter().enumerate().map(|(at, body)| show_comment(at, body));
        Some(GitHubAnswer::new(200, shown.collect()))
    }

    pub(super) fn comment(&mut self, asked: &Asked) -> Option<GitHubAnswer> {
        let issue = self.stored.iter_mut().find(|issue| is_asked(issue, asked))?;
        let body = asked.body["body"].as_str()?.to_owned();
        issue.comments.push(body.clone());
        Some(GitHubAnswer::new(201, show_comment(issue.comments.len() - 1, &body)))
    }

    pub(super) fn label(&mut self, asked: &Asked) -> GitHubAnswer {
        let found = self.stored.iter_mut().find(|issue| is_asked(issue, asked));
        let Some(issue) = found else { return GitHubAnswer::error(404, "Not Found", Vec::new()) };
        let labels = asked.body["labels"].as_array().into_iter().flatten().filter_map(Value::as_str);
        issue.labels.extend(labels.map(str::to_owned));
        GitHubAnswer::new(200, issue.labels.iter().map(|label| label_of(label)).collect())
    }

    /// Returns the issues of all repositories: as GitHub would if a word had left the query's repository.
    pub(super) fn search(&self, api: &str) -> GitHubAnswer {
        let items: Vec<Value> = self.stored.iter().map(|issue| show(issue, api)).collect();
        GitHubAnswer::new(
            200,
            json!({ "total_count": items.len(), "incomplete_results": false, "items": items }),
        )
    }
}

fn repository_of(asked: &Asked) -> String {
    format!("{}/{}", asked.part(1), asked.part(2))
}

fn is_asked(issue: &StoredIssue, asked: &Asked) -> bool {
    issue.repository == repository_of(asked) && issue.number.to_string() == asked.part(4)
}

fn show(issue: &StoredIssue, api: &str) -> Value {
    let labels: Vec<Value> = issue.labels.iter().map(|label| label_of(label)).collect();
    json!({
        "number": issue.number,
        "title": issue.title,
        "state": "open",
        "user": example("user"),
        "labels": labels,
        "body": issue.body,
        "updated_at": "2026-01-01T00:00:00Z",
        "repository_url": format!("{api}/repos/{}", issue.repository),
    })
}

fn show_comment(at: usize, body: &str) -> Value {
    json!({ "id": at + 1, "user": example("user"), "body": body, "created_at": "2026-01-01T00:00:00Z" })
}
