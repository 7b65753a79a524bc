//! Makes the receipt of a call from its record. Pure.

use std::{collections::BTreeSet, time::UNIX_EPOCH};

use platform_core::{
    id::ModelName,
    money::NanoDollars,
    record::{CostSource, ExchangeRecord, Identity, Kind, TokensSource},
};
use platform_runtime::settings::{Execution, Settings};
use runner_model::receipt::{
    CallReference, ChargeReason, ExecutorType, Receipt, ReceiptKind, ReceiptReference, ReceiptSource,
};
use runner_store::UnixMillis;

/// Makes the receipt of a call that began at `began`. Returns `None` for a call that was not sent upstream.
pub(crate) fn receipt(record: &ExchangeRecord, began: UnixMillis, settings: &Settings) -> Option<Receipt> {
    let Settings { agents, billing, .. } = settings;
    if record.kind != Kind::Model || !was_sent(record) {
        return None;
    }
    let (amount, reason) = charge(record, &billing.free_models);
    let is_at_gateway = agents.get(&record.graph).is_some_and(|agent| agent.mode == Execution::Gateway);
    Some(Receipt {
        source: ReceiptSource::Journal,
        reference: ReceiptReference::first(CallReference {
            run_id: record.run_id.clone(),
            attempt: record.attempt,
            call_id: record.litellm_call_id,
        }),
        kind: ReceiptKind::ModelCall,
        account: record.account.clone(),
        user: record.user.clone(),
        agent: record.graph.clone(),
        // A run's token comes from a gateway, or from an application that has the run's key.
        executor: match record.identity {
            Identity::Token if is_at_gateway => ExecutorType::Gateway,
            identity => ExecutorType::of(identity),
        },
        model: record.model_asked.clone().or_else(|| record.model_answered.clone()),
        tokens: record.tokens,
        tokens_source: record.tokens_source,
        amount: amount.into(),
        credits: billing.rate.credits(amount),
        rate: billing.rate,
        reason,
        called_ms: began.0,
    })
}

/// Returns the time at which a call began.
pub(crate) fn began(record: &ExchangeRecord) -> UnixMillis {
    let began =
        humantime::parse_rfc3339(&record.ts).ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    UnixMillis(began.and_then(|time| i64::try_from(time.as_millis()).ok()).unwrap_or_default())
}

/// Returns whether the upstream answered, or may have worked on the call.
fn was_sent(record: &ExchangeRecord) -> bool {
    record.ttfb_us.is_some() || record.tokens_source != TokensSource::None
}

/// Returns the amount of a receipt, and the reason for it.
fn charge(record: &ExchangeRecord, free_models: &BTreeSet<ModelName>) -> (NanoDollars, ChargeReason) {
    const NOTHING: NanoDollars = NanoDollars(0);
    let model = record.model_asked.as_ref().map(|model| model.as_str());
    let is_free = model.is_some_and(|model| free_models.contains(model));
    let used_tokens = record.tokens.input > 0 || record.tokens.output > 0;
    match (record.cost_source, record.cost_nanodollars) {
        // A journal of an earlier version has the 0 of an upstream that knows no price.
        (CostSource::Upstream, Some(cost)) if cost > NOTHING => (cost, ChargeReason::UpstreamCost),
        (CostSource::Unconfirmed, Some(cost)) => (cost, ChargeReason::Unconfirmed),
        (CostSource::Priced, Some(cost)) => (cost, ChargeReason::PriceTable),
        _ if !used_tokens => (NOTHING, ChargeReason::NoUsage),
        _ if is_free => (NOTHING, ChargeReason::FreeModel),
        _ => (NOTHING, ChargeReason::Unpriced),
    }
}

#[cfg(test)]
mod tests {
    use platform_core::{
        credits::{CreditRate, Credits},
        id::CallId,
        money::SignedNanoDollars,
        record::Tokens,
    };
    use platform_runtime::{config::Sources, settings::Billing};
    use serde_json::json;

    use super::*;

    fn record() -> ExchangeRecord {
        let record = json!({
            "ts": "2026-11-21T08:30:00.250000Z", "run_id": "r1", "attempt": 2, "account": "acct-1", "user": "u-1",
            "graph": "sandbox:agent", "identity": "socket", "route": "chat_completions", "model_asked": "small",
            "model_answered": "small-2", "finish_reason": null, "stream": false, "status": 200, "outcome": "complete",
            "refusal": null, "rule": null, "timeout": null, "request_bytes": 0, "response_bytes": 0, "ttfb_us": 5,
            "duration_us": 1, "tokens": Tokens { input: 3, output: 4, ..Tokens::default() }, "tokens_source": "exact",
            "cost_nanodollars": null, "cost_source": "none", "litellm_call_id": CallId::new(1, 1), "tools": [],
            "kind": "model", "calls": 1, "tap": "off",
        });
        serde_json::from_value(record).unwrap()
    }

