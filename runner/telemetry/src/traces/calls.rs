//! Creates spans of model calls from the journal, one for each record.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    error::Error,
    time::{Duration, UNIX_EPOCH},
};

use platform_core::{
    control::Cursor,
    id::RunId,
    json::{self, Bounds},
    record::{ExchangeRecord, JournalLine, Kind, Outcome, TokensSource, hash},
    route::Route,
    traceparent::SpanId,
};
use platform_runtime::{
    report::{self, ErrorText},
    retry::{Backoff, repeat_forever},
};
use runner_control_client::{DataPlane, Follow, Lines};
use runner_store::Store;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    export::{BATCH_DELAY, Exporter, MAX_BATCH},
    runs,
    span::{AttributeValue, Span, SpanKind},
    trace_context::TraceContext,
};

/// Name under which the store keeps the cursor.
const CURSOR_NAME: &str = "traces";
/// Delay before the next attempt to read the journal or to reach the collector.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Longest delay before the next attempt to read the journal.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Number of runs with a remembered trace context.
const MAX_CONTEXTS: usize = 1024;

type BoxedError = Box<dyn Error>;

/// Trace contexts of runs with recent calls; `None` for a run that the store does not know.
type RunContexts = BTreeMap<(RunId, u32), Option<TraceContext>>;

/// Spans that are exported together, and the cursor after them.
struct Batch {
    spans: Vec<Span>,
    end: Cursor,
}

impl Exporter {
    /// Exports the calls in `data_plane`'s journal after the stored cursor. Without a cursor, begins at the journal's
    /// present end. Never returns.
    pub(super) async fn follow(&self, store: &Store, data_plane: &DataPlane) -> Infallible {
        let mut contexts = RunContexts::new();
        let follow = async || {
            let followed = self.follow_once(store, data_plane, &mut contexts).await;
            followed.map_err(|error| ErrorText::of(error.as_ref()))
        };
        let warn = |error: &str| tracing::warn!(error, "journal not read for traces; tried again");
        repeat_forever(Backoff::new(RETRY_DELAY, MAX_RETRY_DELAY), follow, warn).await
    }

    async fn follow_once(
        &self,
        store: &Store,
        data_plane: &DataPlane,
        contexts: &mut RunContexts,
    ) -> Result<Infallible, BoxedError> {
        let health = data_plane.health().await?;
        let cursors = store.cursors(CURSOR_NAME).await?;
        let stored = cursors.into_iter().map(|held| held.cursor).find(|at| at.journal == health.journal_id);
        let mut at = match stored {
            Some(at) => at,
            // Calls from before tracing was switched on are not exported.
            None => Cursor { journal: health.journal_id, seq: health.journal_seq, hash: String::new() },
        };
        store.acknowledge(CURSOR_NAME, &at).await?;
        let mut lines = match data_plane.follow_journal(&at).await {
            Err(error) if error.is_removed() => {
                tracing::warn!(after = at.seq, "calls not traced: they were removed from the journal");
                data_plane.journal(None, Follow::On).await?
            }
            lines => lines?,
        };
        loop {
            let batch = self.read_batch(&mut lines, at.clone(), store, contexts).await?;
            self.export_until_accepted(&batch.spans).await;
            at = batch.end;
            store.acknowledge(CURSOR_NAME, &at).await?;
        }
    }

    /// Exports `spans`, and retries while the collector is unavailable.
    async fn export_until_accepted(&self, spans: &[Span]) {
        let mut is_waiting = false;
        while let Err(error) = self.try_export(spans).await {
            if !error.is_transient() {
                return self.count_dropped(spans, &error);
            }
            if !std::mem::replace(&mut is_waiting, true) {
                tracing::warn!(
                    error = report::chain(&error),
                    "collector unavailable; calls to trace wait in the journal"
                );
            }
            sleep(RETRY_DELAY).await;
        }
        if is_waiting {
            tracing::warn!("collector available again; calls are traced");
        }
    }

