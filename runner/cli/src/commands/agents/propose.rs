//! Implements `sluice agents propose`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use platform_core::{
    code::{Code, Coded},
    id::{AccountId, AgentId, ExternalId},
    invalid::InvalidValue,
    json::{self, Bounds},
    limit::ByteSize,
};
use platform_runtime::{file, terminal};
use runner_api::ProposalView;
use runner_proposals::{InvalidContent, Ordered, ProposalContent, ProposalOrder};
use serde_json::{Map, Value, json};

use super::{
    super::{Context, Error, error::Misused, exit::Exit},
    add::Style,
};

/// Largest file of a skill that is read: a larger one is refused with its size, or as unreadable.
const MAX_SKILL: ByteSize = ByteSize::mib(1);
/// Largest setting of a command line.
const MAX_SETTING: usize = 64 << 10;

#[derive(clap::Args)]
pub(super) struct ProposeArguments {
    /// Account that the proposal belongs to
    #[arg(long, default_value = "local", value_name = "ACCOUNT", global = true)]
    account: AccountId,
    #[command(subcommand)]
    content: Proposed,
}

#[derive(clap::Subcommand)]
enum Proposed {
    /// Propose an agent with a container for each run
    Agent(EntryArguments),
    /// Propose an agent with runs in sessions of a gateway; `mode` is set
    GatewayAgent(EntryArguments),
    /// Propose a skill: the file SKILL.md in its directory below `agents_repository.skills`
    Skill {
        /// Name of the skill, and of its directory
        #[arg(value_name = "NAME")]
        name: String,
        /// File with its text, in Markdown
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

#[derive(clap::Args)]
struct EntryArguments {
    /// Agent, as `family:name`
    #[arg(value_name = "AGENT")]
    agent: AgentId,
    /// Setting of its entry; a value that is JSON, such as a list, is taken as such. May be repeated
    #[arg(long = "setting", value_name = "NAME=VALUE", required = true, value_parser = parse_setting)]
    settings: Vec<(String, Value)>,
}

fn parse_setting(text: &str) -> Result<(String, Value), InvalidValue> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let read = json::from_slice(value.as_bytes(), Bounds::of(MAX_SETTING));
    Ok((name.to_owned(), read.unwrap_or_else(|_text| Value::from(value))))
}

/// Reason why nothing is proposed.
#[derive(Debug, thiserror::Error)]
enum ProposeError {
    /// The content cannot be proposed.
    #[error(transparent)]
    Content(#[from] InvalidContent),
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
}

impl Coded for ProposeError {
    fn code(&self) -> Code {
        Code::Usage
    }
}

impl EntryArguments {
    fn settings(&self) -> Map<String, Value> {
        self.settings.iter().cloned().collect()
    }
}

impl Proposed {
    fn content(self) -> Result<ProposalContent, ProposeError> {
        Ok(match self {
            Self::Agent(entry) => ProposalContent::of_agent(entry.agent.clone(), &entry.settings())?,
            Self::GatewayAgent(entry) => {
                let mut settings = entry.settings();
                settings.insert("mode".to_owned(), "gateway".into());
                ProposalContent::of_gateway_agent(entry.agent, &settings)?
            }
            Self::Skill { name, file: path } => {
                let text = file::text(&path, MAX_SKILL);
                let text = text.map_err(|source| ProposeError::Unreadable { path, source })?;
                ProposalContent::of_skill(&name, text)?
            }
        })
    }
}

/// Stores a proposal, which `sluice up` continues.
pub(super) async fn propose(
    context: &Context,
    arguments: ProposeArguments,
    style: Style,
) -> Result<Exit, Error> {
    let principal = format!("uid:{}", rustix::process::getuid().as_raw());
    let principal = ExternalId::parse(&principal).map_err(|error| Misused(error.to_string()))?;
    let id = ProposalOrder::new_id();
    let order =
        ProposalOrder { id, account: arguments.account, principal, content: arguments.content.content()? };
    let store = context.serving_store().await?;
    let (Ordered::New(proposal) | Ordered::Before(proposal)) =
        order.store(&store, &context.settings, &context.github()).await?;
    let mut out = io::stdout();
    match style {
        Style::Json => {
            let shown = json!(ProposalView::for_operators(&proposal)).to_string();
            writeln!(out, "{}", terminal::safe_json(&shown))?;
        }
        Style::Text => {
            writeln!(out, "{}", proposal.id)?;
            writeln!(
                io::stderr(),
                "`sluice up` proposes it as {}; `sluice agents proposals {}` shows how far it is",
                proposal.record.place.order.branch,
                proposal.id
            )?;
        }
    }
    Ok(Exit::Success)
}
