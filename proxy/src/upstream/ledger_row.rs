//! Reads a row of the upstream's ledger, and reduces it to what a receipt is compared with.
//!
//! Each field is read for itself, so that a row with a field of another form can be named. Such a row stops no other.

use std::time::UNIX_EPOCH;

use platform_core::{
    json::{Raw, read_member},
    money::NanoDollars,
    record::hash,
    spend::{SpendEnd, SpendKey, SpendRow, UnreadableRow},
    untrusted::JournalText,
};
use serde::Deserialize;

/// Name that LiteLLM writes in place of its master key's hash.
const MASTER_KEY: &str = "litellm_proxy_master_key";
/// Stands for the field of a row that cannot be read as a whole.
const WHOLE: &str = "row";

/// Row, as LiteLLM writes it.
#[derive(Deserialize)]
struct LedgerRow<'a> {
    #[serde(borrow)]
    request_id: Option<Raw<'a>>,
    #[serde(borrow, rename = "startTime")]
    start_time: Option<Raw<'a>>,
    #[serde(borrow)]
    spend: Option<Raw<'a>>,
    #[serde(borrow)]
    total_tokens: Option<Raw<'a>>,
    #[serde(borrow)]
    prompt_tokens: Option<Raw<'a>>,
    #[serde(borrow)]
    completion_tokens: Option<Raw<'a>>,
    #[serde(borrow)]
    model: Option<Raw<'a>>,
    #[serde(borrow)]
    model_group: Option<Raw<'a>>,
    #[serde(borrow)]
    end_user: Option<Raw<'a>>,
    #[serde(borrow)]
    api_key: Option<Raw<'a>>,
    #[serde(borrow)]
    status: Option<Raw<'a>>,
    #[serde(borrow)]
    cache_hit: Option<Raw<'a>>,
    #[serde(borrow)]
    litellm_call_id: Option<Raw<'a>>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
}

#[derive(Default, Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    status: Option<Raw<'a>>,
    #[serde(borrow)]
    litellm_call_id: Option<Raw<'a>>,
    /// Metadata that the sender of a call chose. Those of other senders may have any form.
    #[serde(borrow)]
    spend_logs_metadata: Option<Raw<'a>>,
}

/// Metadata of our calls.
#[derive(Deserialize)]
struct SpendLogsMetadata {
    call_id: String,
}

/// Name of a field that cannot be read.
type UnreadableField = &'static str;

/// Reads a row. `own_key` is the hash of the key of this data plane.
///
/// # Errors
/// If a field has another form than LiteLLM writes, or the id or the time is missing.
pub(super) fn read(row: Raw<'_>, own_key: &str) -> Result<SpendRow, UnreadableRow> {
    let read = row.read::<LedgerRow<'_>>().map_err(|_error| unreadable(row, None, WHOLE))?;
    read.reduce(own_key).map_err(|field| unreadable(row, Some(&read), field))
}

impl LedgerRow<'_> {
    fn reduce(&self, own_key: &str) -> Result<SpendRow, UnreadableField> {
        let metadata = field::<Metadata<'_>>("metadata", self.metadata)?.unwrap_or_default();
        let status = [text("status", self.status)?, text("metadata", metadata.status)?];
        let is_failure = status.iter().flatten().any(|status| status == "failure");
        let cache_hit = text("cache_hit", self.cache_hit)?;
        let is_cached = cache_hit.is_some_and(|hit| hit.eq_ignore_ascii_case("true"));
        let is_own = text("api_key", self.api_key)?.is_some_and(|key| key == own_key || key == MASTER_KEY);
        let model = [text("model_group", self.model_group)?, text("model", self.model)?];
        Ok(SpendRow {
            request_id: self.request_id()?,
            call_id: self.call_id(&metadata)?.as_deref().map(JournalText::of),
            began_ms: self.began_ms()?,
            cost: field::<f64>("spend", self.spend)?
                .and_then(|dollars| NanoDollars::parse_dollars(&format!("{dollars:e}"))),
            tokens: field("total_tokens", self.total_tokens)?.unwrap_or_default(),
            input: field("prompt_tokens", self.prompt_tokens)?.unwrap_or_default(),
            output: field("completion_tokens", self.completion_tokens)?.unwrap_or_default(),
            end: match (is_failure, is_cached) {
                (true, _) => SpendEnd::Failed,
                (false, true) => SpendEnd::Cached,
                (false, false) => SpendEnd::Answered,
            },
            model: model.iter().flatten().next().map(|model| JournalText::of(model)),
            account: text("end_user", self.end_user)?.as_deref().map(JournalText::of),
            key: if is_own { SpendKey::Own } else { SpendKey::Other },
        })
    }

    fn request_id(&self) -> Result<JournalText, UnreadableField> {
        let id = text("request_id", self.request_id)?.ok_or("request_id")?;
        Ok(JournalText::of(&id))
    }

    fn call_id(&self, metadata: &Metadata<'_>) -> Result<Option<String>, UnreadableField> {
        if let Some(sent) = read_member::<SpendLogsMetadata>(metadata.spend_logs_metadata) {
            return Ok(Some(sent.call_id).filter(|id| !id.is_empty()));
        }
        let column = text("litellm_call_id", self.litellm_call_id)?;
        Ok(column.or(text("metadata", metadata.litellm_call_id)?))
    }

    /// Returns the time of the begin, as LiteLLM writes it: `2026-11-20T18:29:10.244+00:00`, or with `Z`.
    fn began_ms(&self) -> Result<i64, UnreadableField> {
        const FIELD: UnreadableField = "startTime";
        let text = text(FIELD, self.start_time)?.ok_or(FIELD)?;
        // Not the weak form, which reads a time with an offset as one without.
        let time = humantime::parse_rfc3339(&text).ok();
        let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        since.and_then(|since| i64::try_from(since.as_millis()).ok()).ok_or(FIELD)
    }
}

/// Reads a field; `None` if it is missing or `null`.
fn field<'t, T: Deserialize<'t>>(
    name: UnreadableField,
    value: Option<Raw<'t>>,
) -> Result<Option<T>, UnreadableField> {
    value.map(Raw::read).transpose().map_err(|_error| name)
}

/// Reads a text; `None` if it is missing, `null` or empty.
fn text(name: UnreadableField, value: Option<Raw<'_>>) -> Result<Option<String>, UnreadableField> {
    Ok(field::<String>(name, value)?.filter(|text| !text.is_empty()))
}

fn unreadable(row: Raw<'_>, read: Option<&LedgerRow<'_>>, field: UnreadableField) -> UnreadableRow {
    let sha256 = hash(row.get().as_bytes());
    UnreadableRow {
        request_id: read.and_then(|read| read.request_id().ok()),
        began_ms: read.and_then(|read| read.began_ms().ok()),
        field: JournalText::of(field),
        sha256: JournalText::of(&String::from_utf8_lossy(&sha256)),
    }
}
