//! Answers each method as a gateway does.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    model::Identity,
    recorded::{Names, Recording, is_acceptance},
    run::{self, Method, Run},
    script::{Abort, Cue, Dialect, Step},
    shared::Shared,
};

/// Answers one request of a connection.
pub(super) fn handle(shared: &Arc<Shared>, from: u64, frame: &Value) {
    let params = &frame["params"];
    if shared.dialect == Dialect::Three && frame.get("traceparent").is_some() {
        return refuse(
            shared,
            from,
            frame,
            "invalid request frame: at root: unexpected property 'traceparent'",
        );
    }
    if params.get("outboundHeaders").is_some() && !shared.options().takes_headers {
        let message = format!(
            "invalid {} params: at root: unexpected property 'outboundHeaders'",
            frame["method"].as_str().unwrap_or_default()
        );
        return refuse(shared, from, frame, &message);
    }
    let has_plugin = shared.options().has_plugin;
    match frame["method"].as_str().unwrap_or_default() {
        "agent" => begin(shared, from, frame, Method::Agent),
        "chat.send" => begin(shared, from, frame, Method::ChatSend),
        "chat.abort" => abort(shared, from, frame),
        "agent.wait" => wait(shared, from, frame),
        "chat.history" => history(shared, from, frame),
        "sessions.patch" => patch(shared, from, frame),
        "health" | "status" | "exec.approval.resolve" => answer(shared, from, frame, json!({ "ok": true })),
        "sluicegate.headers.set" if has_plugin => {
            set_headers(shared, params["sessionId"].as_str().unwrap_or_default(), &params["headers"]);
            answer(shared, from, frame, json!({ "ok": true }));
        }
        "sluicegate.headers.clear" if has_plugin => {
            set_headers(shared, params["sessionId"].as_str().unwrap_or_default(), &json!({}));
            answer(shared, from, frame, json!({ "ok": true, "cleared": true }));
        }
        method => refuse(shared, from, frame, &format!("unknown method: {method}")),
    }
}

fn answer(shared: &Shared, from: u64, request: &Value, payload: Value) {
    shared.answer(from, json!({ "type": "res", "id": request["id"], "ok": true, "payload": payload }));
}

fn refuse(shared: &Shared, from: u64, request: &Value, message: &str) {
    let error = json!({ "code": "INVALID_REQUEST", "message": message });
    shared.answer(from, json!({ "type": "res", "id": request["id"], "ok": false, "error": error }));
}

fn headers_of(headers: &Value) -> Vec<(String, String)> {
    let fields = headers.as_object().into_iter().flatten();
    fields.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect()
}

/// Returns the id of a session; it contains the session's key.
fn session_id(key: &str) -> String {
    format!("session-of-{key}")
}

fn set_headers(shared: &Shared, session: &str, headers: &Value) {
    let key = session.strip_prefix("session-of-").unwrap_or(session).to_owned();
    shared.inner().sessions.entry(key).or_default().headers = headers_of(headers);
}

fn begin(shared: &Arc<Shared>, from: u64, frame: &Value, method: Method) {
    let params = &frame["params"];
    let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
    let (id, key) = (text("idempotencyKey"), shared.key(&text("sessionKey")));
    if id.is_empty() || key.is_empty() || text("message").is_empty() {
        return refuse(
            shared,
            from,
            frame,
            "invalid agent params: must have required property 'idempotencyKey'",
        );
    }
    let names = Names { run: id.clone(), session: key.clone(), request: text_of(&frame["id"]) };
    let recording = Recording::of(shared.dialect, method.model().0);
    let name = if method == Method::Agent { "agent" } else { "chat.send" };
    let accepted = recording.answers(name).into_iter().find(is_acceptance).unwrap();
    let mut accepted = recording.renamed(&accepted, &names);
    let known = shared.inner().runs.get(&id).cloned();
    if let Some(run) = known {
        let ended = run.ended.borrow().clone();
        let again = ended.and_then(|(_, answer)| answer).map(|mut answer| {
            answer["id"] = frame["id"].clone();
            answer
        });
        if shared.dialect == Dialect::Four {
            accepted["payload"]["status"] = json!("in_flight");
        }
        return shared.answer(from, again.unwrap_or(accepted));
    }
    let identity = identity(shared, frame, &key);
    let steps = {
        let mut inner = shared.inner();
        inner.sessions.entry(key.clone()).or_default().history.push(("user", text("message")));
        let own = inner.scripts.get_mut(&key).and_then(std::collections::VecDeque::pop_front);
        own.unwrap_or_else(|| inner.always.clone())
    };
    if let Some(Step::NotNow(after)) = steps.first() {
        return not_now(shared, from, frame, *after);
    }
    let (abort, ended) = (Cue::default(), watch::Sender::new(None));
    let run = Arc::new(Run { names, method, from, message: text("message"), identity, abort, ended });
    shared.inner().runs.insert(id, Arc::clone(&run));
    shared.answer(from, accepted);
    platform_runtime::task::spawn("scripted turn", run::run(Arc::clone(shared), run, steps));
}

