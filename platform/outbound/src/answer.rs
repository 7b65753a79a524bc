//! Sends requests, and reads their answers within bounds of time and size.

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Body as _, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use platform_runtime::{report, task};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;

use crate::Error;

/// Most headers of an answer.
const MAX_HEADERS: usize = 64;

/// Bounds of an answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerLimit {
    deadline: Instant,
    bytes: usize,
}

impl AnswerLimit {
    /// Returns bounds for an answer that ends within `time` from now, and has at most `bytes`.
    #[must_use]
    pub fn new(time: Duration, bytes: usize) -> Self {
        Self { deadline: Instant::now() + time, bytes }
    }
}

/// Answer that is being read, with its connection, which ends with it.
#[derive(Debug)]
pub struct OpenAnswer {
    /// In a box, because streams are held in states of many kinds.
    response: Box<Response<Incoming>>,
    _connection: AbortOnDropHandle<()>,
}

/// Sends `request` on the connection that `opening` returns, and reads the answer whole. Cancel safe: the connection ends
/// with the call.
///
/// # Errors
/// If no whole answer comes within `limit`.
pub async fn exchange<S>(
    opening: impl Future<Output = io::Result<S>>,
    request: Request<Bytes>,
    limit: AnswerLimit,
) -> Result<Response<Bytes>, Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let whole = async {
        let stream = opening.await.map_err(Error::unconnected)?;
        send(stream, request).await?.read(limit.bytes).await
    };
    timeout_at(limit.deadline, whole).await.unwrap_or(Err(Error::TimedOut))
}

/// Sends `request` on a connection, and returns once the answer begins. The caller limits the time. Cancel safe: the
/// connection ends with the call.
///
/// # Errors
/// If the server does not answer in HTTP.
pub async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Bytes>,
) -> Result<OpenAnswer, hyper::Error> {
    let handshake = http1::Builder::new().max_headers(MAX_HEADERS).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await?;
    let connection = AbortOnDropHandle::new(task::spawn("outbound", async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = report::chain(&error), "connection to a server ended");
        }
    }));
    let response = Box::new(sender.send_request(request.map(Full::new)).await?);
    Ok(OpenAnswer { response, _connection: connection })
}

impl OpenAnswer {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Returns the next piece of the body, and nothing at its end. Cancel safe.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn next(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        while let Some(frame) = self.response.body_mut().frame().await {
            // Else these are trailers.
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Reads the answer to its end. The caller limits the time.
    ///
    /// # Errors
    /// If it has more than `max` bytes, or the connection breaks.
    pub async fn read(mut self, max: usize) -> Result<Response<Bytes>, Error> {
        let least = usize::try_from(self.response.body().size_hint().lower()).unwrap_or(usize::MAX);
        if least > max {
            return Err(Error::TooLong { max });
        }
        let mut body = BytesMut::with_capacity(least);
        while let Some(piece) = self.next().await? {
            if piece.len() > max - body.len() {
                return Err(Error::TooLong { max });
            }
            body.extend_from_slice(&piece);
        }
        Ok(self.response.map(|_read| body.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(30);

    /// Asks a server that answers with `words`, keeps the connection, and reads on. Returns the server's end, too.
    async fn ask(words: &'static str, limit: AnswerLimit) -> (Result<Response<Bytes>, Error>, DuplexStream) {
        let (client, mut server) = duplex(1 << 10);
        let exchanged = exchange(async { Ok(client) }, Request::new(Bytes::from("question")), limit);
        let served = async {
            let mut question = Vec::new();
            while !question.ends_with(b"question") {
                assert!(server.read_buf(&mut question).await.unwrap() > 0);
            }
            server.write_all(words.as_bytes()).await.unwrap();
        };
        let (exchanged, ()) = tokio::join!(exchanged, served);
        (exchanged, server)
    }

    #[tokio::test]
    async fn an_answer_is_read_within_its_bounds() {
        let four = "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone";
        let (answer, _server) = ask(four, AnswerLimit::new(LONG, 4)).await;
        let answer = answer.unwrap();
        assert_eq!((answer.status(), answer.body().as_ref()), (StatusCode::NOT_FOUND, b"none".as_slice()));
        let (answer, _server) = ask(four, AnswerLimit::new(LONG, 3)).await;
        assert!(matches!(answer, Err(Error::TooLong { max: 3 })));
        for silent in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnon"] {
            let (answer, _server) = ask(silent, AnswerLimit::new(SHORT, 4)).await;
            assert!(matches!(answer, Err(Error::TimedOut)), "{silent}");
        }
        let (answer, _server) = ask("SSH-2.0\r\n\r\n", AnswerLimit::new(LONG, 4)).await;
        assert!(matches!(answer, Err(Error::Broken(_))));
    }

    #[tokio::test]
    async fn the_connection_ends_with_the_call() {
        for words in ["", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnone"] {
            let (_answer, mut server) = ask(words, AnswerLimit::new(SHORT, 4)).await;
            assert_eq!(server.read(&mut [0]).await.unwrap(), 0, "the end of the stream");
        }
    }

    #[tokio::test]
    async fn the_time_to_connect_counts() {
        let never = std::future::pending::<io::Result<DuplexStream>>();
        let answer = exchange(never, Request::new(Bytes::new()), AnswerLimit::new(SHORT, 1)).await;
        assert!(matches!(answer, Err(Error::TimedOut)));
        let refused = async { Err::<DuplexStream, _>(io::ErrorKind::ConnectionRefused.into()) };
        let answer = exchange(refused, Request::new(Bytes::new()), AnswerLimit::new(LONG, 1)).await;
        assert!(matches!(answer, Err(Error::Unconnected(_))));
    }
}