    /// Reads the next lines: at most `MAX_BATCH` spans, within `BATCH_DELAY` of the first line.
    async fn read_batch(
        &self,
        lines: &mut Lines,
        mut end: Cursor,
        store: &Store,
        contexts: &mut RunContexts,
    ) -> Result<Batch, BoxedError> {
        let mut spans = Vec::new();
        let mut deadline = None;
        while spans.len() < MAX_BATCH {
            let line = match deadline {
                None => lines.next().await,
                Some(deadline) => match timeout_at(deadline, lines.next()).await {
                    Ok(line) => line,
                    Err(_elapsed) => break,
                },
            };
            let line = line?.ok_or("the connection to the proxy broke")?;
            deadline.get_or_insert_with(|| Instant::now() + BATCH_DELAY);
            // A later version may have written lines that this one cannot read.
            let Ok(JournalLine { seq, record, .. }) = json::from_slice(line, Bounds::STORED) else {
                continue;
            };
            end.seq = seq;
            end.hash = String::from_utf8_lossy(&hash(line)).into_owned();
            if record.kind != Kind::Correction {
                spans.extend(self.span_of_call(&record, store, contexts).await?);
            }
        }
        Ok(Batch { spans, end })
    }

    async fn span_of_call(
        &self,
        record: &ExchangeRecord,
        store: &Store,
        contexts: &mut RunContexts,
    ) -> Result<Option<Span>, BoxedError> {
        let key = (record.run_id.clone(), record.attempt);
        if contexts.len() >= MAX_CONTEXTS {
            contexts.clear();
        }
        let context = match contexts.get(&key) {
            Some(context) => context.clone(),
            None => {
                let context = TraceContext::find(store, &record.run_id).await?;
                contexts.insert(key, context.clone());
                context
            }
        };
        let parent = context.as_ref().map(|context| context.span(runs::AGENT_SPAN));
        let unknown = || TraceContext::unknown(&self.installation, &record.run_id, record.attempt);
        Ok(call_span(record, &self.models, &context.unwrap_or_else(unknown), parent))
    }
}

/// Returns the span of a call; `None` if its trace is not sampled, or its time is unknown.
fn call_span(
    record: &ExchangeRecord,
    models: &BTreeSet<String>,
    context: &TraceContext,
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
        ("sluicegate.calls", AttributeValue::Number(record.calls)),
        ("http.response.status_code", AttributeValue::Number(record.status.into())),
    ];
    attributes.extend(model.map(|model| ("gen_ai.request.model", model.into())));
    attributes.extend(details(record));
    Some(Span {
        trace: context.trace,
        id: SpanId::derived(&["call", &call]),
        parent,
        name: operation.to_owned(),
        kind: SpanKind::Client,
        start,
        end: start + Duration::from_micros(record.duration_us),
        attributes,
        failure: failure_code(record),
    })
    .filter(|_| context.sampled)
}

/// Returns the requested model if it is configured, or if the answer names it. Any other name may be arbitrary text of
/// an agent.
fn model<'r>(record: &'r ExchangeRecord, models: &BTreeSet<String>) -> Option<&'r str> {
    let requested = record.model_asked.as_ref()?;
    (models.contains(requested.as_str()) || record.model_answered.as_ref() == Some(requested))
        .then(|| requested.as_str())
}

/// Returns the attributes that not every call has.
fn details(record: &ExchangeRecord) -> Vec<(&'static str, AttributeValue)> {
    let mut details = Vec::new();
    let mut text =
        |key, text: Option<&str>| details.extend(text.map(|text| (key, AttributeValue::from(text))));
    text("gen_ai.response.model", record.model_answered.as_ref().map(|model| model.as_str()));
    text("sluicegate.refusal", record.refusal.map(|refusal| refusal.code()));
    text("gen_ai.tool.name", record.tool.as_ref().map(|tool| tool.name.as_str()));
    text("sluicegate.tool_outcome", record.tool.as_ref().map(|tool| tool.outcome.word()));
    text("error.type", failure_code(record));
    let reason = record.finish_reason.as_ref().map(|reason| AttributeValue::Texts(vec![reason.to_string()]));
    details.extend(reason.map(|reason| ("gen_ai.response.finish_reasons", reason)));
    if record.tokens_source != TokensSource::None {
        details.extend([
            ("gen_ai.usage.input_tokens", AttributeValue::Number(record.tokens.input)),
            ("gen_ai.usage.output_tokens", AttributeValue::Number(record.tokens.output)),
            ("gen_ai.usage.cache_read.input_tokens", AttributeValue::Number(record.tokens.cached)),
            ("sluicegate.tokens_source", record.tokens_source.word().into()),
        ]);
    }
    // Exact up to nine million dollars.
    #[expect(clippy::cast_precision_loss, reason = "a figure to look at; receipts are made elsewhere")]
    let cost = record.cost_nanodollars.map(|cost| AttributeValue::Fraction(cost.0 as f64 / 1e9));
    details.extend(cost.map(|cost| ("sluicegate.cost_dollars", cost)));
    #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
    let first_byte = record.ttfb_us.map(|micros| AttributeValue::Fraction(micros as f64 / 1e6));
    details.extend(first_byte.map(|seconds| ("sluicegate.first_byte_seconds", seconds)));
    details
}

