//! Reads pages of the upstream's ledger of calls. Each row is reduced to what a receipt is compared with.
//! LiteLLM's rows also have hashes of keys and traces of errors. Some installations store prompts and answers there.

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderValue, StatusCode, Uri, uri::InvalidUri};
use platform_core::{
    json::{self, Bounds, Raw},
    record::hash,
    spend::{MAX_SPEND_PAGE, SpendPage},
};
use platform_runtime::report;
use serde::Deserialize;

use super::{QueryError, ReadError, Upstream, ledger_row};

/// Largest page that is read: a row has some 10 kB, and one of a failed call several times as much.
const MAX_ANSWER: usize = 32 << 20;
/// Bounds of a page. Rows may have prompts and answers, of any form: they are skipped, not kept.
const BOUNDS: Bounds = Bounds { bytes: MAX_ANSWER, depth: usize::MAX, values: usize::MAX };
/// Longest wait for a page: shorter than clients of the control socket wait.
const PAGE_TIMEOUT: Duration = Duration::from_secs(25);
/// Path of LiteLLM's ledger.
const PATH: &str = "/spend/logs/v2";

/// Reason why a page was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpendError {
    #[error("the upstream did not show its ledger: {reason}")]
    Unavailable { reason: String },
    #[error("a page of the upstream's ledger has more than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("a page of the upstream's ledger has {rows} rows, and at most {MAX_SPEND_PAGE} were asked for")]
    TooMany { rows: usize },
    #[error(
        "the upstream answered {status} to GET {PATH}: LiteLLM has it from 1.80.10 on, if it has a database, for keys that may read it (`allowed_routes`)"
    )]
    Refused { status: u16 },
    #[error("the upstream's answer to GET {PATH} is not a page of a ledger")]
    Unexpected(#[source] json::Error),
    #[error("the address of the page cannot be written")]
    Address(#[source] InvalidUri),
}

/// Page that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpendQuery {
    /// Second of the first calls, since the epoch.
    pub(crate) from: u64,
    /// Second of the last calls: LiteLLM includes calls that began exactly then.
    pub(crate) until: u64,
    /// Number of the page, from 1.
    pub(crate) page: u64,
    /// Rows of a page.
    pub(crate) page_size: u16,
}

impl SpendQuery {
    fn uri(&self) -> Result<Uri, SpendError> {
        let Self { from, until, page, page_size } = *self;
        let text = format!(
            "{PATH}?start_date={}&end_date={}&page={page}&page_size={page_size}&sort_by=startTime&sort_order=asc",
            utc(from),
            utc(until)
        );
        text.parse().map_err(SpendError::Address)
    }
}

/// Returns a second as LiteLLM reads it in a query: `2026-11-20%2018:29:10`.
fn utc(second: u64) -> String {
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(second)).to_string();
    time.replace('T', "%20").trim_end_matches('Z').to_owned()
}

/// Page, as LiteLLM writes it.
#[derive(Deserialize)]
struct LedgerPage<'a> {
    #[serde(borrow)]
    data: Vec<Raw<'a>>,
    total: u64,
    #[serde(default)]
    total_is_capped: bool,
}

impl Upstream {
    /// Returns a page of the upstream's ledger, which is asked with `authorization`.
    pub(crate) async fn spend(
        &self,
        query: SpendQuery,
        authorization: Option<&HeaderValue>,
    ) -> Result<SpendPage, SpendError> {
        let asked = tokio::time::timeout(PAGE_TIMEOUT, self.get(query.uri()?, authorization, MAX_ANSWER));
        let (status, body) = match asked.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(QueryError::Unread(ReadError::TooLong { limit }))) => {
                return Err(SpendError::TooLarge { limit });
            }
            Ok(Err(error)) => return Err(SpendError::Unavailable { reason: report::chain(&error) }),
            Err(_elapsed) => {
                let reason = format!("no whole answer within {} s", PAGE_TIMEOUT.as_secs());
                return Err(SpendError::Unavailable { reason });
            }
        };
        if status != StatusCode::OK {
            return Err(SpendError::Refused { status: status.as_u16() });
        }
        page(&body, &key_hash(authorization))
    }
}

