//! Words the health of the upstream: the problem, if there is one, and its fix.

use std::path::Path;

use platform_core::{
    code::{Code, Coded},
    control::UpstreamHealth,
};

/// A problem that keeps the upstream from answering calls.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}: {fix}")]
pub(crate) struct UpstreamProblem {
    /// Description of the problem.
    pub(crate) found: String,
    /// Way to fix it.
    pub(crate) fix: String,
}

impl Coded for UpstreamProblem {
    fn code(&self) -> Code {
        Code::UpstreamUnusable
    }
}

impl UpstreamProblem {
    /// Returns the problem that `health` shows, if there is one. `key_file` is the file of the key that was sent. An
    /// upstream that offers no list of models may still answer calls.
    pub(crate) fn of(health: &UpstreamHealth, key_file: Option<&Path>) -> Option<Self> {
        match health {
            UpstreamHealth::Ready { .. } => None,
            UpstreamHealth::Refused { status: status @ 401..=403 } => Some(match key_file {
                Some(file) => Self {
                    found: format!("the upstream refuses the key in {} (status {status})", file.display()),
                    fix: "write the right key into upstream.key_file, then run `sluice reload`".to_owned(),
                },
                None => Self {
                    found: format!("the upstream refuses calls without a key (status {status})"),
                    fix: "set upstream.key_file".to_owned(),
                },
            }),
            UpstreamHealth::Refused { status: status @ 500.. } => Some(Self {
                found: format!("the upstream answers {status} to GET /v1/models"),
                fix: "look at its log; LiteLLM without the Python package prisma answers so to a wrong key"
                    .to_owned(),
            }),
            UpstreamHealth::KeyUnknown => {
                let file = key_file.map_or_else(String::new, |file| format!(" in {}", file.display()));
                Some(Self {
                    found: format!("the upstream cannot look up the key{file}: {NO_DATABASE}"),
                    fix: format!(
                        "write LiteLLM's master key into upstream.key_file, then run `sluice reload`; {OR_DATABASE}"
                    ),
                })
            }
            UpstreamHealth::Refused { .. } => None,
            UpstreamHealth::Unreachable { reason } => Some(Self {
                found: format!("the upstream cannot be reached: {reason}"),
                fix: "start it, or set upstream.base_url and restart the proxy".to_owned(),
            }),
        }
    }

    /// Returns the problem of an upstream at `base_url` that does not answer, before there is a configuration.
    pub(crate) fn unreachable(base_url: &str, reason: &str) -> Self {
        Self {
            found: format!("{base_url} cannot be reached: {reason}"),
            fix: "start it, or name another with --upstream".to_owned(),
        }
    }
}

/// Cause of [`UpstreamHealth::KeyUnknown`].
pub(crate) const NO_DATABASE: &str = "it is a LiteLLM without a database, which takes its master key alone";
/// Other fix of it.
pub(crate) const OR_DATABASE: &str = "virtual keys need LiteLLM's `database_url`";

/// Returns an upstream without a problem in words.
pub(crate) fn in_words(health: &UpstreamHealth) -> String {
    match health {
        UpstreamHealth::Ready { version, models } => {
            let version = version
                .as_ref()
                .map_or_else(|| "states no version".to_owned(), |version| format!("LiteLLM {version}"));
            format!("{version}, {}", crate::plural::counted(models.len(), "model"))
        }
        UpstreamHealth::Refused { status } => {
            format!(
                "has no list of models: it answers {status} to GET /v1/models; the first call proves the key"
            )
        }
        UpstreamHealth::KeyUnknown => NO_DATABASE.to_owned(),
        UpstreamHealth::Unreachable { reason } => reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_key_is_told_from_a_refused_one() {
        let refused = |status, file: Option<&str>| {
            let problem = UpstreamProblem::of(&UpstreamHealth::Refused { status }, file.map(Path::new));
            problem.map(|problem| problem.to_string())
        };
        assert!(refused(401, None).unwrap().contains("without a key"));
        let named = refused(401, Some("/etc/key")).unwrap();
        assert!(named.contains("the key in /etc/key (status 401)"), "{named}");
        assert!(refused(503, None).is_some());
        assert_eq!(refused(404, None), None, "it may have no list of models");
        let unknown = UpstreamProblem::of(&UpstreamHealth::KeyUnknown, Some(Path::new("/etc/key")));
        let words = "cannot look up the key in /etc/key: it is a LiteLLM without a database";
        assert!(unknown.unwrap().to_string().contains(words));
    }
}
