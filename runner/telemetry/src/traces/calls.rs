//! Makes spans of model calls from the journal. Each record is one span.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    error::Error,
    time::{Duration, UNIX_EPOCH},
};

use platform_core::{
    control::Cursor,
    id::RunId,
    record::{ExchangeRecord, JournalLine, Outcome, TokensSource, hash},
    route::Route,
    traceparent::SpanId,
};
use platform_runtime::{report, settings::Settings};
use runner_control_client::{DataPlane, Follow, Lines};
use runner_store::Store;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    context::Context,
    export::{BATCH, GATHER, Teller},
    runs,
    span::{Kind, Span, Value},
};

/// Name of the cursor.
const CONSUMER: &str = "traces";
/// Pause before the next attempt to read the journal or to reach the collector.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Number of runs whose trace context is remembered.
const KNOWN: usize = 1024;

type Boxed = Box<dyn Error>;

/// Trace contexts of runs with recent calls; `None` for a run that the store does not know.
type Known = BTreeMap<(RunId, u32), Option<Context>>;

/// Spans that are exported together, and the cursor after them.
struct Batch {
    spans: Vec<Span>,
    end: Cursor,
}

impl Teller {
    /// Exports the calls in `data_plane`'s journal from the stored cursor on, or from now on. Never returns.
    pub(super) async fn follow(&self, store: &Store, data_plane: &DataPlane) -> Infallible {
        let mut known = Known::new();
        let (mut said, mut pause) = (String::new(), PAUSE);
        loop {
            let began = Instant::now();
            let Err(error) = self.follow_once((store, data_plane), &mut known).await;
            let error = report::chain(error.as_ref());
            if error != said {
                tracing::warn!(error, "the journal cannot be read for traces; it is tried again");
                said = error;
            }
            pause = if began.elapsed() > LONGEST_PAUSE { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            sleep(pause).await;
        }
    }

    async fn follow_once(
        &self,
        (store, data_plane): (&Store, &DataPlane),
        known: &mut Known,
    ) -> Result<Infallible, Boxed> {
        let health = data_plane.health().await?;
        let cursors = store.cursors(CONSUMER).await?;
        let left = cursors.into_iter().map(|known| known.cursor).find(|at| at.journal == health.journal_id);
        let mut at = match left {
            Some(at) => at,
            // Calls from before tracing was switched on are not exported.
            None => Cursor { journal: health.journal_id, seq: health.journal_seq, hash: String::new() },
        };
        store.acknowledge(CONSUMER, &at).await?;
        let mut lines = match data_plane.journal(Some(at.seq), Follow::On).await {
            Err(error) if error.is_removed() => {
                tracing::warn!(
                    after = at.seq,
                    "calls are not traced: the journal does not have them any more"
                );
                data_plane.journal(None, Follow::On).await?
            }
            lines => lines?,
        };
        loop {
            let batch = self.gather((&mut lines, at.clone()), store, known).await?;
            self.tell_patiently(&batch.spans).await;
            at = batch.end;
            store.acknowledge(CONSUMER, &at).await?;
        }
    }

    /// Exports `spans`, and retries for as long as the collector is unavailable.
    async fn tell_patiently(&self, spans: &[Span]) {
        let mut waits = false;
        while let Err(error) = self.try_tell(spans).await {
            if !error.passes() {
                return self.give_up(spans, &error);
            }
            if !std::mem::replace(&mut waits, true) {
                tracing::warn!(error = %report::chain(&error), "calls are not traced just now; they wait in the journal");
            }
            sleep(PAUSE).await;
        }
        if waits {
            tracing::warn!("calls are traced again");
        }
    }

    /// Reads the next lines, as many as come within `GATHER` of the first.
    async fn gather(
        &self,
        (lines, mut end): (&mut Lines, Cursor),
        store: &Store,
        known: &mut Known,
    ) -> Result<Batch, Boxed> {
        let (mut spans, mut until) = (Vec::new(), None);
        while spans.len() < BATCH {
            let line = match until {
                None => lines.next().await,
                Some(until) => match timeout_at(until, lines.next()).await {
                    Ok(line) => line,
                    Err(_elapsed) => break,
                },
            };
            let line = line?.ok_or("the proxy went away")?;
            until.get_or_insert_with(|| Instant::now() + GATHER);
            // Skips lines that a later version wrote.
            let Ok(JournalLine { seq, record, .. }) = serde_json::from_slice(line) else { continue };
            end.seq = seq;
            end.hash = String::from_utf8_lossy(&hash(line)).into_owned();
            spans.extend(self.call(&record, store, known).await?);
        }
        Ok(Batch { spans, end })
    }

    async fn call(
        &self,
        record: &ExchangeRecord,
        store: &Store,
        known: &mut Known,
    ) -> Result<Option<Span>, Boxed> {
        let key = (record.run_id.clone(), record.attempt);
        if known.len() >= KNOWN {
            known.clear();
        }
        let found = match known.get(&key) {
            Some(found) => found.clone(),
            None => {
                let found = Context::find(store, &record.run_id).await?;
                known.insert(key, found.clone());
                found
            }
        };
        let parent = found.as_ref().map(|context| context.span(runs::AGENT));
        let unknown = || Context::unknown(&self.installation, &record.run_id, record.attempt);
        Ok(span((record, &self.models), &found.unwrap_or_else(unknown), parent))
    }
}

/// Returns the span of a call; `None` if its trace is not sampled, or its time is unknown.
fn span(
    (record, models): (&ExchangeRecord, &BTreeSet<String>),
    context: &Context,
    parent: Option<SpanId>,
) -> Option<Span> {
    let start = humantime::parse_rfc3339(&record.ts).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let call = record.litellm_call_id.to_string();
    let model = model(record, models);
    let operation = operation(record.route);
    let mut attributes = vec![
        ("gen_ai.operation.name", operation.into()),
        ("gen_ai.provider.name", provider(record.route).into()),
        ("sluicegate.run_id", record.run_id.as_str().into()),
        ("sluicegate.account", record.account.as_str().into()),
        ("sluicegate.call_id", call.as_str().into()),
        ("sluicegate.outcome", record.outcome.word().into()),
        ("sluicegate.calls", Value::Number(record.calls)),
        ("http.response.status_code", Value::Number(record.status.into())),
    ];
    attributes.extend(model.map(|model| ("gen_ai.request.model", model.into())));
    attributes.extend(details(record));
    Some(Span {
        trace: context.trace,
        id: SpanId::derived(&["call", &call]),
        parent,
        name: operation.to_owned(),
        kind: Kind::Client,
        start,
        end: start + Duration::from_micros(record.duration_us),
        attributes,
        failed: failed(record),
    })
    .filter(|_| context.sampled)
}

/// Returns the models that `settings` name.
pub(super) fn models(settings: &Settings) -> BTreeSet<String> {
    let agents = settings.agents.values();
    let named = agents.clone().flat_map(|agent| agent.models.iter().map(ToString::to_string));
    let default =
        agents.filter_map(|agent| agent.model.clone()).chain(settings.upstream.default_model.clone());
    named.chain(default).chain(settings.prices.keys().cloned()).collect()
}

/// Returns the requested model if it is configured or answered: any other name may be arbitrary text of the agent's.
fn model<'r>(record: &'r ExchangeRecord, models: &BTreeSet<String>) -> Option<&'r str> {
    let asked = record.model_asked.as_ref()?;
    (models.contains(asked.as_str()) || record.model_answered.as_ref() == Some(asked)).then(|| asked.as_str())
}

