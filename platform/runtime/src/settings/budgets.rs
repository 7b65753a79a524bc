//! Reads the limits of runs and accounts.

use std::collections::BTreeMap;

use platform_core::{
    budget::Budget,
    credits::Credits,
    id::{AccountId, ModelName, ToolName},
    priority::Priority,
    tariff::{ANY_MODEL, Tariff, find_price},
};

use super::{SectionName, Settings};
use crate::config::{About, Section, ValidationError, written_as_word};

/// `[accounts."id"]`: settings of accounts.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    /// `[accounts."*"]`: settings of each account that is not named.
    pub any: Account,
    /// Settings of the named accounts.
    pub named: BTreeMap<AccountId, Account>,
}

/// Settings of an account.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Limits over all its runs.
    pub budget: Budget,
    /// Highest priority of its runs.
    pub priority: Priority,
    /// Balance below which its calls are refused, instead of that of all accounts.
    pub floor: Option<Credits>,
    /// Repositories that its runs may name, instead of those of all accounts.
    pub repositories: Option<Vec<String>>,
    /// Tools on the host that its runs may call at most; all that their agents have if absent.
    pub host_tools: Option<Vec<ToolName>>,
}

written_as_word!(Priority { Low: "low", Normal: "normal", High: "high" });

impl Accounts {
    /// Returns the settings of `account`.
    #[must_use]
    pub fn of(&self, account: &AccountId) -> &Account {
        self.named.get(account).unwrap_or(&self.any)
    }
}

/// Name for all accounts that have no entry of their own.
const ANY_ACCOUNT: &str = "*";

pub(super) fn accounts(root: &Section<'_>) -> Accounts {
    let mut accounts = Accounts::default();
    let read = |id: &str, section: &Section<'_>| {
        let budget = budget(section, &Budget::default());
        let priority = section.field("priority", "Highest priority that its runs may have.");
        let floor = section.field(
            "floor",
            "Balance in credits below which its calls are refused, instead of `billing.floor`.",
        );
        let doc = "Repositories that its runs may name, instead of `relay.repositories`.";
        let account = Account {
            budget,
            priority: priority.or(Priority::Normal),
            floor: floor.optional(),
            repositories: section.field("repositories", doc).list(),
            host_tools: read_host_tools(section),
        };
        match AccountId::parse(id) {
            _ if id == ANY_ACCOUNT => accounts.any = account,
            Ok(id) => drop(accounts.named.insert(id, account)),
            Err(error) => section.reject_itself(error.to_string()),
        }
    };
    root.each(
        SectionName::Accounts.name(),
        "Budget and highest priority of an account over all its runs, by account id; `*` is each account that is not named.",
        read,
    );
    accounts
}

/// Reads the tools that runs of an account may call.
fn read_host_tools(section: &Section<'_>) -> Option<Vec<ToolName>> {
    let doc = "Tools on the host that its runs may call at most, of those that their agents have; all of these if absent, none if empty.";
    section.field("host_tools", doc).list()
}

/// Reads the limits in `section`; `defaults` apply where it has none.
pub(super) fn budget(section: &Section<'_>, defaults: &Budget) -> Budget {
    let count = |name, doc, default: Option<u64>| {
        let field = section.field(name, doc);
        match default {
            Some(default) => Some(field.or(default)),
            None => field.optional(),
        }
    };
    Budget {
        requests: count("requests", "Calls that are not refused, in all.", defaults.requests),
        requests_per_minute: count(
            "requests_per_minute",
            "Calls a minute; so many may come at once after a pause.",
            defaults.requests_per_minute,
        ),
        calls_in_flight: count("calls_in_flight", "Calls at a time.", defaults.calls_in_flight),
        input_tokens: count("input_tokens", "Tokens of prompts, in all.", defaults.input_tokens),
        output_tokens: count("output_tokens", "Tokens of answers, in all.", defaults.output_tokens),
        total_tokens: count("total_tokens", "Tokens of prompts and answers, in all.", defaults.total_tokens),
        cost_nanodollars: section
            .field(
                "cost",
                "Dollars, in all, as text: `\"2.50\"`. Under this limit only models can be called that have a price.",
            )
            .optional(),
    }
}

/// Returns the conflicts between cost limits and prices: under a cost limit a model without a price cannot be called.
/// There are none if the upstream may show the price.
pub(super) fn errors(settings: &Settings) -> Vec<ValidationError> {
    let default = settings.upstream.default_model.as_deref();
    let agents = settings.agents.iter().map(|(id, agent)| {
        let models = agent.models.iter().map(ModelName::as_str).chain(agent.model.as_deref());
        let fallback = agent.model.is_none().then_some(default).flatten().filter(|_| agent.models.is_empty());
        (format!("agents.{id}"), &agent.budget, models.chain(fallback).collect::<Vec<_>>())
    });
    let runs = settings.runs.iter().map(|(id, run)| {
        let models = run.grant.models.iter().flatten().map(ModelName::as_str);
        (format!("runs.{id}"), &run.grant.budget, models.collect())
    });
    let named = settings.accounts.named.iter().map(|(id, account)| (format!("accounts.{id}"), account));
    let accounts = named.chain([(format!("accounts.{ANY_ACCOUNT}"), &settings.accounts.any)]);
    let accounts = accounts.map(|(key, account)| (key, &account.budget, Vec::new()));
    let limited =
        agents.chain(runs).chain(accounts).filter(|(_, budget, _)| budget.cost_nanodollars.is_some());
    limited
        .filter_map(|(key, _, models)| {
            let problem = find_unpriced(settings, models)?;
            Some(ValidationError { about: About::Setting(format!("{key}.cost")), problem })
        })
        .collect()
}

/// Returns the reason why one of `models` cannot be called under a cost limit. If `models` is empty, any model may be
/// called.
fn find_unpriced(settings: &Settings, mut models: Vec<&str>) -> Option<String> {
    models.retain(|model| !settings.may_have_price(model));
    models.sort_unstable();
    models.dedup();
    match models.as_slice() {
        [] if settings.prices.is_empty() && !settings.upstream.model_info => Some(format!(
            "under a limit of cost only models with a price can be called, and none has one: add [prices.\"MODEL\"], or [prices.\"{ANY_MODEL}\"] for all"
        )),
        [] => None,
        unpriced => Some(format!(
            "under a limit of cost only models with a price can be called, and it may name {}: add [prices.\"{}\"], or [prices.\"{ANY_MODEL}\"] for all",
            unpriced.join(", "),
            unpriced[0],
        )),
    }
}

impl Settings {
    /// Returns whether calls of `model` have a price, or the upstream may show one.
    #[must_use]
    pub fn may_have_price(&self, model: &str) -> bool {
        self.upstream.model_info || self.price_of(model).is_some()
    }

    /// Returns the price of `model`, and the name under which it is configured.
    pub(super) fn price_of(&self, model: &str) -> Option<(&str, Tariff)> {
        let found = find_price(model, |name| self.prices.get_key_value(name));
        found.map(|(name, price)| (name.as_str(), *price))
    }
}
