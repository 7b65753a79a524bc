//! Gathers the answers for a new configuration: from arguments, the environment, or a person at the terminal.

use std::path::Path;

use platform_core::{
    control::{UpstreamHealth, offers},
    invalid::InvalidValue,
    name,
    secret::Secret,
};
use platform_runtime::{
    config::Environment,
    settings::{DEFAULT_AGENT, ServiceUrl},
};

use super::Arguments;
use crate::{
    agent_images::Recipe,
    doctor::UpstreamProblem,
    setup::{Dialogue, Draft, Error, GivenKey, KeyOrigin, Site, ask_upstream},
};

/// Address at which LiteLLM listens unless it is told otherwise.
const DEFAULT_UPSTREAM: &str = "http://127.0.0.1:4000";
/// Most models that a question or an error lists.
const MAX_LISTED_MODELS: usize = 20;

/// Answers that a configuration needs before the upstream is asked.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) base_url: String,
    pub(super) key: KeyChoice,
    /// Agents besides the one that ships.
    pub(super) agents: Vec<String>,
}

/// Key of the upstream, and whether to write it.
#[derive(Debug)]
pub(super) enum KeyChoice {
    Write(GivenKey),
    /// The key's file has it already.
    InPlace(GivenKey),
    None,
}

impl KeyChoice {
    pub(super) const fn given(&self) -> Option<&GivenKey> {
        match self {
            Self::Write(key) | Self::InPlace(key) => Some(key),
            Self::None => None,
        }
    }
}

/// Sources of answers.
pub(super) struct Interview<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) environment: &'a Environment,
    pub(super) site: &'a Site,
    /// Absent if no person can be asked.
    pub(super) dialogue: Option<Dialogue>,
}

impl Interview<'_> {
    /// Returns all answers but the model.
    ///
    /// # Errors
    /// All answers that are missing or unusable, together. On a terminal, also if the user stops.
    pub(super) fn answers(&self, environment_key: Option<Secret>) -> Result<Answers, Error> {
        let mut problems = Vec::new();
        let base_url = self.base_url()?.unwrap_or_else(|fault| {
            problems.push(fault.to_string());
            String::new()
        });
        let key = self.key(environment_key, &base_url)?.unwrap_or_else(|fault| {
            problems.push(fault.to_string());
            KeyChoice::None
        });
        let written = match &key {
            KeyChoice::Write(key) => Some(key),
            KeyChoice::InPlace(_) | KeyChoice::None => None,
        };
        problems.extend(self.unknown_agents()?);
        for path in self.site.existing(written) {
            if !self.may_replace(path)? {
                problems.push(format!("{} exists: --force replaces it", path.display()));
            }
        }
        if !problems.is_empty() {
            return Err(Error::Unusable(problems));
        }
        let agents = self.arguments.agent.iter().filter(|agent| *agent != DEFAULT_AGENT).cloned();
        Ok(Answers { base_url, key, agents: agents.collect() })
    }

    /// Returns a problem for each agent that `sluice agents add` would refuse.
    fn unknown_agents(&self) -> Result<Vec<String>, Error> {
        let recipes = Recipe::all();
        let known: Vec<_> = recipes.iter().map(|recipe| recipe.name.as_str()).collect();
        let is_known = |agent: &&String| *agent == DEFAULT_AGENT || known.contains(&agent.as_str());
        let unknown = self.arguments.agent.iter().filter(|agent| !is_known(agent));
        Ok(unknown
            .map(|agent| format!("--agent {agent}: no such agent; there are {}", known.join(", ")))
            .collect())
    }

    fn base_url(&self) -> Result<Result<String, InvalidValue>, Error> {
        let suggestion = self.environment.get(name::env::LITELLM_BASE_URL).unwrap_or(DEFAULT_UPSTREAM);
        if let Some(url) = &self.arguments.upstream {
            return Ok(checked_url(url).map_err(|fault| format!("--upstream: {fault}").into()));
        }
        let Some(dialogue) = &self.dialogue else {
            let is_known = self.arguments.style.yes || suggestion != DEFAULT_UPSTREAM;
            return Ok(if is_known {
                checked_url(suggestion)
            } else {
                Err(format!("the upstream is missing: --upstream URL, such as {DEFAULT_UPSTREAM}").into())
            });
        };
        loop {
            match checked_url(
                &dialogue
                    .ask("Upstream: scheme, host and port of LiteLLM or another model API", suggestion)?,
            ) {
                Ok(url) => return Ok(Ok(url)),
                Err(fault) => dialogue.tell(&fault.to_string())?,
            }
        }
    }

    fn key(
        &self,
        environment_key: Option<Secret>,
        base_url: &str,
    ) -> Result<Result<KeyChoice, InvalidValue>, Error> {
        if self.arguments.key.no_key {
            return Ok(Ok(KeyChoice::None));
        }
        if let Some(path) = &self.arguments.key.key_file {
            let is_in_place = self.site.is_key(path);
            let choice = if is_in_place { KeyChoice::InPlace } else { KeyChoice::Write };
            return Ok(GivenKey::read(path).map(choice));
        }
        if let Some(secret) = environment_key {
            return Ok(GivenKey::new(KeyOrigin::Environment, secret).map(KeyChoice::Write));
        }
        let Some(dialogue) = &self.dialogue else {
            return Ok(Err(format!(
                "the upstream's key is missing: --key-file FILE, `-` for standard input, {} in the environment, or --no-key",
                name::env::LITELLM_MASTER_KEY
            )
            .into()));
        };
        self.check_address(base_url)?;
        loop {
            let question = "Key of the upstream (it is not shown; empty if it needs none)";
            match dialogue.ask_secret(question)?.map(|secret| GivenKey::new(KeyOrigin::Terminal, secret)) {
                None => return Ok(Ok(KeyChoice::None)),
                Some(Ok(key)) => return Ok(Ok(KeyChoice::Write(key))),
                Some(Err(fault)) => dialogue.tell(&fault.to_string())?,
            }
        }
    }

    /// Checks that the upstream answers at all, before a person looks for its key. Without one it may refuse the call.
    fn check_address(&self, base_url: &str) -> Result<(), Error> {
        // A malformed address is its own problem, which is reported with all others.
        if self.arguments.force || base_url.is_empty() {
            return Ok(());
        }
        let draft = Draft { base_url: base_url.to_owned(), key_file: None, default_model: None };
        match ask_upstream(self.site, &draft, None)? {
            UpstreamHealth::Unreachable { reason } => {
                Err(Error::Upstream(UpstreamProblem::unreachable(base_url, &reason)))
            }
            UpstreamHealth::Ready { .. } | UpstreamHealth::Refused { .. } | UpstreamHealth::KeyUnknown => {
                Ok(())
            }
        }
    }

    fn may_replace(&self, path: &Path) -> Result<bool, Error> {
        match &self.dialogue {
            _ if self.arguments.force => Ok(true),
            Some(dialogue) => dialogue.confirm(&format!("{} exists. Replace it?", path.display())),
            None => Ok(false),
        }
    }

    /// Returns the default model, which an upstream of this health has to offer.
    ///
    /// # Errors
    /// If the upstream does not offer it, or several could be meant and no person can be asked.
    pub(super) fn model(&self, health: &UpstreamHealth) -> Result<Option<String>, Error> {
        let offered = match health {
            UpstreamHealth::Ready { models, .. } => models.as_slice(),
            UpstreamHealth::Refused { .. }
            | UpstreamHealth::KeyUnknown
            | UpstreamHealth::Unreachable { .. } => &[],
        };
        if let Some(model) = &self.arguments.model {
            let is_offered = offered.is_empty() || offers(offered, model.as_str());
            return if is_offered || self.arguments.force {
                Ok(Some(model.to_string()))
            } else {
                Err(Error::Unusable(vec![format!(
                    "--model {model}: the upstream does not offer it, but {}",
                    listed(offered)
                )]))
            };
        }
        let Some(first) = offered.iter().find(|model| !model.contains('*')) else { return Ok(None) };
        match &self.dialogue {
            Some(dialogue) => ask_model(dialogue, offered, first).map(Some),
            None if self.arguments.style.yes || offered.len() == 1 => Ok(Some(first.clone())),
            None => Err(Error::Unusable(vec![format!(
                "the default model is missing: --model MODEL, or --yes for the first. The upstream offers {}",
                listed(offered)
            )])),
        }
    }
}

