//! Describes commands that gateways ask about, and which of them a person can allow for good. Pure.

use platform_core::invalid::InvalidValue;
use serde::{Deserialize, Serialize};

use super::AllowedCommand;

/// Marks of parts that a gateway has hidden: OpenClaw hides what looks like a secret (measured with OpenClaw 2026.9.6).
const HIDDEN: [&str; 2] = ["***", "…"];

/// Command that a gateway asks about, as a person sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedCommand {
    /// The command, as the gateway prints it.
    pub command: String,
    /// Directory that it runs in.
    pub directory: Option<String>,
    /// Names of variables that the model sets.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Place that it runs at: `gateway`, `sandbox`, or `node NAME`; the gateway if absent.
    #[serde(default)]
    pub host: Option<String>,
    /// Warning of the gateway.
    #[serde(default)]
    pub warning: Option<String>,
}

impl AskedCommand {
    /// Returns the command that a rule can name: a person sees all of it, and it runs at the gateway itself, in one of
    /// `own`, the directories of its agent and session, in the environment that the agent always has.
    ///
    /// # Errors
    /// If a rule would allow more than a person sees; says why.
    pub fn allowable_in(&self, own: &[&str]) -> Result<AllowedCommand, InvalidValue> {
        let is_at_home = self.directory.as_deref().is_some_and(|directory| own.contains(&directory))
            && self.environment.is_empty()
            && matches!(self.host.as_deref(), None | Some("gateway"));
        if !is_at_home {
            return Err("it runs in another directory, environment or place than the agent's own".into());
        }
        if HIDDEN.iter().any(|mark| self.command.contains(mark)) {
            return Err("the gateway hides a part of it".into());
        }
        AllowedCommand::parse(&self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_only_what_was_seen() {
        let asked = |change: &dyn Fn(&mut AskedCommand)| {
            let mut asked = AskedCommand {
                command: "make test".into(),
                directory: Some("/w".into()),
                ..Default::default()
            };
            change(&mut asked);
            asked
        };
        let seen = asked(&|_| {});
        assert_eq!(seen.allowable_in(&["/s", "/w"]).unwrap().as_str(), "make test");
        assert!(asked(&|it| it.host = Some("gateway".into())).allowable_in(&["/w"]).is_ok());
        assert!(seen.allowable_in(&["/other"]).is_err());
        for change in [
            &(|it: &mut AskedCommand| it.directory = None) as &dyn Fn(&mut AskedCommand),
            &|it| it.environment = vec!["PATH".into()],
            &|it| it.host = Some("sandbox".into()),
            &|it| it.host = Some("node gateway".into()),
            &|it| it.command = "curl -H 'Authorization: ***'".into(),
            &|it| it.command = "echo sk-abc…xyz".into(),
            &|it| it.command = "ls\u{200b}".into(),
        ] {
            let asked = asked(change);
            assert!(asked.allowable_in(&["/w"]).is_err(), "{asked:?}");
        }
    }
}
