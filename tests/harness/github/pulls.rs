//! Keeps pull requests, and shows them as the API does.

use serde_json::{Value, json};

/// Objects of the API with all fields that its description demands, as its examples have them.
const EXAMPLES: &str = include_str!("examples.json");
/// Id of the repository that a request is for.
const OWN_REPOSITORY: u64 = 1_296_269;
/// Id of a fork of it.
const FORK: u64 = 7_777_777;

/// Pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredPull {
    /// Branch with the changes.
    pub head: String,
    /// Branch into which they go.
    pub base: String,
    /// Title.
    pub title: String,
    /// Text.
    pub body: String,
    /// Labels.
    pub labels: Vec<String>,
    /// State and origin.
    pub marks: Vec<PullMark>,
}

/// State or origin of a pull request that is not the usual one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullMark {
    /// Draft.
    Draft,
    /// Closed, or merged.
    Closed,
    /// Merged.
    Merged,
    /// Branch of a fork.
    FromFork,
}

/// Pull requests, of which the first has number 1.
#[derive(Debug, Default)]
pub(super) struct Pulls {
    pub(super) stored: Vec<StoredPull>,
    pub(super) refuses_drafts: bool,
    pub(super) web_address: Option<String>,
}

impl StoredPull {
    /// Returns whether the pull request has a mark.
    #[must_use]
    pub fn has(&self, mark: PullMark) -> bool {
        self.marks.contains(&mark)
    }
}

impl Pulls {
    pub(super) fn add(&mut self, pull: StoredPull) -> usize {
        self.stored.push(pull);
        self.stored.len()
    }

    pub(super) fn close_all(&mut self) {
        self.stored.iter_mut().for_each(|pull| pull.marks.push(PullMark::Closed));
    }

    /// Merges the pull request of a branch.
    pub(super) fn merge(&mut self, head: &str) {
        let own = self.stored.iter_mut().filter(|pull| pull.head == head);
        own.for_each(|pull| pull.marks.extend([PullMark::Closed, PullMark::Merged]));
    }

    /// Returns the numbers of all pull requests of a branch.
    pub(super) fn all(&self, head: Option<&str>) -> Vec<usize> {
        let numbered = (1..).zip(&self.stored);
        let found = numbered.filter(|(_, pull)| head.is_none_or(|head| pull.head == head));
        found.map(|(number, _)| number).collect()
    }

    /// Returns the numbers of the open pull requests of a branch, or of all branches.
    pub(super) fn open(&self, head: Option<&str>) -> Vec<usize> {
        let is_open = |pull: &StoredPull| !pull.has(PullMark::Closed);
        let numbered = (1..).zip(&self.stored);
        let found = numbered.filter(|(_, pull)| is_open(pull) && head.is_none_or(|head| pull.head == head));
        found.map(|(number, _)| number).collect()
    }

    /// Returns a pull request as the API shows it.
    pub(super) fn show(&self, number: usize, repository: &str) -> Value {
        let pull = &self.stored[number - 1];
        let mut shown = example("pull_request");
        let head_id = if pull.has(PullMark::FromFork) { FORK } else { OWN_REPOSITORY };
        let address = format!("{repository}/pull/{number}");
        let labels: Vec<Value> = pull.labels.iter().map(|label| label_of(label)).collect();
        let fields = json!({
            "number": number,
            "html_url": self.web_address.clone().unwrap_or(address),
            "state": if pull.has(PullMark::Closed) { "closed" } else { "open" },
            "draft": pull.has(PullMark::Draft),
            "merged": pull.has(PullMark::Merged),
            "title": pull.title,
            "body": pull.body,
            "user": example("user"),
            "labels": labels,
            "head": branch(&pull.head, head_id),
            "base": branch(&pull.base, OWN_REPOSITORY),
        });
        merge(&mut shown, fields);
        shown
    }
}

/// Returns an object of the API with the fields that its description demands.
pub(super) fn example(name: &str) -> Value {
    let examples: Value = serde_json::from_str(EXAMPLES).expect("it is JSON");
    examples[name].clone()
}

/// Returns a label as the API shows it.
pub(super) fn label_of(name: &str) -> Value {
    let mut label = example("label");
    merge(&mut label, json!({ "name": name }));
    label
}

fn branch(name: &str, repository: u64) -> Value {
    let mut repo = example("repository");
    merge(&mut repo, json!({ "id": repository, "owner": example("user") }));
    let sha = "6dcb09b5b57875f334f61aebed695e2e4193db5e";
    json!({ "label": format!("octocat:{name}"), "ref": name, "sha": sha, "user": example("user"), "repo": repo })
}

/// Replaces fields of an object.
pub(super) fn merge(object: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else { return };
    for (name, value) in fields {
        object[name] = value;
    }
}
