//! An upstream that has said all and does not end: after the last event of its stream comes nothing, not even the
//! end of the body. LiteLLM is such an upstream for some milliseconds after every stream.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Sends the same stream in answer to everything.
#[derive(Debug)]
pub struct LingeringUpstream {
    address: SocketAddr,
}

impl LingeringUpstream {
    /// Serves `stream` on a free port.
    ///
    /// # Panics
    /// If there is none.
    pub async fn start(stream: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
             {:x}\r\n{stream}\r\n",
            stream.len()
        );
        platform_runtime::task::spawn("lingering upstream", async move {
            while let Ok((connection, _)) = listener.accept().await {
                platform_runtime::task::spawn("lingering answer", linger(connection, answer.clone()));
            }
        });
        Self { address }
    }

    /// `http://127.0.0.1:PORT`
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Answers as soon as anything is asked, then waits for the client to leave.
async fn linger(mut connection: TcpStream, answer: String) {
    let mut piece = [0; 4096];
    if connection.read(&mut piece).await.is_ok() && connection.write_all(answer.as_bytes()).await.is_ok() {
        while connection.read(&mut piece).await.is_ok_and(|length| length > 0) {}
    }
}
