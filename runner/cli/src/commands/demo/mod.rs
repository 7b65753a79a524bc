//! Implements `sluice demo`: one agent through everything, on temporary paths, with a scripted model.

mod model;
mod site;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use platform_core::{
    code::{Code, Coded},
    name,
    secret::Secret,
};
use platform_runtime::config::Environment;
use tokio::signal;

use self::{model::ScriptedModel, site::Site};
use super::{
    Error,
    exit::Exit,
    palette::{Palette, Tone},
    runtime::create_runtime,
};

/// Account that pays for the agent.
const ACCOUNT: &str = "acct-demo";
/// Limit below what any call needs, and one above.
const TIGHT: &str = "1";
const AMPLE: &str = "100000";

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice demo
  sluice demo \"Why is the sky blue?\"
  sluice demo --shell                     try commands yourself: sluice run, sluice audit top, sluice dashboard

Needs root, Docker and the sandbox image. With $LITELLM_BASE_URL and $LITELLM_MASTER_KEY, it asks your own LiteLLM: the
model of $COGNI_MODEL, else the first one. Removes everything at its end.")]
pub(super) struct Arguments {
    /// Question for the agent
    #[arg(default_value = "In one sentence: what is a sluice gate?")]
    question: String,
    /// Open a shell in which all of it runs, until you type exit
    #[arg(long)]
    shell: bool,
}

/// Reason why the demonstration ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum DemoError {
    /// Another user than root started it.
    #[error("it makes mounts and containers, so it needs root: `sudo sluice demo`")]
    NotRoot,
    /// Only one of the two variables of an own upstream is set.
    #[error(
        "only one of {} and {} is set: set both for your own LiteLLM, or none for the scripted model",
        name::env::LITELLM_BASE_URL,
        name::env::LITELLM_MASTER_KEY
    )]
    HalfUpstream,
    /// A file or directory cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// `sluice up` did not become ready.
    #[error("`sluice up` did not become ready; it said:\n{said}")]
    NotReady {
        /// Its output so far.
        said: String,
    },
    /// A command failed that has to work.
    #[error("`sluice {command}` failed (exit code {code:?}); its own message is above")]
    Failed {
        /// Arguments of the command.
        command: String,
        /// Its exit code; none if a signal ended it.
        code: Option<i32>,
    },
    /// The upstream of the environment offers no model.
    #[error("the upstream lists no model: name one in {}", name::env::COGNI_MODEL)]
    NoModel,
}

impl Coded for DemoError {
    fn code(&self) -> Code {
        match self {
            Self::NotRoot | Self::HalfUpstream => Code::DemoRefused,
            Self::NotReady { .. } | Self::NoModel => Code::DemoUnavailable,
            Self::Failed { .. } => Code::DemoFailed,
            Self::Write { .. } => Code::DemoUnwritable,
        }
    }
}

/// Shows a whole run, or opens a shell beside a running Sluicegate.
pub(super) fn demo(mut environment: Environment, arguments: &Arguments) -> Result<Exit, Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(DemoError::NotRoot.into());
    }
    let key = environment.take_secret(name::env::LITELLM_MASTER_KEY);
    create_runtime()?.block_on(async {
        let upstream = ModelApi::choose(&environment, key).await?;
        let site = Site::start(&environment, &upstream).await?;
        let model = upstream.model.as_ref();
        let tour = Tour { site: &site, model, palette: Palette::of(&io::stdout(), &environment) };
        let shown = tokio::select! {
            shown = tour.show(&environment, arguments) => shown,
            // A shell gets the signal, too, and decides for itself.
            _ = signal::ctrl_c(), if !arguments.shell => Ok(Exit::Cancelled),
        };
        site.stop().await?;
        shown
    })
}

/// A model API, and the key for it.
struct ModelApi {
    base_url: String,
    key: Secret,
    /// `None` with an upstream of the person's own.
    model: Option<ScriptedModel>,
}

impl ModelApi {
    /// Returns the LiteLLM of the environment, else the scripted model.
    async fn choose(environment: &Environment, key: Option<Secret>) -> Result<Self, Error> {
        match (environment.get(name::env::LITELLM_BASE_URL), key) {
            (Some(base_url), Some(key)) => Ok(Self { base_url: base_url.to_owned(), key, model: None }),
            (None, None) => {
                let model = ScriptedModel::start().await?;
                Ok(Self { base_url: model.base_url(), key: model::key(), model: Some(model) })
            }
            _ => Err(DemoError::HalfUpstream.into()),
        }
    }
}

