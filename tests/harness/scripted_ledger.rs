//! Plays LiteLLM with a database in front of the scripted upstream: passes calls on, writes a row for each, and shows them
//! as `/spend/logs/v2` does.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming, client::conn::http1 as client, server::conn::http1 as server, service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::numbered_calls::{NumberedCalls, account_of};

/// A LiteLLM with a ledger, as far as reconciliation knows it.
#[derive(Debug, Clone)]
pub struct ScriptedLedger {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// Rows on each page of a ledger that never ends.
const ENDLESS_ROWS: u32 = 50;

/// Rows that are not kept, but made for each page: one for each call.
#[derive(Debug, Clone, Copy)]
struct GeneratedRows {
    calls: NumberedCalls,
    spend: fn(u64) -> f64,
}

impl GeneratedRows {
    fn page(self, query: &PageQuery) -> Value {
        let time = |text: &str| humantime::parse_rfc3339(&text.replace("+00:00", "Z")).unwrap();
        let first = self.calls.before(time(&query.from));
        let end = self.calls.before(time(&query.until) + Duration::from_nanos(1));
        let start = first + ((query.page - 1) * query.size) as u64;
        let shown = start..end.min(start + query.size as u64);
        let rows = shown.map(|number| self.row(number));
        json!({ "data": rows.collect::<Vec<_>>(), "total": end.saturating_sub(first) })
    }

    fn row(self, number: u64) -> Value {
        let call_id = self.calls.call_id(number).to_string();
        let mut row = row(&format!("chatcmpl-{number}"), Some(&call_id), self.calls.began(number));
        row["spend"] = json!((self.spend)(number));
        row["end_user"] = json!(account_of(number).as_str());
        row
    }
}

/// Parameters of a page.
#[derive(Debug)]
struct PageQuery {
    from: String,
    until: String,
    page: usize,
    size: usize,
}

impl PageQuery {
    fn read(query: &str) -> Self {
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).unwrap_or_else(|| panic!("no {name} in {query}")).1
        };
        let time = |name: &str| parameter(name).replace("%20", "T") + ".000+00:00";
        let number = |name: &str| parameter(name).parse().unwrap();
        Self {
            from: time("start_date"),
            until: time("end_date"),
            page: number("page"),
            size: number("page_size"),
        }
    }
}

#[derive(Debug)]
struct State {
    generated: Option<GeneratedRows>,
    rows: Vec<Value>,
    /// Dollars that each call costs from now on; no row is written if absent.
    cost: Option<f64>,
    /// Rows that are sent as these texts, with their times.
    texts: Vec<(String, String)>,
    /// Total of a ledger with pages that never end, if it is one.
    endless: Option<u64>,
    /// Rows that come while the ledger is read: each before the page of this number, counted from now.
    coming: Vec<(usize, Value)>,
    /// Queries of pages.
    queries: Vec<String>,
}

