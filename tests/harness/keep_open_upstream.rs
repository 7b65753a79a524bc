//! Serves an upstream that sends the exact bytes of the test, and then keeps the connection open.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// An upstream that answers each connection with the same bytes.
#[derive(Debug)]
pub struct KeepOpenUpstream {
    address: SocketAddr,
}

impl KeepOpenUpstream {
    /// Starts an upstream that streams the events of `stream` and never ends the body. LiteLLM does so for some
    /// milliseconds after every stream.
    pub async fn streaming(stream: &str) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        Self::answering(&format!("{head}{:x}\r\n{stream}\r\n", stream.len())).await
    }

    /// Starts an upstream that answers with exactly these bytes.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn answering(answer: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (address, answer) = (listener.local_addr().unwrap(), answer.to_owned());
        platform_runtime::task::spawn("keep-open upstream", async move {
            while let Ok((connection, _)) = listener.accept().await {
                platform_runtime::task::spawn("keep-open answer", linger(connection, answer.clone()));
            }
        });
        Self { address }
    }

    /// Starts an upstream that answers as soon as a request begins, and reads no more of the request.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn hasty(answer: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (address, answer) = (listener.local_addr().unwrap(), answer.to_owned());
        platform_runtime::task::spawn("hasty upstream", async move {
            let mut kept = Vec::new();
            while let Ok((mut connection, _)) = listener.accept().await {
                let began = connection.read(&mut [0; 64]).await;
                if began.is_ok() && connection.write_all(answer.as_bytes()).await.is_ok() {
                    kept.push(connection);
                }
            }
        });
        Self { address }
    }

    /// Returns `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Answers as soon as a request begins, then waits until the client closes the connection.
async fn linger(mut connection: TcpStream, answer: String) {
    let mut piece = [0; 4096];
    if connection.read(&mut piece).await.is_ok() && connection.write_all(answer.as_bytes()).await.is_ok() {
        while connection.read(&mut piece).await.is_ok_and(|length| length > 0) {}
    }
}
