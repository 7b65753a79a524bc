//! Implements `sluice models`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use platform_core::{
    control::{ModelPrice, PriceSource, UpstreamHealth, offers},
    tariff::find_price,
};
use platform_runtime::{settings::Settings, terminal};
use runner_control_client::DataPlane;
use serde::Serialize;

use super::{Context, Error, exit::Exit, table::Table};
use crate::doctor::{UpstreamProblem, upstream_in_words};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice models
  sluice models --json | jq -r '.models[] | select(.price == null).model'")]
pub(super) struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// A model that the upstream offers or that the configuration names.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ModelRow {
    model: String,
    /// The upstream lists it, or a pattern for it.
    offered: bool,
    /// Mark of `upstream.default_model`.
    default: bool,
    price: Option<PriceRow>,
    /// Agents that ask for it unless a run names another.
    agents: Vec<String>,
}

/// Price of a million tokens, in dollars.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct PriceRow {
    input: String,
    output: String,
    /// `table` for `[prices]`, `upstream` for what the upstream shows.
    source: PriceSource,
}

impl From<&ModelPrice> for PriceRow {
    fn from(price: &ModelPrice) -> Self {
        Self { input: price.input.to_string(), output: price.output.to_string(), source: price.source }
    }
}

pub(super) async fn models(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let settings = &context.settings;
    let data_plane = DataPlane::at(&settings.proxy.control_socket());
    let health = data_plane.upstream().await?;
    if let Some(problem) = UpstreamProblem::of(&health, settings.upstream.key_file.as_deref()) {
        return Err(problem.into());
    }
    let offered = match &health {
        UpstreamHealth::Ready { models, .. } => models.as_slice(),
        UpstreamHealth::Refused { .. } | UpstreamHealth::KeyUnknown | UpstreamHealth::Unreachable { .. } => {
            writeln!(io::stderr(), "note: the upstream {}", terminal::safe(&upstream_in_words(&health)))?;
            &[]
        }
    };
    let rows = rows(offered, settings, &data_plane.prices().await?);
    let mut out = io::stdout();
    if arguments.json {
        let json = serde_json::json!({ "upstream": settings.upstream.base_url, "models": rows });
        writeln!(out, "{}", terminal::safe_json(&json.to_string()))?;
    } else {
        write!(out, "{}", table(&rows))?;
    }
    Ok(Exit::Success)
}

/// Returns the `offered` models in the upstream's sequence, then those that only the configuration names.
fn rows(offered: &[String], settings: &Settings, prices: &[ModelPrice]) -> Vec<ModelRow> {
    let default = settings.upstream.default_model.as_deref();
    let mut users: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (id, agent) in &settings.agents {
        if let Some(model) = agent.model.as_deref().or(default) {
            users.entry(model).or_default().push(id.to_string());
        }
    }
    let is_listed = |model: &&str| offered.iter().any(|other| other == model);
    let only_named: BTreeSet<_> = settings.named_models().filter(|model| !is_listed(model)).collect();
    let row = |model: &str, offered| ModelRow {
        offered,
        default: default == Some(model),
        price: price_of(model, prices).map(PriceRow::from),
        agents: users.get(model).cloned().unwrap_or_default(),
        model: model.to_owned(),
    };
    let listed = offered.iter().map(|model| row(model, true));
    listed.chain(only_named.into_iter().map(|model| row(model, offers(offered, model)))).collect()
}

/// Returns the price that calls of `model` have.
pub(super) fn price_of<'p>(model: &str, prices: &'p [ModelPrice]) -> Option<&'p ModelPrice> {
    find_price(model, |name| prices.iter().find(|price| price.model == name))
}

fn table(rows: &[ModelRow]) -> Table<4> {
    let mut table = Table::new(["MODEL", "PRICE IN/OUT", "AGENTS", "NOTE"]);
    for row in rows {
        let price = row.price.as_ref().map(|price| format!("{} / {}", price.input, price.output));
        let default = row.default.then_some("default");
        let source = row.price.as_ref().map(|price| price.source);
        let shown = (source == Some(PriceSource::Upstream)).then_some("priced by the upstream");
        let missing = (!row.offered).then_some("the upstream does not list it");
        let notes: Vec<_> = default.into_iter().chain(shown).chain(missing).collect();
        table.row([
            row.model.clone(),
            price.unwrap_or_else(|| "-".to_owned()),
            row.agents.join(", "),
            notes.join(", "),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use platform_core::money::NanoDollars;
    use platform_runtime::config::Sources;

    use super::*;

    fn settings(text: &str) -> Settings {
        let file = Some(("s.toml".into(), text.to_owned()));
        Settings::read(&Sources { file, ..Sources::default() }).unwrap()
    }

    #[test]
    fn a_model_shows_its_price_and_its_agents() {
        let settings = settings(
            "[upstream]\ndefault_model = 'b'\n\
             [agents.'t:gone']\nmodel = 'gone'\nargv = ['x']\nimage = 'i:1'\n\
             [prices.priced]\ninput = '1'\noutput = '2'\n[prices.'c/one']\ninput = '1'\noutput = '2'\n",
        );
        let price = ModelPrice {
            model: "a".to_owned(),
            source: PriceSource::Upstream,
            input: NanoDollars(1_000_000_000),
            output: NanoDollars(2_500_000_000),
        };
        let rows = rows(&["a", "b", "c/*"].map(str::to_owned), &settings, &[price]);
        let shown = table(&rows).to_string();
        let lines: Vec<_> = shown.lines().collect();
        assert!(lines[1].starts_with("a ") && lines[1].contains("$1.00 / $2.50"), "{shown}");
        assert!(lines[1].ends_with("priced by the upstream"), "{shown}");
        assert!(lines[2].contains("sandbox:agent") && lines[2].ends_with("default"), "{shown}");
        assert!(lines[2].contains(" - "), "no price is not a zero: {shown}");
        assert!(lines[4].starts_with("c/one ") && !lines[4].contains("does not list it"), "{shown}");
        assert!(lines[5].contains("t:gone") && lines[5].contains("does not list it"), "{shown}");
        assert!(lines[6].starts_with("priced ") && lines[6].contains("does not list it"), "{shown}");
        assert_eq!(lines.len(), 7, "{shown}");
    }
}