fn not_now(shared: &Shared, from: u64, request: &Value, after: Duration) {
    let error = json!({
        "code": "UNAVAILABLE", "message": "busy; retry shortly", "retryable": true,
        "retryAfterMs": after.as_millis(),
    });
    shared.answer(from, json!({ "type": "res", "id": request["id"], "ok": false, "error": error }));
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the provider and the headers of a turn's calls.
fn identity(shared: &Shared, frame: &Value, key: &str) -> Option<Identity> {
    let (params, options) = (&frame["params"], shared.options().clone());
    let session = shared.inner().sessions.get(key).cloned().unwrap_or_default();
    let chosen = params["provider"].as_str().map(str::to_owned).or(session.provider);
    let provider = match chosen {
        Some(name) => options.providers.get(&name)?,
        None => options.providers.values().next()?,
    };
    // Headers of the turn replace those of the session.
    let own = headers_of(&params["outboundHeaders"]);
    let mut headers = session.headers;
    headers.retain(|(name, _)| own.iter().all(|(other, _)| other != name));
    headers.extend(own);
    let traceparent = frame["traceparent"].as_str().map(str::to_owned);
    Some(Identity { provider: provider.clone(), traceparent, headers })
}

fn patch(shared: &Shared, from: u64, frame: &Value) {
    let params = &frame["params"];
    let key = shared.key(params["key"].as_str().unwrap_or_default());
    let recording = Recording::of(shared.dialect, "model-per-session");
    let mut payload = recording.answers("sessions.patch").remove(0)["payload"].take();
    payload["key"] = json!(key);
    payload["entry"]["sessionId"] = json!(session_id(&key));
    if let Some((provider, model)) = params["model"].as_str().and_then(|model| model.split_once('/')) {
        shared.inner().sessions.entry(key.clone()).or_default().provider = Some(provider.to_owned());
        (payload["entry"]["providerOverride"], payload["entry"]["modelOverride"]) =
            (json!(provider), json!(model));
        payload["resolved"] = json!({ "modelProvider": provider, "model": model });
    }
    if params.get("outboundHeaders").is_some() {
        set_headers(shared, &key, &params["outboundHeaders"]);
    }
    answer(shared, from, frame, payload);
}

fn abort(shared: &Shared, from: u64, frame: &Value) {
    let (mode, id) = (shared.options().abort, text_of(&frame["params"]["runId"]));
    let run = shared.inner().runs.get(&id).cloned().filter(|run| run.ended.borrow().is_none());
    let is_stopped = |run: &Arc<Run>| shared.dialect == Dialect::Four || run.method == Method::ChatSend;
    let run = run.filter(is_stopped);
    let confirmation = json!({ "ok": true, "aborted": run.is_some(), "runIds": run.iter().map(|_| &id).collect::<Vec<_>>() });
    match (mode, run) {
        (Abort::Unanswered, _) => {}
        (Abort::Pretended, _) => {
            answer(shared, from, frame, json!({ "ok": true, "aborted": true, "runIds": [id] }));
        }
        (Abort::AsRecorded, run) => {
            if let Some(run) = run {
                run.abort.give();
            }
            answer(shared, from, frame, confirmation);
        }
    }
}

fn wait(shared: &Arc<Shared>, from: u64, frame: &Value) {
    let id = text_of(&frame["params"]["runId"]);
    let timeout = Duration::from_millis(frame["params"]["timeoutMs"].as_u64().unwrap_or(30_000));
    let run = shared.inner().runs.get(&id).cloned();
    let (shared, frame) = (Arc::clone(shared), frame.clone());
    platform_runtime::task::spawn("scripted wait", async move {
        let ended = async {
            match &run {
                Some(run) => {
                    run.ended.subscribe().wait_for(Option::is_some).await.unwrap().clone().unwrap().0
                }
                None => std::future::pending().await,
            }
        };
        let payload = tokio::time::timeout(timeout, ended).await;
        let payload = payload.unwrap_or_else(|_| json!({ "runId": id, "status": "timeout" }));
        answer(&shared, from, &frame, payload);
    });
}

fn history(shared: &Shared, from: u64, frame: &Value) {
    let key = shared.key(frame["params"]["sessionKey"].as_str().unwrap_or_default());
    let recording = Recording::of(shared.dialect, "chat-history");
    let mut payload = recording.answers("chat.history").remove(0)["payload"].take();
    let recorded = payload["messages"].as_array().unwrap().clone();
    let like = |role: &str, text: &str| {
        let mut message = recorded.iter().find(|message| message["role"] == role).unwrap().clone();
        if message["content"].is_string() {
            message["content"] = json!(text);
        } else {
            message["content"] = json!([{ "type": "text", "text": text }]);
        }
        message
    };
    let history = shared.inner().sessions.get(&key).cloned().unwrap_or_default().history;
    payload["messages"] = history.iter().map(|(role, text)| like(role, text)).collect();
    (payload["sessionKey"], payload["sessionId"]) = (json!(key), json!(session_id(&key)));
    answer(shared, from, frame, payload);
}
