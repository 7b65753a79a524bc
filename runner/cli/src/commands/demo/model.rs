//! Plays the model of a demonstration: it answers every chat with one sentence, a word at a time.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Body, Frame, Incoming},
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use platform_core::{
    json::{self, Bounds},
    secret::Secret,
};
use platform_runtime::task;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Sleep, sleep},
};

/// Name of the model, and that of one slow enough to be stopped in the middle.
pub(super) const NAME: &str = "demo-model";
pub(super) const SLOW: &str = "demo-slow";
const SENTENCE: &str = "A sluice gate lets through what may pass, and holds back the rest.";
/// Time between two words, of each model.
const WORD_INTERVAL: Duration = Duration::from_millis(40);
const SLOW_WORD_INTERVAL: Duration = Duration::from_secs(2);
/// Largest request that is read.
const LARGEST_REQUEST: usize = 1 << 20;
/// Delay after a failed accept. A shortage of descriptors passes, and a tight loop would prolong it.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);
/// Beginnings of the names of headers that say who calls.
const SHOWN: [&str; 3] = ["authorization", "x-litellm-", "x-cogni-"];
/// Characters of a credential that are shown: its scheme, and three of the key.
const SHOWN_OF_CREDENTIAL: usize = "Bearer sk-".len();

/// Returns the key that the model asks for.
pub(super) fn key() -> Secret {
    Secret::new("sk-demo-key".to_owned())
}

/// A model API that answers by a script. Its connections end with the program.
pub(super) struct ScriptedModel {
    address: SocketAddr,
    last: Arc<Mutex<HeaderMap>>,
}

impl ScriptedModel {
    /// Listens on a free port of this host.
    pub(super) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let last = Arc::new(Mutex::new(HeaderMap::new()));
        let seen = Arc::clone(&last);
        task::spawn("scripted model", async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        drop(task::spawn("scripted model's client", serve(stream, Arc::clone(&seen))))
                    }
                    Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
                }
            }
        });
        Ok(Self { address, last })
    }

    /// Returns the settings that a configuration has for it, behind those of `[upstream]`.
    pub(super) fn settings(&self) -> String {
        let price = "{ input = \"1\", output = \"2\" }";
        format!("default_model = {NAME:?}\n[prices]\n{NAME:?} = {price}\n{SLOW:?} = {price}\n")
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the headers of the last chat that say who calls, as `name: value`, the key shortened.
    pub(super) fn headers(&self) -> Vec<String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let shown =
            last.iter().filter(|(name, _)| SHOWN.iter().any(|start| name.as_str().starts_with(start)));
        shown
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                if name == AUTHORIZATION {
                    format!("{name}: {}…", value.chars().take(SHOWN_OF_CREDENTIAL).collect::<String>())
                } else {
                    format!("{name}: {value}")
                }
            })
            .collect()
    }
}

async fn serve(stream: TcpStream, last: Arc<Mutex<HeaderMap>>) {
    let service = service_fn(|request| async { Ok::<_, Infallible>(answer(request, &last).await) });
    // A client that leaves ends its own connection.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

/// Part of a request for a chat.
#[derive(Deserialize)]
struct Asked {
    model: String,
}

async fn answer(request: Request<Incoming>, last: &Mutex<HeaderMap>) -> Response<Words> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/v1/models") => {
            let models = [NAME, SLOW].map(|name| json!({ "id": name, "object": "model" }));
            whole(StatusCode::OK, &json!({ "object": "list", "data": models }))
        }
        (&Method::POST, "/v1/chat/completions") => {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = request.headers().clone();
            chat(request.into_body()).await
        }
        _ => refusal(StatusCode::NOT_FOUND, "this model answers chats only, at /v1/chat/completions"),
    }
}

async fn chat(body: Incoming) -> Response<Words> {
    #[expect(clippy::disallowed_methods, reason = "it is limited")]
    let Ok(body) = Limited::new(body, LARGEST_REQUEST).collect().await else {
        return refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request is not whole, or too large");
    };
    let asked = json::from_slice::<Asked>(&body.to_bytes(), Bounds::of(LARGEST_REQUEST));
    let pace = match asked.as_ref().map(|asked| &*asked.model) {
        Ok(NAME) => WORD_INTERVAL,
        Ok(SLOW) => SLOW_WORD_INTERVAL,
        _ => return refusal(StatusCode::NOT_FOUND, "there is no such model here"),
    };
    let mut answer = Response::new(Words::of(events(), pace));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer
}

fn refusal(status: StatusCode, message: &str) -> Response<Words> {
    whole(status, &json!({ "error": { "message": message, "type": "invalid_request_error" } }))
}

fn whole(status: StatusCode, body: &Value) -> Response<Words> {
    let mut answer = Response::new(Words::of([Bytes::from(body.to_string())].into(), Duration::ZERO));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Returns the events of an answer: each word, the end, and the usage.
fn events() -> VecDeque<Bytes> {
    let words: Vec<&str> = SENTENCE.split_inclusive(' ').collect();
    let usage =
        json!({ "prompt_tokens": 12, "completion_tokens": words.len(), "total_tokens": 12 + words.len() });
    let choice =
        |delta: Value, end: Option<&str>| json!([{ "index": 0, "delta": delta, "finish_reason": end }]);
    let said = words
        .into_iter()
        .map(|word| (choice(json!({ "role": "assistant", "content": word }), None), Value::Null));
    let ends = [(choice(json!({}), Some("stop")), Value::Null), (json!([]), usage)];
    let event = |(choices, usage): (Value, Value)| {
        let chunk = json!({
            "id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": NAME,
            "choices": choices, "usage": usage,
        });
        Bytes::from(format!("data: {chunk}\n\n"))
    };
    said.chain(ends).map(event).chain([Bytes::from_static(b"data: [DONE]\n\n")]).collect()
}

/// Body that sends its pieces at the model's pace.
struct Words {
    pieces: VecDeque<Bytes>,
    pace: Duration,
    pause: Pin<Box<Sleep>>,
}

impl Words {
    fn of(pieces: VecDeque<Bytes>, pace: Duration) -> Self {
        Self { pieces, pace, pause: Box::pin(sleep(pace)) }
    }
}

impl Body for Words {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.pause.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let pace = self.pace;
        self.pause.set(sleep(pace));
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}