/// Asks for one of the `offered` models, by its name or its number.
fn ask_model(dialogue: &Dialogue, offered: &[String], first: &str) -> Result<String, Error> {
    dialogue.tell(&format!("The upstream offers {}.", listed(offered)))?;
    loop {
        let answer = dialogue.ask("Default model", first)?;
        if offers(offered, &answer) {
            return Ok(answer);
        }
        dialogue.tell(&format!("The upstream does not offer `{answer}`."))?;
    }
}

/// Returns the first models of a list in words, and the number of all others.
fn listed(models: &[String]) -> String {
    let shown = models.iter().take(MAX_LISTED_MODELS).map(String::as_str).collect::<Vec<_>>().join(", ");
    match models.len().checked_sub(MAX_LISTED_MODELS) {
        Some(others @ 1..) => format!("{shown} and {others} more"),
        _ => shown,
    }
}

/// Returns the base URL in `text`. A path `/v1`, which many clients ask for, is left out.
fn checked_url(text: &str) -> Result<String, InvalidValue> {
    let url = text.trim().trim_end_matches('/');
    let url = url.strip_suffix("/v1").unwrap_or(url);
    ServiceUrl::split(url).map(|_parsed| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_url_may_end_as_clients_write_it() {
        for (text, expected) in [
            ("http://a:4000", Some("http://a:4000")),
            (" https://api.openai.com/v1/ ", Some("https://api.openai.com")),
            ("a:4000", None),
            ("http://a/openai/v1", Some("http://a/openai")),
            ("http://a/../other", None),
        ] {
            assert_eq!(checked_url(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let models: Vec<_> = (0..23).map(|number| format!("m{number}")).collect();
        assert!(listed(&models).ends_with("m19 and 3 more"), "{}", listed(&models));
        assert_eq!(listed(&models[..2]), "m0, m1");
    }
}