/// Order of what is shown.
struct Tour<'d> {
    site: &'d Site,
    /// `None` with an upstream of the person's own.
    model: Option<&'d ScriptedModel>,
    palette: Palette,
}

impl Tour<'_> {
    async fn show(&self, environment: &Environment, arguments: &Arguments) -> Result<Exit, Error> {
        let model = match (self.model, environment.get(name::env::COGNI_MODEL)) {
            (_, Some(named)) => named.to_owned(),
            (Some(_), None) => model::NAME.to_owned(),
            (None, None) => self.site.first_model().await?.ok_or(DemoError::NoModel)?,
        };
        if arguments.shell {
            self.open_shell(&model).await
        } else {
            self.guide(&model, &arguments.question).await
        }
    }

    /// Runs an agent, has a call refused, allows it, and shows the records.
    async fn guide(&self, model: &str, question: &str) -> Result<Exit, Error> {
        let run = |id, question| ["run", "--account", ACCOUNT, "--model", model, "--run-id", id, question];
        let limit = |tokens| ["limit", "--account", ACCOUNT, "--total-tokens", tokens];
        self.succeed(&["doctor"]).await?;
        self.say("An agent asks, in a container without a network:")?;
        self.succeed(&run("demo", question)).await?;
        self.say("A limit refuses the next call before it is sent:")?;
        self.succeed(&limit(TIGHT)).await?;
        self.command(&run("refused", question)).await?;
        self.say("Its record says why, and what allows it:")?;
        self.succeed(&["audit", "show", "--run", "refused"]).await?;
        self.succeed(&limit(AMPLE)).await?;
        self.succeed(&run("allowed", question)).await?;
        self.say("Every call left one record:")?;
        self.succeed(&["audit", "tail", "--run", "demo", "--json"]).await?;
        if let Some(model) = self.model {
            self.say("Headers that the model received. The proxy wrote them; the agent has no key:")?;
            for header in model.headers() {
                writeln!(io::stdout(), "  {header}")?;
            }
        }
        self.say("Try next:")?;
        let sluice = self.site.called();
        writeln!(
            io::stdout(),
            "  {sluice} demo --shell    # all of it runs, with a dashboard, until you type exit"
        )?;
        writeln!(io::stdout(), "  {sluice} init            # your own models")?;
        Ok(Exit::Success)
    }

    async fn open_shell(&self, model: &str) -> Result<Exit, Error> {
        self.say("Sluicegate runs until you type exit. For example:")?;
        let link = self.site.dashboard_link().await?;
        let model = if self.model.is_some() { String::new() } else { format!("--model {model} ") };
        let mut out = io::stdout();
        writeln!(out, "  sluice run {model}\"Why is the sky blue?\"")?;
        writeln!(out, "  sluice audit top")?;
        if self.model.is_some() {
            writeln!(out, "  sluice run --detach --model {} x; sluice freeze --all", model::SLOW)?;
        }
        writeln!(out, "Dashboard, for one browser: {link}")?;
        self.site.shell().await?;
        Ok(Exit::Success)
    }

    fn say(&self, text: &str) -> io::Result<()> {
        writeln!(io::stdout(), "\n{}", self.palette.paint(Tone::Bold, text))
    }

    /// Shows a command, runs it, and returns its exit code.
    async fn command(&self, arguments: &[&str]) -> Result<Option<i32>, Error> {
        let shown = arguments
            .iter()
            .map(|word| if word.contains(' ') { format!("{word:?}") } else { (*word).to_owned() });
        let shown = format!("$ sluice {}", shown.collect::<Vec<_>>().join(" "));
        writeln!(io::stdout(), "\n{}", self.palette.paint(Tone::Bold, &shown))?;
        Ok(self.site.command(arguments).status().await?.code())
    }

    async fn succeed(&self, arguments: &[&str]) -> Result<(), Error> {
        match self.command(arguments).await? {
            Some(0) => Ok(()),
            code => Err(DemoError::Failed { command: arguments.join(" "), code }.into()),
        }
    }
}
