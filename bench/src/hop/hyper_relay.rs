//! Forwards requests with hyper's server and client. The difference to Sluicegate is Sluicegate's own work.

use std::{cell::RefCell, collections::VecDeque, io, net::SocketAddr, path::Path, rc::Rc, sync::Arc};

use http::{HeaderMap, HeaderValue, Request, Response, header};
use hyper::{
    body::Incoming,
    client::conn::http1::{self as client, SendRequest},
    server::conn::http1 as server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::spawn_local,
};
use tokio_rustls::TlsConnector;

use crate::tls;

/// A thread's relay and its connections to the upstream.
pub(super) struct HyperRelay {
    upstream: SocketAddr,
    tls: Option<TlsConnector>,
    /// Connections, the least recently used first. A busy one is not ready.
    connections: RefCell<VecDeque<SendRequest<Incoming>>>,
}

impl HyperRelay {
    pub(super) fn new(upstream: SocketAddr, authority: Option<&Path>) -> io::Result<Self> {
        let tls =
            authority.map(tls::trusting).transpose()?.map(|config| TlsConnector::from(Arc::new(config)));
        Ok(Self { upstream, tls, connections: RefCell::default() })
    }

    /// Serves a client's connection until it closes.
    pub(super) async fn serve(self: Rc<Self>, client: impl AsyncRead + AsyncWrite + Unpin + 'static) {
        let forward = service_fn(move |request| {
            let relay = Rc::clone(&self);
            async move { relay.forward(request).await }
        });
        drop(server::Builder::new().serve_connection(TokioIo::new(client), forward).await);
    }

    async fn forward(&self, request: Request<Incoming>) -> io::Result<Response<Incoming>> {
        let (head, body) = request.into_parts();
        let mut forwarded = Request::new(body);
        *forwarded.method_mut() = head.method;
        *forwarded.uri_mut() = head.uri;
        *forwarded.headers_mut() = headers(&head.headers);
        let mut connection = match self.ready() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let answered = connection.send_request(forwarded).await.map_err(io::Error::other)?;
        self.connections.borrow_mut().push_back(connection);
        let (head, body) = answered.into_parts();
        let mut answer = Response::new(body);
        *answer.status_mut() = head.status;
        *answer.headers_mut() =
            head.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(answer)
    }

    /// Takes a connection with no answer left to read.
    fn ready(&self) -> Option<SendRequest<Incoming>> {
        let mut connections = self.connections.borrow_mut();
        connections.retain(|connection| !connection.is_closed());
        let at = connections.iter().position(SendRequest::is_ready)?;
        connections.remove(at)
    }

    async fn connect(&self) -> io::Result<SendRequest<Incoming>> {
        let stream = TcpStream::connect(self.upstream).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => handshake(stream).await,
            Some(tls) => handshake(tls.connect(tls::server_name(), stream).await?).await,
        }
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
) -> io::Result<SendRequest<Incoming>> {
    let (sender, connection) = client::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    drop(spawn_local(async move { drop(connection.await) }));
    Ok(sender)
}

/// Returns a copy of the client's headers with the credential and the identity that every peer sets.
fn headers(of_client: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(of_client.len() + 3);
    for (name, value) in of_client {
        headers.append(name.clone(), value.clone());
    }
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer sk-bench"));
    headers.insert("x-litellm-end-user-id", HeaderValue::from_static("acct-bench"));
    headers.insert(
        "x-litellm-spend-logs-metadata",
        HeaderValue::from_static(r#"{"run_id":"bench","attempt":0,"graph_id":"sandbox:agent"}"#),
    );
    headers
}
