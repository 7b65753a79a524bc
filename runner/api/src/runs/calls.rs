//! Lists the calls of a run, as the journal records them.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use platform_core::{
    money::NanoDollars,
    record::{ExchangeRecord, Tokens},
    refusal::Refusal,
    untrusted::JournalText,
};
use runner_audit::advice::{self, Advice, Setting};
use runner_model::lifecycle::State as RunState;
use runner_store::{CallPlace, RecordedCall};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::find;
use crate::{
    body::{ObjectId, read_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::schemas,
    paging::{PageSizes, cut_page, invalid_cursor},
};

const PAGES: PageSizes = PageSizes { usual: 100, most: 1000, objects: "calls" };

/// Query of the calls of a run.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct CallsQuery {
    /// Value of `nextCursor` of the page before.
    #[param(pattern = r"^[0-9a-f-]{1,64}\.[0-9]{1,18}$", nullable = false)]
    cursor: Option<String>,
    /// Most calls of a page; 100 if absent.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
}

/// Page of the calls of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CallPage)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallPageView<'c> {
    calls: Vec<CallView<'c>>,
    /// Value of `cursor` for the next page; null on the last page.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Call of a run. Texts of agents and upstreams are replaced by a digest unless they are short and plain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Call)]
#[serde(rename_all = "camelCase")]
struct CallView<'c> {
    /// Id under which the upstream knows the call.
    call_id: String,
    /// Time at which the call began.
    #[schema(format = DateTime)]
    at: &'c str,
    attempt: u32,
    #[schema(value_type = schemas::CallKind)]
    kind: &'static str,
    /// Route of the model API.
    route: &'static str,
    #[schema(required = true)]
    model_asked: Option<&'c str>,
    #[schema(required = true)]
    model_answered: Option<&'c str>,
    stream: bool,
    /// HTTP status of the answer.
    status: u16,
    #[schema(value_type = schemas::CallOutcome)]
    outcome: &'static str,
    /// Code of the reason why the call was refused.
    #[schema(required = true)]
    refusal: Option<&'static str>,
    /// Rule that decided the refusal.
    #[schema(required = true)]
    rule: Option<&'c str>,
    /// Timeout that passed.
    #[schema(required = true)]
    timeout: Option<&'static str>,
    /// Reason why the model stopped.
    #[schema(required = true)]
    finish_reason: Option<&'c str>,
    tokens: CallTokensView,
    #[schema(value_type = schemas::TokensAccuracy)]
    tokens_source: &'static str,
    /// Dollars, as text, so that no float rounds them.
    #[schema(required = true)]
    cost: Option<String>,
    #[schema(value_type = schemas::CallCostSource)]
    cost_source: &'static str,
    /// Names of the tools that the answer called.
    tools: Vec<&'c str>,
    duration_ms: f64,
    #[schema(required = true)]
    first_byte_ms: Option<f64>,
    /// Number of calls: more than one only for a flood of calls that were never sent.
    calls: u64,
    /// Explanation of a refusal, of an error of the upstream, or of an answer that was cut at its limit.
    #[schema(required = true)]
    advice: Option<AdviceView>,
}

/// Explanation of a refusal, with what would change it. Remedies are for operators: others get empty lists.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CallAdvice)]
struct AdviceView {
    why: String,
    /// Commands that would change the decision, or show more of it.
    commands: Vec<String>,
    /// Settings that would change the decision for good.
    settings: Vec<AdvisedSettingView>,
}

/// Setting to change.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdvisedSetting)]
struct AdvisedSettingView {
    /// Heading of the section in TOML.
    section: String,
    key: &'static str,
    /// Value to add or to choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    value: Option<String>,
}

impl AdviceView {
    /// Returns the explanation of a call as `caller` may see it.
    fn of(record: &ExchangeRecord, caller: &Caller, run: RunState) -> Option<Self> {
        let advice = advice::of(record)?;
        let advice = if run.is_final() { advice.for_ended_run(record) } else { advice };
        let Advice { why, commands, settings } = advice;
        if !caller.is_operator() {
            return Some(Self { why, commands: Vec::new(), settings: Vec::new() });
        }
        let view = |Setting { section, key, value }| AdvisedSettingView { section, key, value };
        Some(Self { why, commands, settings: settings.into_iter().map(view).collect() })
    }
}

/// Tokens of a call.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CallTokens)]
#[serde(rename_all = "camelCase")]
struct CallTokensView {
    input: u64,
    output: u64,
    cached: u64,
    cache_written: u64,
    reasoning: u64,
}

impl CallsQuery {
    fn after(&self) -> Result<Option<CallPlace>, Error> {
        let place = |text: &str| {
            let parts = text.split_once('.').and_then(|(journal, seq)| Some((journal, seq.parse().ok()?)));
            parts.map(|(journal, seq)| CallPlace { journal: journal.to_owned(), seq })
        };
        self.cursor.as_deref().map(|text| place(text).ok_or_else(invalid_cursor)).transpose()
    }
}

impl<'c> CallView<'c> {
    fn of(record: &'c ExchangeRecord, caller: &Caller, run: RunState) -> Self {
        let text = |text: &'c Option<JournalText>| text.as_ref().map(JournalText::as_str);
        let Tokens { input, output, cached, cache_written, cache_written_1h, reasoning } = record.tokens;
        let cache_written = cache_written.saturating_add(cache_written_1h);
        Self {
            call_id: record.litellm_call_id.to_string(),
            at: &record.ts,
            attempt: record.attempt,
            kind: record.kind.word(),
            route: record.route.word(),
            model_asked: text(&record.model_asked),
            model_answered: text(&record.model_answered),
            stream: record.stream,
            status: record.status,
            outcome: record.outcome.word(),
            refusal: record.refusal.map(Refusal::code),
            rule: text(&record.rule),
            timeout: record.timeout.map(|timeout| timeout.word()),
            finish_reason: text(&record.finish_reason),
            tokens: CallTokensView { input, output, cached, cache_written, reasoning },
            tokens_source: record.tokens_source.word(),
            cost: record.cost_nanodollars.map(NanoDollars::to_plain_text),
            cost_source: record.cost_source.word(),
            tools: record.tools.iter().map(JournalText::as_str).collect(),
            duration_ms: milliseconds(record.duration_us),
            first_byte_ms: record.ttfb_us.map(milliseconds),
            calls: record.calls,
            advice: AdviceView::of(record, caller, run),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to three hundred years")]
fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// Lists the calls of a run in the order in which they ended. A call is listed moments after its end.
pub(crate) async fn list_calls(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let query: CallsQuery = read_query(request.uri())?;
    let limit = PAGES.choose(query.limit)?;
    let after = query.after()?;
    let opened = context.opened().await?;
    let run = find(&opened.store, &caller, &run_id).await?;
    let mut calls = opened.store.calls(&run.run_id, after.as_ref(), limit + 1).await?;
    let last = cut_page(&mut calls, limit);
    let next_cursor = last.map(|RecordedCall { place, .. }| format!("{}.{}", place.journal, place.seq));
    let calls = calls.iter().map(|call| CallView::of(&call.record, &caller, run.state)).collect();
    Ok(json_response(&CallPageView { calls, next_cursor }))
}