/// Returns the attributes that only some calls have.
fn details(record: &ExchangeRecord) -> Vec<(&'static str, Value)> {
    let mut known = Vec::new();
    let mut text = |key, text: Option<&str>| known.extend(text.map(|text| (key, Value::from(text))));
    text("gen_ai.response.model", record.model_answered.as_ref().map(|model| model.as_str()));
    text("sluicegate.refusal", record.refusal.map(|refusal| refusal.code()));
    text("error.type", failed(record));
    let reason = record.finish_reason.as_ref().map(|reason| Value::Texts(vec![reason.to_string()]));
    known.extend(reason.map(|reason| ("gen_ai.response.finish_reasons", reason)));
    if record.tokens_source != TokensSource::None {
        known.extend([
            ("gen_ai.usage.input_tokens", Value::Number(record.tokens.input)),
            ("gen_ai.usage.output_tokens", Value::Number(record.tokens.output)),
            ("gen_ai.usage.cache_read.input_tokens", Value::Number(record.tokens.cached)),
            ("sluicegate.tokens_source", record.tokens_source.word().into()),
        ]);
    }
    // Exact up to nine million dollars.
    #[expect(clippy::cast_precision_loss, reason = "a figure to look at; receipts are made elsewhere")]
    let cost = record.cost_nanodollars.map(|cost| Value::Fraction(cost.0 as f64 / 1e9));
    known.extend(cost.map(|cost| ("sluicegate.cost_dollars", cost)));
    #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
    let first = record.ttfb_us.map(|first| Value::Fraction(first as f64 / 1e6));
    known.extend(first.map(|first| ("sluicegate.first_byte_seconds", first)));
    known
}