/// Returns the code of a call's failure; `None` if it did not fail.
fn failure_code(record: &ExchangeRecord) -> Option<&'static str> {
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
        Route::CountTokens | Route::InputTokens => "count_tokens",
        Route::Compact => "compact",
        Route::Models => "models",
        // OpenTelemetry's name for the execution of a tool.
        Route::ToolExec | Route::Mcp => "execute_tool",
        Route::Unknown => "unknown",
    }
}

/// Returns the provider that sets the conventions of a route. The provider behind the upstream is unknown.
const fn provider(route: Route) -> &'static str {
    match route {
        Route::Messages | Route::CountTokens => "anthropic",
        Route::ToolExec | Route::Mcp => "sluicegate",
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
    use platform_runtime::{config::Sources, settings::Settings};
    use serde_json::json;

    use super::*;

    fn record(requested: &str, answered: Option<&str>) -> ExchangeRecord {
        let record = json!({
            "ts": "2026-11-21T08:30:00.000000Z", "run_id": "r1", "attempt": 0, "account": "acct-1", "user": null,
            "graph": "sandbox:agent", "identity": "socket", "route": "chat_completions", "model_asked": null,
            "model_answered": null, "finish_reason": null, "stream": false, "status": 200, "outcome": "complete",
            "refusal": null, "rule": null, "timeout": null, "request_bytes": 0, "response_bytes": 0, "ttfb_us": null,
            "duration_us": 1, "tokens": Tokens::default(), "tokens_source": "none", "cost_nanodollars": null,
            "cost_source": "none", "litellm_call_id": CallId::new(1, 1), "tools": [], "kind": "model", "calls": 1, "tap": "off",
        });
        let record: ExchangeRecord = serde_json::from_value(record).unwrap();
        let (model_asked, model_answered) = (Some(JournalText::of(requested)), answered.map(JournalText::of));
        ExchangeRecord { model_asked, model_answered, ..record }
    }

    #[test]
    fn spans_name_only_known_models() {
        let file = "[upstream]\ndefault_model = 'default'\n[agents.'a:b']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nmodel = 'own'\nmodels = ['own', 'listed', 'default']\n\
            [prices.priced]\ninput = '1'\noutput = '1'\n\
            [models.limited]\ncontext_window = 9\n[billing]\nfree_models = ['free']\n";
        let file = Some(("s.toml".into(), file.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
        let models: BTreeSet<_> = settings.named_models().map(str::to_owned).collect();
        let installation = InstallationId::parse("default").unwrap();
        let context = TraceContext::unknown(&installation, &RunId::parse("r1").unwrap(), 0);
        let describe = |record: &ExchangeRecord| {
            let span = call_span(record, &models, &context, None).unwrap();
            assert_eq!(span.name, "chat");
            format!("{span:?}")
        };
        for answered in [None, Some("other")] {
            assert!(!describe(&record("my-secret-word", answered)).contains("my-secret-word"));
            // Control: a configured model is exported.
            for model in ["default", "own", "listed", "priced", "limited", "free"] {
                assert!(
                    describe(&record(model, answered))
                        .contains(&format!("(\"gen_ai.request.model\", Text(\"{model}\"))"))
                );
            }
        }
        assert!(describe(&record("known-there", Some("known-there"))).contains("gen_ai.request.model"));
    }
}
