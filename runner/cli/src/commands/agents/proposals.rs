//! Implements `sluice agents proposals`.

use std::io::{self, Write};

use platform_core::id::ProposalId;
use platform_runtime::terminal;
use runner_api::ProposalView;
use runner_proposals::{Proposal, ProposalError, ProposalState};
use runner_store::{AccountScope, Store};
use serde_json::json;

use super::{
    super::{Context, Error, exit::Exit, table::Table, times::format_time},
    add::Style,
};

/// Most proposals that are listed.
const LISTED: u32 = 50;

#[derive(clap::Args)]
pub(super) struct ProposalsArguments {
    /// Proposal to show, with its difference [default: list the newest]
    #[arg(value_name = "PROPOSAL")]
    id: Option<ProposalId>,
}

/// Lists proposals, or shows one.
pub(super) async fn proposals(
    context: &Context,
    arguments: ProposalsArguments,
    style: Style,
) -> Result<Exit, Error> {
    let store = context.store().await?;
    match arguments.id {
        Some(id) => show(&store, id, style).await,
        None => list(&store, style).await,
    }
}

async fn list(store: &Store, style: Style) -> Result<Exit, Error> {
    let stored = store.proposals(&AccountScope::All, None, LISTED).await?;
    let proposals = stored.iter().map(Proposal::read).collect::<Result<Vec<_>, _>>()?;
    let mut out = io::stdout();
    if style == Style::Json {
        let shown: Vec<_> = proposals.iter().map(ProposalView::for_operators).collect();
        writeln!(out, "{}", terminal::safe_json(&json!({ "proposals": shown }).to_string()))?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["PROPOSAL", "KIND", "NAME", "STATE", "BY", "CREATED", "PULL REQUEST"]);
    for proposal in &proposals {
        let Proposal { id, content, record, principal, created, .. } = proposal;
        let pull_request = record.state.pull_request();
        table.row([
            id.to_string(),
            content.kind().title().to_owned(),
            content.name().to_owned(),
            record.state.name().to_owned(),
            principal.to_string(),
            format_time(*created),
            pull_request.map_or_else(|| "-".to_owned(), |pull_request| pull_request.url.clone()),
        ]);
    }
    write!(out, "{table}")?;
    Ok(Exit::Success)
}

async fn show(store: &Store, id: ProposalId, style: Style) -> Result<Exit, Error> {
    let stored = store.proposal(&id, &AccountScope::All).await?;
    let proposal = Proposal::read(&stored.ok_or(ProposalError::Unknown { id })?)?;
    let mut out = io::stdout();
    match style {
        Style::Json => {
            let shown = json!(ProposalView::for_operators(&proposal)).to_string();
            writeln!(out, "{}", terminal::safe_json(&shown))?;
        }
        Style::Text => write!(out, "{}", terminal::safe(&description(&proposal)))?,
    }
    Ok(match &proposal.record.state {
        ProposalState::Refused { .. } | ProposalState::Failed { .. } => Exit::Failure,
        state if state.is_pending() => Exit::TryAgain,
        _ => Exit::Success,
    })
}

/// Describes a proposal in lines, its difference last.
fn description(proposal: &Proposal) -> String {
    let Proposal { id, content, record, principal, account, created } = proposal;
    let place = &record.place;
    let mut text = format!(
        "{id}: {} {} is {}\n  file    {} of {} on {}\n  branch  {}\n  by      {principal} of {account}, {}\n",
        content.kind().title(),
        content.name(),
        record.state.name(),
        place.path,
        place.order.url,
        place.order.base,
        place.order.branch,
        format_time(*created),
    );
    if let Some(pull_request) = record.state.pull_request() {
        text += &format!("  pull request {}\n", pull_request.url);
    }
    if let Some(reason) = record.state.reason().or_else(|| record.fault.clone()) {
        text += &format!("  because {reason}\n");
    }
    if let Some(diff) = &record.diff {
        text += &format!("\n{diff}");
    }
    text
}