/// Reads a page. `own_key` is the hash of the key of this data plane.
fn page(body: &[u8], own_key: &str) -> Result<SpendPage, SpendError> {
    let LedgerPage { data, total, total_is_capped } =
        json::from_slice(body, BOUNDS).map_err(SpendError::Unexpected)?;
    if data.len() > MAX_SPEND_PAGE.into() {
        return Err(SpendError::TooMany { rows: data.len() });
    }
    let mut page = SpendPage {
        total,
        capped: total_is_capped,
        rows: Vec::new(),
        unreadable: Vec::new(),
        bytes: body.len() as u64,
    };
    for row in data {
        match ledger_row::read(row, own_key) {
            Ok(row) => page.rows.push(row),
            Err(row) => page.unreadable.push(row),
        }
    }
    Ok(page)
}

/// Returns the hash that LiteLLM writes in place of a key.
fn key_hash(authorization: Option<&HeaderValue>) -> String {
    let key = authorization.map(HeaderValue::as_bytes).and_then(|value| value.strip_prefix(b"Bearer "));
    String::from_utf8_lossy(&hash(key.unwrap_or_default())).into_owned()
}

#[cfg(test)]
mod tests {
    use platform_core::{
        money::NanoDollars,
        spend::{SpendEnd, SpendKey, SpendRow},
        untrusted::JournalText,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::raw_nest::raw_nest;

    fn row() -> Value {
        json!({
            "request_id": "chatcmpl-1", "call_type": "acompletion", "api_key": key_hash(Some(&key())), "spend": 2.3e-5,
            "total_tokens": 17, "prompt_tokens": 11, "completion_tokens": 6,
            "startTime": "2026-11-20T18:29:10.244+00:00", "model": "openai/fake-gpt", "model_group": "fake-gpt",
            "end_user": "acct-1", "messages": [{ "content": "hunter2" }], "response": "hunter2", "status": "success",
            "proxy_server_request": { "body": "hunter2" }, "cache_hit": "None", "litellm_call_id": "call-1",
            "metadata": { "user_api_key": "hunter2", "spend_logs_metadata": { "call_id": "call-1", "run_id": "r1" } },
        })
    }

    fn key() -> HeaderValue {
        HeaderValue::from_static("Bearer sk-1")
    }

    fn read(row: &Value) -> SpendRow {
        let body = json!({ "data": [row], "total": 1, "page": 1, "page_size": 50, "total_pages": 1 });
        let page = page(body.to_string().as_bytes(), &key_hash(Some(&key()))).unwrap();
        assert_eq!((page.total, page.capped, page.rows.len()), (1, false, 1));
        page.rows.into_iter().next().unwrap()
    }

    #[test]
    fn a_row_keeps_no_key_and_no_content() {
        let reduced = serde_json::to_string(&read(&row())).unwrap();
        assert!(!reduced.contains("hunter2") && !reduced.contains(&key_hash(Some(&key()))), "{reduced}");
        let expected = json!({
            "request_id": "chatcmpl-1", "call_id": "call-1", "began_ms": 1_795_199_350_244_i64, "cost": 23_000,
            "tokens": 17, "input": 11, "output": 6, "end": "answered", "model": "fake-gpt", "account": "acct-1", "key": "own",
        });
        assert_eq!(serde_json::from_str::<Value>(&reduced).unwrap(), expected);
    }

    #[test]
    fn rows_of_every_version_are_read() {
        type Check = fn(&SpendRow) -> bool;
        let without = |names: &[&str]| {
            let mut row = row();
            names.iter().for_each(|name| drop(row.as_object_mut().unwrap().remove(*name)));
            row
        };
        let with = |name: &str, value: Value| {
            let mut row = row();
            row[name] = value;
            row
        };
        let call_id = |row: &SpendRow| row.call_id.as_ref().is_some_and(|id| id.as_str() == "call-1");
        let table: [(Value, Check); 9] = [
            (without(&["litellm_call_id"]), call_id),
            (with("metadata", json!({ "litellm_call_id": "other", "status": null })), call_id),
            (with("metadata", json!({ "spend_logs_metadata": [1, 2] })), call_id),
            (with("metadata", json!({ "status": "failure" })), |row| row.end == SpendEnd::Failed),
            (with("cache_hit", json!("True")), |row| row.end == SpendEnd::Cached),
            (with("spend", json!(0)), |row| row.cost == Some(NanoDollars(0))),
            (with("spend", json!(-1)), |row| row.cost.is_none()),
            (with("api_key", json!("0a1b")), |row| row.key == SpendKey::Other),
            (with("startTime", json!("2026-11-20T18:29:10.244000Z")), |row| {
                row.began_ms == 1_795_199_350_244
            }),
        ];
        for (given, check) in table {
            let read = read(&given);
            assert!(check(&read), "{given}: {read:?}");
        }
    }

    #[test]
    fn a_row_may_have_texts_of_any_form() {
        let with = |messages: &str| row().to_string().replace(r#"[{"content":"hunter2"}]"#, messages);
        let page_with = |messages: &str| {
            let body = format!(r#"{{"data":[{}],"total":1}}"#, with(messages));
            page(body.as_bytes(), "").map_err(|error| report::chain(&error))
        };
        let (deep, many) =
            ("[".repeat(100_000) + &"]".repeat(100_000), "[0".to_owned() + &",0".repeat(200_000) + "]");
        for messages in [r#"{"a":[1e999,"\ud800"],"a":1}"#, &deep, &many, &raw_nest(15)] {
            assert_eq!(page_with(messages).unwrap().rows.len(), 1, "{messages:.100}");
        }
    }

    #[test]
    fn an_unreadable_row_stops_no_other() {
        let good = row().to_string();
        let with = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            good.replace(from, to)
        };
        let time = "\"2026-11-20T18:29:10.244+00:00\"";
        let id = "\"request_id\":\"chatcmpl-1\"";
        let table = [
            (with(id, "\"request_id\":null"), "request_id"),
            (with(id, "\"request_id\":\"\""), "request_id"),
            (with(id, "\"request_id\":\"\\ud800\""), "request_id"),
            (with(id, "\"request_id\":\"a\",\"request_id\":\"b\""), "row"),
            (with(time, "null"), "startTime"),
            (with(time, "\"2026-11-20T20:29:10.244+02:00\""), "startTime"),
            (with("0.000023", "\"0.000023\""), "spend"),
            (with("0.000023", "1e999"), "spend"),
            (with("\"total_tokens\":17", "\"total_tokens\":17.5"), "total_tokens"),
            (with("\"acct-1\"", "\"acct\\udfff\""), "end_user"),
            (with("\"success\"", "[]"), "status"),
            ("[1]".to_owned(), "row"),
            ("null".to_owned(), "row"),
        ];
        for (bad, field) in table {
            let body = format!(r#"{{"data":[{good},{bad},{good}],"total":3}}"#);
            let page = page(body.as_bytes(), "").unwrap();
            let [unreadable] = page.unreadable.as_slice() else { panic!("{bad}: {page:?}") };
            let named = |text: &Option<JournalText>| text.as_ref().map(ToString::to_string);
            let expected = (field != "request_id" && field != "row").then(|| "chatcmpl-1".to_owned());
            assert_eq!((page.rows.len(), unreadable.field.as_str()), (2, field), "{bad}");
            assert_eq!(named(&unreadable.request_id), expected, "{bad}");
            assert_eq!(unreadable.sha256.as_str().as_bytes(), hash(bad.as_bytes()), "{bad}");
            let shown = serde_json::to_string(unreadable).unwrap();
            assert!(!shown.contains("hunter2") && shown.len() < 300, "{shown}");
        }
        let control = format!(r#"{{"data":[{good},{good}],"total":2}}"#);
        assert_eq!(page(control.as_bytes(), "").unwrap().unreadable, []);
    }

    #[test]
    fn a_page_has_no_more_rows_than_asked_for() {
        let page_of = |rows: usize| {
            let rows = vec!["{}"; rows].join(",");
            page(format!(r#"{{"data":[{rows}],"total":1}}"#).as_bytes(), "")
        };
        assert!(matches!(page_of(501), Err(SpendError::TooMany { rows: 501 })));
        assert_eq!(page_of(500).unwrap().unreadable.len(), 500, "the control");
    }

    #[test]
    fn a_query_has_nothing_but_its_numbers() {
        let query = SpendQuery { from: 1_795_199_350, until: 1_795_202_950, page: 2, page_size: 500 };
        let expected = "/spend/logs/v2?start_date=2026-11-20%2018:29:10&end_date=2026-11-20%2019:29:10&page=2\
                        &page_size=500&sort_by=startTime&sort_order=asc";
        assert_eq!(query.uri().unwrap().to_string(), expected);
    }
}
