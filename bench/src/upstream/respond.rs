//! Answers one request: selects the API, the script, the status and the headers.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::{
    answer::Answer,
    api::{Api, Kind},
    ask::Ask,
    ledger::{Call, Ledger},
    model_info::ModelInfo,
    playback::{NoAnswer, Playback},
    script::{DIRECTIVES, Fate, Script},
    staging::{self, Beat},
    usage::Usage,
};

/// Largest body that is accepted.
const LARGEST_BODY: usize = 256 << 20;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Message of the script's own error.
const MID_ERROR: &str = "The script wants an error in the middle.";

/// Message of a model with too small a context.
const TOO_LONG: &str =
    "This model's maximum context length is 8 tokens, and the script wants the request to be longer.";

type Outcome = Result<Response<Playback>, NoAnswer>;

/// State that answers need. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Responder {
    pub(super) ledger: Ledger,
    pub(super) model_info: ModelInfo,
}

impl Responder {
    /// Answers `request` and records it in the ledger, unless it is about the ledger, or Sluicegate's own.
    ///
    /// # Errors
    /// If it returns no response; hyper then closes the connection.
    pub(super) async fn respond(self, request: Request<Incoming>) -> Outcome {
        let (head, body) = request.into_parts();
        if head.uri.path() == "/_ledger" {
            return Ok(about_the_ledger(&self.ledger, &head.method));
        }
        if is_health_check(&head)
            && let Some(answer) = about_the_upstream(head.uri.path(), &self.model_info)
        {
            return Ok(answer);
        }
        respond_to_call(Call::arriving(&head, self.ledger), &head, body).await
    }
}

async fn respond_to_call(mut call: Call, head: &Parts, body: Incoming) -> Outcome {
    let Some(body) = receive(&mut call, body).await? else {
        return Ok(refuse(call, None, StatusCode::PAYLOAD_TOO_LARGE, "The body is too large."));
    };
    if head.method == Method::HEAD {
        return Ok(response(StatusCode::NOT_FOUND, JSON, Playback::empty(call)));
    }
    let path = head.uri.path().strip_prefix("/v1").unwrap_or(head.uri.path());
    match (&head.method, path, Api::at(path)) {
        (&Method::POST, _, Some(api)) => answer(call, api, &body).await,
        (&Method::POST, "/messages/count_tokens", _) => Ok(count_tokens(call, Api::Messages, &body)),
        (&Method::POST, "/responses/input_tokens", _) => Ok(count_tokens(call, Api::Responses, &body)),
        (&Method::GET, "/models", _) => Ok(whole(call, StatusCode::OK, models())),
        (&Method::GET, "/models/fake", _) => {
            Ok(whole(call, StatusCode::OK, model("fake").to_string().into()))
        }
        (&Method::GET, "/health/liveliness", _) => Ok(whole(call, StatusCode::OK, "\"I'm alive!\"".into())),
        _ => Ok(refuse(call, None, StatusCode::NOT_FOUND, &no_such_path(head))),
    }
}

/// Returns the whole body; `None` if it is too large, with the rest unread.
async fn receive(call: &mut Call, mut body: Incoming) -> Result<Option<Bytes>, NoAnswer> {
    while let Some(frame) = body.frame().await {
        // The call is dropped with this error, which reports the client's departure to the ledger.
        let frame = frame.map_err(|_broken| NoAnswer::RequestBroken)?;
        if let Ok(piece) = frame.into_data()
            && call.push(&piece) > LARGEST_BODY
        {
            return Ok(None);
        }
    }
    Ok(Some(call.received()))
}

async fn answer(mut call: Call, api: Api, body: &[u8]) -> Outcome {
    let ask = match Ask::read(api, body) {
        Ok(ask) => ask,
        Err(error) => return Ok(refuse(call, Some(api), StatusCode::BAD_REQUEST, &error.to_string())),
    };
    let script: Script = match ask.script().parse() {
        Ok(script) => script,
        Err(error) => return Ok(refuse(call, Some(api), StatusCode::BAD_REQUEST, &error.to_string())),
    };
    let said = Answer::to(&ask, &script, &call);
    call.generates(said.generation(&ask, &script));
    if let Some(pause) = script.first_byte {
        tokio::time::sleep(pause).await;
    }
    match script.fate {
        Fate::Hang => std::future::pending().await,
        Fate::Status(status) => Ok(refuse(call, Some(api), status, "The script wants this status.")),
        Fate::TooLong => Ok(refuse(call, Some(api), StatusCode::BAD_REQUEST, TOO_LONG)),
        Fate::Cut(0) => {
            call.cut();
            Err(NoAnswer::Cut)
        }
        // An answer in one piece has no middle to fail in.
        Fate::ErrorMid(_) if !ask.is_streamed() => {
            Ok(refuse(call, Some(api), StatusCode::INTERNAL_SERVER_ERROR, MID_ERROR))
        }
        Fate::Complete | Fate::Stall(_) | Fate::Cut(_) | Fate::CutAt(_) | Fate::ErrorMid(_) => {
            Ok(play(call, &ask, &script, &said))
        }
    }
}