/// Returns the code of a call's failure; `None` if it did not fail.
fn failed(record: &ExchangeRecord) -> Option<&'static str> {
    match (record.outcome, record.refusal) {
        (Outcome::Complete, _) if record.status < 400 => None,
        (Outcome::Complete, _) => Some("upstream_error"),
        (_, Some(refusal)) => Some(refusal.code()),
        (outcome, None) => Some(outcome.word()),
    }
}

/// Returns OpenTelemetry's name for the operation of a route.
const fn operation(route: Route) -> &'static str {
    match route {
        Route::ChatCompletions | Route::Responses | Route::Messages => "chat",
        Route::Completions => "text_completion",
        Route::Embeddings => "embeddings",
        Route::CountTokens => "count_tokens",
        Route::Models => "models",
        Route::Unknown => "unknown",
    }
}

/// Returns the provider whose conventions a route follows. The provider behind the upstream is not known.
const fn provider(route: Route) -> &'static str {
    match route {
        Route::Messages | Route::CountTokens => "anthropic",
        _ => "openai",
    }
}

#[cfg(test)]
mod tests {
    use platform_core::{
        id::{CallId, InstallationId},
        record::Tokens,
        untrusted::JournalText,
    };
    use platform_runtime::config::Sources;
    use serde_json::json;

    use super::*;

    fn record(asked: &str, answered: Option<&str>) -> ExchangeRecord {
        let record = json!({
            "ts": "2026-11-21T08:30:00.000000Z", "run_id": "r1", "attempt": 0, "account": "acct-1", "user": null,
            "graph": "sandbox:agent", "identity": "socket", "route": "chat_completions", "model_asked": null,
            "model_answered": null, "finish_reason": null, "stream": false, "status": 200, "outcome": "complete",
            "refusal": null, "rule": null, "timeout": null, "request_bytes": 0, "response_bytes": 0, "ttfb_us": null,
            "duration_us": 1, "tokens": Tokens::default(), "tokens_source": "none", "cost_nanodollars": null,
            "cost_source": "none", "litellm_call_id": CallId::new(1, 1), "tools": [], "kind": "model", "calls": 1, "tap": "off",
        });
        let record: ExchangeRecord = serde_json::from_value(record).unwrap();
        let (model_asked, model_answered) = (Some(JournalText::of(asked)), answered.map(JournalText::of));
        ExchangeRecord { model_asked, model_answered, ..record }
    }

    #[test]
    fn a_model_is_named_if_it_is_configured_or_answered_and_never_in_an_agents_words() {
        let file = "[upstream]\ndefault_model = 'default'\n[agents.'a:b']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nmodel = 'own'\nmodels = ['own', 'listed', 'default']\n\
            [prices.priced]\ninput = '1'\noutput = '1'\n";
        let file = Some(("s.toml".into(), file.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
        let models = models(&settings);
        let installation = InstallationId::parse("default").unwrap();
        let context = Context::unknown(&installation, &RunId::parse("r1").unwrap(), 0);
        let told = |record: &ExchangeRecord| {
            let span = span((record, &models), &context, None).unwrap();
            assert_eq!(span.name, "chat");
            format!("{span:?}")
        };
        for answered in [None, Some("other")] {
            assert!(!told(&record("my-secret-word", answered)).contains("my-secret-word"));
            // Control: a configured model is exported.
            for model in ["default", "own", "listed", "priced"] {
                assert!(
                    told(&record(model, answered))
                        .contains(&format!("(\"gen_ai.request.model\", Text(\"{model}\"))"))
                );
            }
        }
        assert!(told(&record("known-there", Some("known-there"))).contains("gen_ai.request.model"));
    }
}