    fn receipt(record: &ExchangeRecord, free_models: &[&str]) -> Option<Receipt> {
        let free_models = free_models.iter().map(|model| ModelName::parse(model).unwrap()).collect();
        let billing = Billing { free_models, ..Billing::default() };
        super::receipt(record, began(record), &Settings { billing, ..settings("") })
    }

    fn settings(toml: &str) -> Settings {
        let file = Some(("s.toml".into(), toml.to_owned()));
        Settings::read(&Sources { file, ..Sources::default() }).unwrap()
    }

    fn priced(source: CostSource, cost: Option<u64>) -> ExchangeRecord {
        ExchangeRecord { cost_source: source, cost_nanodollars: cost.map(NanoDollars), ..record() }
    }

    #[test]
    fn the_first_known_price_applies() {
        use ChargeReason::{FreeModel, NoUsage, PriceTable, Unconfirmed, Unpriced, UpstreamCost};
        let no_tokens = |record| ExchangeRecord { tokens: Tokens::default(), ..record };
        let table = [
            (priced(CostSource::Upstream, Some(23_000)), vec!["small"], 23_000, UpstreamCost),
            (priced(CostSource::Priced, Some(7)), vec!["small"], 7, PriceTable),
            (priced(CostSource::Unconfirmed, Some(7)), vec!["small"], 7, Unconfirmed),
            (priced(CostSource::Priced, Some(0)), vec![], 0, PriceTable),
            (priced(CostSource::Upstream, Some(0)), vec!["small"], 0, FreeModel),
            (priced(CostSource::None, None), vec!["small"], 0, FreeModel),
            // An upstream that knows no price says 0: the call is not free for that.
            (priced(CostSource::Upstream, Some(0)), vec![], 0, Unpriced),
            (priced(CostSource::None, None), vec!["small-2"], 0, Unpriced),
            (no_tokens(priced(CostSource::None, None)), vec![], 0, NoUsage),
            (no_tokens(priced(CostSource::Upstream, Some(0))), vec!["small"], 0, NoUsage),
        ];
        for (record, listed, amount, reason) in table {
            let receipt = receipt(&record, &listed).unwrap();
            assert_eq!(
                (receipt.amount, receipt.reason),
                (SignedNanoDollars(amount), reason),
                "{record:?} {listed:?}"
            );
        }
    }

    #[test]
    fn only_sent_calls_have_receipts() {
        let unsent = ExchangeRecord { ttfb_us: None, tokens_source: TokensSource::None, ..record() };
        assert_eq!(receipt(&unsent, &[]), None);
        let tool = ExchangeRecord { kind: Kind::Tool, ..record() };
        assert_eq!(receipt(&tool, &[]), None);
        // The proxy went down before an answer: the model may have worked.
        let interrupted =
            ExchangeRecord { ttfb_us: None, tokens_source: TokensSource::Estimated, ..record() };
        assert!(receipt(&interrupted, &[]).is_some());
    }

    /// A call of a host tool is sent, and has an answer.
    #[test]
    fn tool_calls_have_no_receipts() {
        let call = |kind| ExchangeRecord { kind, ttfb_us: Some(1), ..priced(CostSource::Priced, Some(5)) };
        assert_eq!(receipt(&call(Kind::Tool), &[]), None);
        assert!(receipt(&call(Kind::Model), &[]).is_some(), "the control");
    }

    #[test]
    fn a_receipt_names_its_call() {
        let gateway = ExchangeRecord { identity: Identity::Slot, ..record() };
        let receipt = receipt(&gateway, &[]).unwrap();
        assert_eq!(receipt.reference.to_string(), format!("r1/2/{}", CallId::new(1, 1)));
        assert_eq!((receipt.executor.word(), receipt.called_ms), ("gateway", 1_795_249_800_250));
    }

    /// A gateway's plugin sends the token of a run, as an application with the run's key does.
    #[test]
    fn a_token_of_a_gateways_run_is_a_gateways() {
        let record = ExchangeRecord { identity: Identity::Token, ..record() };
        let entry = format!("[gateways.g]\n[agents.'{}']\nmode = 'gateway'\ngateways = ['g']", record.graph);
        for (toml, executor) in [("", "sandbox"), (entry.as_str(), "gateway")] {
            let receipt = super::receipt(&record, began(&record), &settings(toml)).unwrap();
            assert_eq!(receipt.executor.word(), executor, "{toml}");
        }
    }

    #[test]
    fn a_receipt_costs_credits_by_the_rate_in_effect() {
        let record = priced(CostSource::Upstream, Some(23_000));
        assert_eq!(receipt(&record, &[]).unwrap().credits, Credits(230));
        let rate = CreditRate { markup: "1.25".parse().unwrap(), ..CreditRate::default() };
        let billing = Billing { rate, ..Billing::default() };
        let settings = Settings { billing, ..settings("") };
        let dearer = super::receipt(&record, began(&record), &settings).unwrap();
        assert_eq!((dearer.credits, dearer.rate), (Credits(288), rate));
    }
}