fn play(mut call: Call, ask: &Ask, script: &Script, answer: &Answer) -> Response<Playback> {
    call.reports(answer.reported(ask, script));
    let cost = answer.price.map(|price| price.header());
    let streamed = ask.is_streamed();
    let built =
        if streamed { stream(call, ask, script, answer) } else { document(call, ask, script, answer) };
    let mut response = match built {
        Ok(response) => response,
        Err(failed) => {
            let (call, error) = *failed;
            return refuse(call, Some(ask.api), StatusCode::INTERNAL_SERVER_ERROR, &error.to_string());
        }
    };
    // LiteLLM sends the price in a header only where it knows it in time.
    if let Some(cost) = cost.filter(|_| !streamed).and_then(|cost| HeaderValue::from_str(&cost).ok()) {
        response.headers_mut().insert("x-litellm-response-cost", cost);
    }
    response
}

type Built = Result<Response<Playback>, Box<(Call, serde_json::Error)>>;

fn stream(call: Call, ask: &Ask, script: &Script, answer: &Answer) -> Built {
    let events = ask.api.events(ask, answer);
    let error = ask.api.error_event(MID_ERROR);
    match (events, error) {
        (Ok(events), Ok(error)) => {
            let beats = staging::streamed(script, events, error);
            Ok(response(StatusCode::OK, EVENTS, Playback::streamed(call, beats)))
        }
        (Err(error), _) | (_, Err(error)) => Err(Box::new((call, error))),
    }
}

fn document(call: Call, ask: &Ask, script: &Script, answer: &Answer) -> Built {
    match ask.api.whole(ask, answer) {
        Ok(body) => {
            let length = body.len();
            let beats = staging::whole(script, body);
            Ok(response(StatusCode::OK, JSON, Playback::whole(call, beats, length)))
        }
        Err(error) => Err(Box::new((call, error))),
    }
}

fn refuse(call: Call, api: Option<Api>, status: StatusCode, message: &str) -> Response<Playback> {
    let body = Api::refusal(api, status, message).unwrap_or_default();
    let mut response = whole(call, status, body);
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("7"));
    }
    response
}

fn whole(call: Call, status: StatusCode, body: Bytes) -> Response<Playback> {
    let has_no_body =
        matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED);
    if has_no_body {
        return response(status, JSON, Playback::empty(call));
    }
    let length = body.len();
    let beats = vec![Beat::Send(body, Kind::Frame)];
    response(status, JSON, Playback::whole(call, beats, length))
}

fn response(status: StatusCode, content_type: HeaderValue, body: Playback) -> Response<Playback> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

fn about_the_ledger(ledger: &Ledger, method: &Method) -> Response<Playback> {
    let body = match *method {
        Method::DELETE => {
            ledger.clear();
            Bytes::from_static(b"[]")
        }
        _ => ledger.export().unwrap_or_default(),
    };
    response(StatusCode::OK, JSON, Playback::unrecorded(body))
}

/// Returns whether Sluicegate itself sends the request: it has the upstream's key, and no identity. An agent's call
/// through the proxy has one, and a call past the proxy has other headers.
fn is_health_check(head: &Parts) -> bool {
    let is_plain = |name| name == header::HOST || name == header::AUTHORIZATION;
    head.method == Method::GET
        && head.headers.contains_key(header::AUTHORIZATION)
        && head.headers.keys().all(is_plain)
}

/// Answers a health check of `path`: the list of models, their prices, and LiteLLM's version, which this upstream does
/// not have. The ledger does not record it, because proxies, `sluice up`, `doctor` and lists of agents send it at any time.
fn about_the_upstream(path: &str, model_info: &ModelInfo) -> Option<Response<Playback>> {
    match path {
        "/model/info" => {
            let (status, body) = model_info.answer();
            Some(response(status, JSON, Playback::unrecorded(body)))
        }
        "/models" | "/v1/models" => Some(response(StatusCode::OK, JSON, Playback::unrecorded(models()))),
        "/health/readiness" | "/health/readiness/details" => {
            Some(response(StatusCode::NOT_FOUND, JSON, Playback::unrecorded(Bytes::from_static(b"{}"))))
        }
        _ => None,
    }
}

/// Answers a request to count the tokens of a prompt of `api`.
fn count_tokens(call: Call, api: Api, body: &[u8]) -> Response<Playback> {
    match Ask::read(api, body) {
        Ok(ask) => {
            let mut count = json!({ "input_tokens": Usage::of(ask.prompt_bytes(), 0).prompt });
            if api == Api::Responses {
                count["object"] = "response.input_tokens".into();
            }
            whole(call, StatusCode::OK, count.to_string().into())
        }
        Err(error) => refuse(call, Some(api), StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

fn models() -> Bytes {
    let names = std::iter::once("fake").chain(DIRECTIVES.iter().map(|directive| directive.example));
    // As LiteLLM lists a pattern: directives take any number, and can be combined.
    let data: Vec<_> = names.chain(["fake-*"]).map(model).collect();
    json!({ "object": "list", "data": data }).to_string().into()
}

fn model(id: &str) -> Value {
    json!({ "id": id, "object": "model", "created": 1, "owned_by": "bench" })
}

fn no_such_path(head: &Parts) -> String {
    format!("{} {} is not served here", head.method, head.uri.path())
}
