//! Implements `sluice principals`: adds, lists and revokes the people and programs that may use the HTTP API.

use std::io::{self, Write};

use platform_core::{
    budget::Budget,
    id::{AccountId, AgentId, PrincipalId},
    money::NanoDollars,
};
use platform_runtime::{random, terminal};
use runner_git::RepoPattern;
use runner_model::principal::{ApiToken, PrincipalRole};
use runner_store::{NewPrincipal, Principal, Store, UnixMillis};
use serde_json::json;

use super::{Context, Error, count::parse_count, exit::Exit, table::Table, times::format_time};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Add a principal, and print its token, which is shown only now
    ///
    /// The store keeps a hash of the token. Its owner sends it as `Authorization: Bearer TOKEN`.
    #[command(after_help = "\
Examples:
  sluice principals add ci --account acct-7 > ci.token
  sluice principals add ann --account acct-7 --role viewer
  sluice principals add app --account acct-7 --agent sandbox:agent --cost 0.50
  sluice principals add bot --account acct-7 --repository 'https://github.com/acme/*'

Roles, each with the rights of those before it:
  viewer     reads the runs of its account
  member     orders and cancels runs of its account
  operator   sees the runs of all accounts and the causes of failures
  admin      nothing further yet")]
    Add(AddArguments),
    /// List principals, with the last use of their tokens
    #[command(after_help = "\
Examples:
  sluice principals ls
  sluice principals ls --json | jq -r '.principals[] | select(.used_ms == null).id'")]
    Ls(LsArguments),
    /// Replace the token of a principal, and print the new one, which is shown only now
    ///
    /// The former token is refused at once.
    #[command(after_help = "Example:\n  sluice principals rotate ci > ci.token")]
    Rotate(RotateArguments),
    /// Revoke a principal: its token is refused at once, and its id never names another
    ///
    /// Its runs continue. `sluice runs cancel` cancels them.
    #[command(after_help = "Example:\n  sluice principals revoke ci")]
    Revoke {
        /// Id of the principal
        principal: PrincipalId,
    },
}

#[derive(clap::Args)]
pub(super) struct AddArguments {
    /// Id of the principal. It is the user of its runs
    principal: PrincipalId,
    /// Account that pays for its runs
    #[arg(long, value_name = "ACCOUNT")]
    account: AccountId,
    /// Role: viewer, member, operator or admin
    #[arg(long, default_value_t = PrincipalRole::Member, value_name = "ROLE")]
    role: PrincipalRole,
    /// Agent that it may run; may be repeated [default: all]
    #[arg(long = "agent", value_name = "AGENT")]
    agents: Vec<AgentId>,
    /// Repository that its runs may work on, an address or its beginning before `*`; may be repeated [default: all that
    /// the account may use]
    #[arg(long = "repository", value_name = "URL_OR_PREFIX")]
    repositories: Vec<RepoPattern>,
    /// Limit on tokens of each of its runs, beside the limit of the agent's entry
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    total_tokens: Option<u64>,
    /// Limit on cost of each of its runs in dollars, beside the limit of the agent's entry
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    cost: Option<NanoDollars>,
    #[command(flatten)]
    output: TokenOutput,
}

/// Form in which a token is printed.
#[derive(clap::Args, Clone, Copy)]
struct TokenOutput {
    /// Print JSON instead of the token alone
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct LsArguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct RotateArguments {
    /// Id of the principal
    principal: PrincipalId,
    #[command(flatten)]
    output: TokenOutput,
}

pub(super) async fn principals(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Ls(arguments) => ls(&context.store().await?, &arguments).await,
        Command::Add(arguments) => add(&context.serving_store().await?, arguments).await,
        Command::Rotate(RotateArguments { principal, output }) => {
            let token = new_token();
            let rotated = context.serving_store().await?.rotate_principal(&principal, &token).await?;
            print_token(&rotated, &token, output)
        }
        Command::Revoke { principal } => {
            context.serving_store().await?.revoke_principal(&principal).await?;
            Ok(Exit::Success)
        }
    }
}

async fn add(store: &Store, arguments: AddArguments) -> Result<Exit, Error> {
    let AddArguments { principal: id, account, role, agents, repositories, total_tokens, cost, output } =
        arguments;
    let limits = Budget { total_tokens, cost_nanodollars: cost, ..Budget::default() };
    let agents = (!agents.is_empty()).then_some(agents);
    let repositories: Vec<_> = repositories.iter().map(RepoPattern::to_string).collect();
    let repositories = (!repositories.is_empty()).then_some(repositories);
    let token = new_token();
    let new = NewPrincipal { id, account, role, agents, repositories, limits };
    let added = store.add_principal(&new, &token).await?;
    print_token(&added, &token, output)
}

fn new_token() -> ApiToken {
    // The cast keeps the lower half, which is as random as all bits.
    #[expect(clippy::cast_possible_truncation, reason = "half of the bits are enough for a key id")]
    let key_id = random::bits() as u64;
    ApiToken::from_random(key_id, [random::bits(), random::bits()])
}

/// Prints the token of `principal`. Says on stderr which principal it identifies, so that stdout can go into a file.
fn print_token(principal: &Principal, token: &ApiToken, output: TokenOutput) -> Result<Exit, Error> {
    let mut out = io::stdout();
    if output.json {
        writeln!(out, "{}", json!({ "principal": principal, "token": token.expose() }))?;
        return Ok(Exit::Success);
    }
    writeln!(out, "{}", token.expose())?;
    writeln!(
        io::stderr(),
        "this token is shown only now: it identifies {}, {} of account {}",
        principal.id,
        principal.role,
        principal.account
    )?;
    Ok(Exit::Success)
}

async fn ls(store: &Store, arguments: &LsArguments) -> Result<Exit, Error> {
    let principals = store.principals().await?;
    let mut out = io::stdout();
    if arguments.json {
        writeln!(out, "{}", terminal::safe_json(&json!({ "principals": principals }).to_string()))?;
        return Ok(Exit::Success);
    }
    let mut table =
        Table::new(["PRINCIPAL", "ACCOUNT", "ROLE", "AGENTS", "REPOSITORIES", "LAST USED", "STATE"]);
    for principal in principals {
        let agents = all_or(principal.agents.as_deref(), AgentId::as_str);
        let repositories = all_or(principal.repositories.as_deref(), String::as_str);
        table.row([
            principal.id.to_string(),
            principal.account.to_string(),
            principal.role.to_string(),
            agents,
            terminal::safe(&repositories).into_owned(),
            principal.used.map_or_else(|| "never".to_owned(), format_time),
            principal
                .revoked
                .map_or_else(|| "active".to_owned(), |at: UnixMillis| format!("revoked {}", format_time(at))),
        ]);
    }
    write!(out, "{table}")?;
    Ok(Exit::Success)
}

/// Returns the names in `list`; "all" if it is absent.
fn all_or<T>(list: Option<&[T]>, name: fn(&T) -> &str) -> String {
    list.map_or_else(|| "all".to_owned(), |list| list.iter().map(name).collect::<Vec<_>>().join(", "))
}
