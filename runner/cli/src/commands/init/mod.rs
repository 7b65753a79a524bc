//! Implements `sluice init`: gathers answers, checks them, writes configuration and key, and prints the next commands.

mod answers;
mod report;

use std::path::PathBuf;

use platform_core::{
    control::UpstreamHealth,
    id::{AgentId, ModelName},
    name,
};
use platform_runtime::{
    config::{DEFAULT_FILE, Environment, Sources},
    report as causes,
    settings::{DEFAULT_AGENT, Settings},
};
use runner_docker::Docker;

use self::{
    answers::{Answers, Interview, KeyChoice},
    report::{Report, ReportForm, Starter},
};
use super::{Error, exit::Exit, runtime::create_runtime};
use crate::{
    doctor::{NO_DATABASE, OR_DATABASE, UpstreamProblem},
    setup::{self, Dialogue, Draft, Site, ask_upstream},
};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice init                             ask for everything that is missing
  sluice init --upstream http://litellm:4000 --key-file /run/secrets/key --model gpt-4o-mini
  pass show litellm | sluice init --upstream http://litellm:4000 --key-file - --yes

Exit codes: 2 an answer is missing or cannot be used, 69 the upstream is down or refuses the key. Nothing is written then.")]
pub(super) struct Arguments {
    /// Scheme, host and port of the upstream [default: $LITELLM_BASE_URL]
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    #[command(flatten)]
    key: KeyArguments,
    /// Model for agents without a model; the upstream has to offer it
    #[arg(long, value_name = "MODEL")]
    model: Option<ModelName>,
    /// Agent to add; may be repeated. The command that adds it is printed. `sandbox:agent` needs none
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Replace files that exist, and write although the upstream is down or refuses the key
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    style: StyleArguments,
}

/// Ways to give the upstream's key. An argument is not among them: every user of the host can read arguments.
#[derive(clap::Args)]
struct KeyArguments {
    /// File that has the upstream's key, `-` for standard input [default: $LITELLM_MASTER_KEY]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The upstream needs no key
    #[arg(long, conflicts_with = "key_file")]
    no_key: bool,
}

#[derive(clap::Args)]
struct StyleArguments {
    /// Ask nothing: take defaults, and the first model that the upstream offers
    #[arg(long)]
    yes: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Writes the configuration `config`, or that of the environment, or the default one.
pub(super) fn init(
    config: Option<PathBuf>,
    mut environment: Environment,
    arguments: Arguments,
) -> Result<Exit, Error> {
    let environment_key = environment.take_secret(name::env::LITELLM_MASTER_KEY);
    let key_was_exported = environment_key.is_some();
    let named = environment.get(name::env::SLUICE_CONFIG).map(PathBuf::from);
    let path = config.or_else(|| named.clone()).unwrap_or_else(|| DEFAULT_FILE.into());
    let site = Site::of(&path)?;
    let dialogue = if arguments.style.yes { None } else { Dialogue::on_terminal() };
    let interview = Interview { arguments: &arguments, environment: &environment, site: &site, dialogue };
    let answers = interview.answers(environment_key)?;
    let mut draft = Draft { base_url: answers.base_url.clone(), key_file: None, default_model: None };
    let read = |draft: &Draft| {
        let file = Some((site.configuration().to_owned(), draft.text()));
        Settings::read(&Sources { file, environment: environment.clone(), flags: Vec::new() })
    };
    site.check_rights(&read(&draft)?)?;
    let health = ask_upstream(&site, &draft, answers.key.given())?;
    if let Some(problem) = problem(&health, &answers)
        && !arguments.force
    {
        return Err(setup::Error::Upstream(problem).into());
    }
    draft.key_file = answers.key.given().map(|_| site.key().to_owned());
    draft.default_model = interview.model(&health)?;
    let settings = read(&draft)?;
    let writes_key = match &answers.key {
        KeyChoice::Write(key) => Some(key),
        KeyChoice::InPlace(_) | KeyChoice::None => None,
    };
    site.write(&draft, writes_key)?;
    let report = Report {
        problem: problem(&health, &answers),
        notes: unproven_key(&health, &answers).into_iter().chain(docker_problem(&settings)?).collect(),
        exposures: settings.exposures(Some(site.configuration())),
        is_configured: named.as_deref() == Some(site.configuration()),
        key_was_exported,
        starter: Starter::of_machine(),
        site: &site,
        answers: &answers,
        draft: &draft,
        health: &health,
    };
    report.print(if arguments.style.json { ReportForm::Json } else { ReportForm::Text })?;
    Ok(Exit::Success)
}

/// Returns the problem of an upstream that was asked with the key of these answers.
fn problem(health: &UpstreamHealth, answers: &Answers) -> Option<UpstreamProblem> {
    let problem = UpstreamProblem::of(health, None)?;
    match (health, answers.key.given()) {
        (UpstreamHealth::Refused { status: status @ 401..=403 }, Some(key)) => Some(UpstreamProblem {
            found: format!(
                "{} refuses the key from {} (status {status})",
                answers.base_url,
                key.origin.in_words()
            ),
            fix: "give the right key".to_owned(),
        }),
        (UpstreamHealth::Refused { status: status @ 401..=403 }, None) => Some(UpstreamProblem {
            found: format!("{} refuses calls without a key (status {status})", answers.base_url),
            fix: "give a key with --key-file".to_owned(),
        }),
        (UpstreamHealth::KeyUnknown, Some(key)) => Some(UpstreamProblem {
            found: format!(
                "{} cannot look up the key from {}: {NO_DATABASE}",
                answers.base_url,
                key.origin.in_words()
            ),
            fix: format!("give LiteLLM's master key with --key-file; {OR_DATABASE}"),
        }),
        (UpstreamHealth::Unreachable { reason }, _) => {
            Some(UpstreamProblem::unreachable(&answers.base_url, reason))
        }
        _ => Some(problem),
    }
}

/// Says that nothing has checked the key, if so. LiteLLM checks it before it lists models; others may list them to
/// everyone.
fn unproven_key(health: &UpstreamHealth, answers: &Answers) -> Option<String> {
    answers.key.given()?;
    match health {
        UpstreamHealth::Ready { version: Some(_), .. } => None,
        UpstreamHealth::Ready { version: None, .. } => Some(
            "the key is not proven: the upstream states no version of LiteLLM, and may list models without a key. \
             `sluice run` shows whether it takes it"
                .to_owned(),
        ),
        UpstreamHealth::Refused { .. } | UpstreamHealth::KeyUnknown | UpstreamHealth::Unreachable { .. } => {
            Some("the key is not proven: `sluice run` shows whether the upstream takes it".to_owned())
        }
    }
}

/// Returns what keeps the agent that ships from running on this Docker.
fn docker_problem(settings: &Settings) -> Result<Vec<String>, Error> {
    let agent = &settings.agents[&AgentId::parse(DEFAULT_AGENT)?];
    let look = async {
        let docker = Docker::connect(&settings.sandbox.docker_socket).await?;
        docker.image(&agent.image).await.map(drop)
    };
    let looked = create_runtime()?.block_on(look);
    Ok(looked.err().map(|error| causes::chain(&error)).into_iter().collect())
}