impl ScriptedLedger {
    /// Starts one on a free port, in front of `upstream`.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn in_front_of(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            generated: None,
            rows: Vec::new(),
            cost: Some(0.0),
            texts: Vec::new(),
            endless: None,
            coming: Vec::new(),
            queries: Vec::new(),
        };
        let ledger = Self { address, state: Arc::new(Mutex::new(state)) };
        let serving = ledger.clone();
        platform_runtime::task::spawn("scripted ledger", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let ledger = serving.clone();
                let service = service_fn(move |request| {
                    let ledger = ledger.clone();
                    async move { Ok::<_, Infallible>(ledger.answer(request, upstream).await) }
                });
                platform_runtime::task::spawn("scripted ledger's connection", async move {
                    server::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        ledger
    }

    /// Returns `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the dollars that each later call costs; with `None` its row gets lost.
    pub fn charge(&self, cost: Option<f64>) {
        self.state().cost = cost;
    }

    /// Adds rows.
    pub fn add(&self, rows: impl IntoIterator<Item = Value>) {
        self.state().rows.extend(rows);
    }

    /// Adds a row of a call that began at `began`, which is sent as this text.
    pub fn add_text(&self, began: SystemTime, text: &str) {
        self.state().texts.push((litellm_time(began), text.to_owned()));
    }

    /// Shows pages without an end in each span from now on, with other rows on each, and this total.
    pub fn never_end(&self, total: u64) {
        self.state().endless = Some(total);
    }

    /// Shows a row for each of these calls instead, with its `spend` in dollars.
    pub fn show(&self, calls: NumberedCalls, spend: fn(u64) -> f64) {
        self.state().generated = Some(GeneratedRows { calls, spend });
    }

    /// Changes the rows.
    pub fn change(&self, change: impl FnOnce(&mut Vec<Value>)) {
        change(&mut self.state().rows);
    }

    /// Adds a row while the ledger is read: before the page of this number from now.
    pub fn add_before_page(&self, page: usize, row: Value) {
        let mut state = self.state();
        let page = state.queries.len() + page;
        state.coming.push((page, row));
    }

    /// Returns all rows.
    #[must_use]
    pub fn rows(&self) -> Vec<Value> {
        self.state().rows.clone()
    }

    /// Returns the queries of all pages so far.
    #[must_use]
    pub fn queries(&self) -> Vec<String> {
        self.state().queries.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Incoming>, upstream: SocketAddr) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        #[expect(clippy::disallowed_methods, reason = "only programs under test send requests")]
        let body = body.collect().await.unwrap().to_bytes();
        if head.uri.path() == "/spend/logs/v2" {
            let page = self.page(head.uri.query().unwrap_or_default());
            let mut answer = Response::new(Full::from(page));
            answer.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
            return answer;
        }
        let began = SystemTime::now();
        let mut sent = Request::new(Full::new(body.clone()));
        *sent.method_mut() = head.method.clone();
        *sent.uri_mut() = head.uri.path().parse().unwrap();
        *sent.headers_mut() = head.headers.clone();
        let stream = TcpStream::connect(upstream).await.unwrap();
        let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await.unwrap();
        platform_runtime::task::spawn("scripted ledger's call", async move { connection.await.ok() });
        let (answer, content) = sender.send_request(sent).await.unwrap().into_parts();
        #[expect(clippy::disallowed_methods, reason = "only this double makes the content")]
        let content = content.collect().await.unwrap().to_bytes();
        if head.method == Method::POST {
            self.write(&head.headers, &body, began, answer.status);
        }
        let mut passed_on = Response::new(Full::new(content));
        *passed_on.status_mut() = answer.status;
        if let Some(kind) = answer.headers.get(header::CONTENT_TYPE) {
            passed_on.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
        }
        passed_on
    }

    fn write(&self, headers: &HeaderMap, body: &[u8], began: SystemTime, status: StatusCode) {
        let mut state = self.state();
        let Some(cost) = state.cost else { return };
        let call_id = headers["x-litellm-call-id"].to_str().unwrap();
        let asked: Value = serde_json::from_slice(body).unwrap();
        let mut row = row(&format!("chatcmpl-{call_id}"), Some(call_id), began);
        row["spend"] = json!(if status.is_success() { cost } else { 0.0 });
        row["model_group"] = asked["model"].clone();
        row["end_user"] = json!(headers["x-litellm-end-user-id"].to_str().unwrap());
        row["status"] = json!(if status.is_success() { "success" } else { "failure" });
        state.rows.push(row);
    }

    fn page(&self, query: &str) -> String {
        let mut state = self.state();
        state.queries.push(query.to_owned());
        let number = state.queries.len();
        let coming: Vec<_> = state.coming.extract_if(.., |(page, _)| *page <= number).collect();
        state.rows.extend(coming.into_iter().map(|(_, row)| row));
        let query = PageQuery::read(query);
        if let Some(generated) = state.generated {
            return generated.page(&query).to_string();
        }
        if let Some(total) = state.endless {
            let rows = (0..ENDLESS_ROWS).map(|at| format!("chatcmpl-{number}-{at}"));
            let rows = rows.map(|id| row(&id, None, SystemTime::now())).collect::<Vec<_>>();
            return json!({ "data": rows, "total": total }).to_string();
        }
        let PageQuery { from, until, page, size } = query;
        let began = |row: &Value| row["startTime"].as_str().unwrap().to_owned();
        let rows = state.rows.iter().map(|row| (began(row), row.to_string()));
        let rows = rows.chain(state.texts.iter().cloned());
        let mut found: Vec<_> = rows.filter(|(began, _)| *began >= from && *began <= until).collect();
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let shown = found.iter().skip((page - 1) * size).take(size).map(|(_, row)| row.as_str());
        let (shown, total) = (shown.collect::<Vec<_>>().join(","), found.len());
        let pages = total.div_ceil(size);
        format!(
            r#"{{"data":[{shown}],"total":{total},"page":{page},"page_size":{size},"total_pages":{pages},"total_is_capped":false}}"#
        )
    }
}

/// Returns a row as LiteLLM 1.106 shows it, of a call that began at `began`.
#[must_use]
pub fn row(request_id: &str, call_id: Option<&str>, began: SystemTime) -> Value {
    json!({
        "request_id": request_id, "call_type": "acompletion", "api_key": "litellm_proxy_master_key", "spend": 0.001,
        "total_tokens": 17, "prompt_tokens": 11, "completion_tokens": 6, "startTime": litellm_time(began),
        "endTime": litellm_time(began + Duration::from_millis(5)), "model": "openai/fake", "model_group": "fake",
        "custom_llm_provider": "openai", "user": "default_user_id", "cache_hit": "None", "request_tags": [],
        "end_user": "acct-1", "status": "success", "litellm_call_id": call_id, "session_id": "",
        "metadata": { "status": null, "spend_logs_metadata": { "call_id": call_id }, "litellm_call_id": call_id },
    })
}

/// Returns a time as LiteLLM writes it.
fn litellm_time(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string().replace('Z', "+00:00")
}
