//! Serves an upstream that rejects every key, and repeats the key in its answer.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

/// Way in which LiteLLM rejects a key.
#[derive(Debug, Clone, Copy)]
enum Rejection {
    /// Answer of a database that does not know the key.
    Unauthorized,
    /// Lack of a database in which the key could be looked up.
    NoDatabase,
}

/// An upstream that rejects every request.
#[derive(Debug)]
pub struct KeyRejectingUpstream {
    address: SocketAddr,
    answers: Arc<Mutex<Vec<String>>>,
}

impl KeyRejectingUpstream {
    /// Starts to serve on a free port, and answers 401.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start() -> Self {
        Self::rejecting(Rejection::Unauthorized).await
    }

    /// Starts to serve on a free port, and answers as LiteLLM 1.106.2 without a database does.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn without_database() -> Self {
        Self::rejecting(Rejection::NoDatabase).await
    }

    async fn rejecting(rejection: Rejection) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let upstream = Self { address: listener.local_addr().unwrap(), answers: Arc::default() };
        let answers = Arc::clone(&upstream.answers);
        platform_runtime::task::spawn("key-rejecting upstream", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = refuse(stream, rejection).await.unwrap_or_else(|error| format!("none: {error}"));
                answers.lock().await.push(answer);
            }
        });
        upstream
    }

    /// Returns `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns every answer so far, head and body.
    pub async fn answers(&self) -> Vec<String> {
        self.answers.lock().await.clone()
    }
}

/// Reads one request and refuses it. The key is in the head and in the body of the answer.
async fn refuse(stream: TcpStream, rejection: Rejection) -> std::io::Result<String> {
    let mut stream = BufReader::new(stream);
    let (mut key, mut length, mut line) = (String::new(), 0, String::new());
    while stream.read_line(&mut line).await? > 0 && line != "\r\n" {
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => value.clone_into(&mut key),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap_or(0);
            }
            _ => {}
        }
        line.clear();
    }
    stream.read_exact(&mut vec![0; length]).await?;
    let (status, body) = match rejection {
        Rejection::Unauthorized => (
            "401 Unauthorized",
            format!(r#"{{"error":{{"message":"no such key: {key}","type":"auth_error","code":"401"}}}}"#),
        ),
        Rejection::NoDatabase => (
            "400 Bad Request",
            r#"{"error":{"message":"No connected db.","type":"no_db_connection","param":null,"code":"400"}}"#
                .to_owned(),
        ),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         www-authenticate: {key}\r\nrequest-id: {key}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    Ok(answer)
}
