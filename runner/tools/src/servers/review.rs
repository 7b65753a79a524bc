//! review compares what servers say about their tools with what was accepted, and accepts it.

use std::fmt;

use futures_util::future::join_all;
use platform_core::{
    code::{Code, Coded},
    id::{AccountId, ToolName, ToolServerName},
};
use runner_mcp::{InvalidTool, Listing, ServerError, ToolDefinition};
use runner_store::{AcceptedTool, Error as StoreError, NewAcceptance};

use super::{ConfiguredTool, ServerCatalog, is_of};
use crate::arguments::ArgumentSchema;

/// State of a server's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerToolState {
    /// The server describes it as it was accepted.
    Accepted,
    /// The server describes it otherwise.
    Changed,
    /// The server lists it, and it was never accepted.
    New,
    /// The server does not list it.
    Gone,
    /// No acceptance makes it usable; with the reason.
    Unusable(String),
    /// The server cannot be asked; with the reason.
    ServerUnavailable(String),
}

/// Tool of a server, with both descriptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedTool {
    /// Name of the tool here.
    pub name: ToolName,
    /// Name of the tool at its server.
    pub tool: String,
    /// State of the tool.
    pub state: ServerToolState,
    /// Definition that was accepted, as JSON.
    pub accepted: Option<String>,
    /// Definition of the server.
    pub listed: Option<ToolDefinition>,
}

/// Server with its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedServer {
    /// Name of the server.
    pub server: ToolServerName,
    /// Its tools that the settings name.
    pub tools: Vec<ReviewedTool>,
    /// Number of its other tools.
    pub others: usize,
}

/// Error of an acceptance.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The tool has no description that could be accepted.
    #[error("{tool} cannot be accepted: {state}")]
    NotAcceptable {
        /// The tool.
        tool: ToolName,
        /// Its state.
        state: ServerToolState,
    },
    /// The store failed.
    #[error("the acceptance cannot be stored")]
    Store(#[from] StoreError),
}

impl Coded for AcceptError {
    fn code(&self) -> Code {
        Code::ToolNotAccepted
    }
}

impl fmt::Display for ServerToolState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted => f.write_str("accepted"),
            Self::Changed => f.write_str("changed"),
            Self::New => f.write_str("new"),
            Self::Gone => f.write_str("gone"),
            Self::Unusable(reason) => write!(f, "unusable: {reason}"),
            Self::ServerUnavailable(reason) => write!(f, "server unavailable: {reason}"),
        }
    }
}

impl ServerToolState {
    /// Returns the state as a word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Unusable(_) => "unusable",
            Self::ServerUnavailable(_) => "server_unavailable",
        }
    }
}

impl ServerCatalog {
    /// Asks all servers for their tools, or one. Starts those that do not run.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn review(
        &self,
        only: Option<&ToolServerName>,
        account: &AccountId,
    ) -> Result<Vec<ReviewedServer>, StoreError> {
        let accepted = self.store.accepted_tools().await?;
        let names = self.servers.settings().keys().filter(|name| only.is_none_or(|only| only == *name));
        let review = async |server: &ToolServerName| {
            let listed = self.listing(server, account).await;
            self.compare(server, &listed, &accepted)
        };
        Ok(join_all(names.map(review)).await)
    }

    /// Accepts the description that a review found.
    ///
    /// # Errors
    /// [`AcceptError`].
    pub(crate) async fn accept(
        &self,
        server: &ToolServerName,
        reviewed: &ReviewedTool,
        by: &str,
    ) -> Result<(), AcceptError> {
        let is_acceptable = matches!(
            reviewed.state,
            ServerToolState::New | ServerToolState::Changed | ServerToolState::Accepted
        );
        let listed = reviewed.listed.as_ref().filter(|_| is_acceptable);
        let listed = listed.ok_or_else(|| AcceptError::NotAcceptable {
            tool: reviewed.name.clone(),
            state: reviewed.state.clone(),
        })?;
        let new = NewAcceptance {
            server: server.clone(),
            tool: reviewed.tool.clone(),
            digest: listed.digest.clone(),
            definition: listed.text.clone(),
            by: by.to_owned(),
        };
        Ok(self.store.accept_tool(&new).await?)
    }

    async fn listing(&self, server: &ToolServerName, account: &AccountId) -> Result<Listing, ServerError> {
        self.servers.session(server, account).await?.listing().await
    }

    fn compare(
        &self,
        server: &ToolServerName,
        listed: &Result<Listing, ServerError>,
        accepted: &[AcceptedTool],
    ) -> ReviewedServer {
        let reviewed = |tool: &ConfiguredTool| {
            let accepted = accepted.iter().find(|it| is_of(it, tool));
            let found = listed.as_ref().map(|listing| listing.tools.get(&tool.tool));
            ReviewedTool {
                name: tool.name.clone(),
                tool: tool.tool.clone(),
                state: state_of(&found, accepted),
                accepted: accepted.map(|accepted| accepted.acceptance.definition.clone()),
                listed: found.ok().flatten().and_then(|found| found.as_ref().ok()).cloned(),
            }
        };
        let tools = self.tools.values().filter(|tool| tool.server == *server).map(reviewed);
        ReviewedServer {
            server: server.clone(),
            tools: tools.collect(),
            others: listed.as_ref().map_or(0, |listing| listing.others),
        }
    }
}

/// Tool that a server lists under a name, or the reason why the server cannot be asked.
type FoundTool<'l> = Result<Option<&'l Result<ToolDefinition, InvalidTool>>, &'l ServerError>;

fn state_of(found: &FoundTool<'_>, accepted: Option<&AcceptedTool>) -> ServerToolState {
    match found {
        Err(reason) => ServerToolState::ServerUnavailable(reason.to_string()),
        Ok(None) => ServerToolState::Gone,
        Ok(Some(Err(invalid))) => ServerToolState::Unusable(invalid.to_string()),
        Ok(Some(Ok(listed))) => match (ArgumentSchema::compile_foreign(&listed.schema), accepted) {
            (Err(problem), _) => {
                ServerToolState::Unusable(format!("its schema cannot be compiled: {problem}"))
            }
            (Ok(_), None) => ServerToolState::New,
            (Ok(_), Some(accepted)) if accepted.acceptance.digest == listed.digest => {
                ServerToolState::Accepted
            }
            (Ok(_), Some(_)) => ServerToolState::Changed,
        },
    }
}
