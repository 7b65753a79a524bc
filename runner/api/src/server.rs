//! Accepts connections, opens their TLS sessions, and serves them on its own thread.

use std::{
    io,
    net::{self, IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    thread,
    time::Duration,
};

use axum::{Router, http::Request};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use platform_core::code::{Code, Coded};
use platform_runtime::{
    accept::Acceptor,
    report,
    settings::{self, IpNetwork, Scheme, WebOrigin},
    task,
};
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::timeout,
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    client_address::client_address,
    connection_table::{ConnectionTable, OpenConnection},
    context::ApiContext,
    observed_body::{AnswerBody, RequestBody},
    origins::Origins,
    routes,
    socket_place::SocketPlace,
    tls::{TlsError, TlsIdentity},
};

/// Most connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Most connections at a time. For another one, one of them gives way.
const MAX_CONNECTIONS: usize = 256;
/// Longest time in which a client may send a request's head, and longest silence between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of an answer that wait for a client to read them, in this process and again in the kernel; and longest
/// head of a request. As much is made for each client that reads slowly once it opens a stream, and other clients wait
/// for that.
const MAX_UNREAD: u32 = 16 << 10;
/// Longest time for which a client may read nothing of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time in which answers are completed after the stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest time of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Reason why the API does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is in use, or not of this host.
    #[error(
        "api.listen {address} cannot be listened on: set another address, or stop the program that has it (`ss -ltnp` shows it)"
    )]
    Unbound {
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The certificate or the key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Coded for StartError {
    fn code(&self) -> Code {
        match self {
            Self::Unbound { .. } => Code::AddressInUse,
            Self::Tls(_) => Code::CertificateUnusable,
        }
    }
}

/// HTTP API with its bound listener.
#[derive(Debug)]
pub struct Api {
    listener: net::TcpListener,
    address: SocketAddr,
    scheme: Scheme,
    tls: Option<TlsIdentity>,
    origins: Origins,
    trusted_proxies: Arc<[IpNetwork]>,
}

impl Api {
    /// Reads the certificate and binds `api.listen`. Connections wait there until [`Self::serve`] accepts them. `None`
    /// if no address is set.
    ///
    /// # Errors
    /// If the address is in use, or not of this host, or if the certificate or the key cannot be used.
    pub fn bind(settings: &settings::Api) -> Result<Option<Self>, StartError> {
        let Some(address) = settings.listen else { return Ok(None) };
        let tls = settings.tls.as_ref().map(TlsIdentity::load).transpose()?;
        let listener = listen(address).map_err(|source| StartError::Unbound { address, source })?;
        let bound = listener.local_addr().map_err(|source| StartError::Unbound { address, source })?;
        let origins = Origins::of(settings, bound);
        let trusted_proxies = settings.trusted_proxies.clone().into();
        Ok(Some(Self { listener, address: bound, scheme: settings.scheme(), tls, origins, trusted_proxies }))
    }

    /// Returns the URL on which the API listens.
    #[must_use]
    pub fn url(&self) -> String {
        WebOrigin::of(self.scheme, self.address).to_string()
    }

    /// Returns the certificate and key of the API, for a reload.
    #[must_use]
    pub fn tls(&self) -> Option<TlsIdentity> {
        self.tls.clone()
    }

    /// Serves requests on its own thread until the stop of `context`, and then ends what is open.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub async fn serve(self, context: ApiContext) -> io::Result<()> {
        let (ended, end) = oneshot::channel();
        thread::Builder::new().name("api".to_owned()).spawn(move || {
            // The receiver waits for it.
            drop(ended.send(self.run(context)));
        })?;
        end.await.unwrap_or_else(|_panicked| Err(io::Error::other("the thread of the API panicked")))
    }

    fn run(self, context: ApiContext) -> io::Result<()> {
        let context = context.with_origins(self.origins);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener)?;
            let server = Server {
                router: routes::router(&context),
                tls: self.tls,
                trusted_proxies: self.trusted_proxies,
                stop: context.stop,
            };
            server.accept(listener).await;
            Ok(())
        })
    }
}

fn listen(address: SocketAddr) -> io::Result<net::TcpListener> {
    let listener = net::TcpListener::bind(address)?;
    // The standard library asks for 128 waiting connections.
    rustix::net::listen(&listener, BACKLOG)?;
    // Accepted sockets inherit it. The kernel itself would take megabytes.
    SockRef::from(&listener).set_tcp_notsent_lowat(MAX_UNREAD)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Server of connections, with what all of them share.
#[derive(Clone)]
struct Server {
    router: Router,
    tls: Option<TlsIdentity>,
    trusted_proxies: Arc<[IpNetwork]>,
    stop: CancellationToken,
}

/// Connection that is served, with the address at its other end.
struct Served {
    open: OpenConnection,
    peer: IpAddr,
}

impl Server {
    /// Accepts connections until the stop, and waits a moment for those that are open.
    async fn accept(self, listener: TcpListener) {
        let table = ConnectionTable::new(MAX_CONNECTIONS);
        let mut acceptor = Acceptor::new(listener, Arc::default());
        let connections = TaskTracker::new();
        let accepting = async {
            loop {
                let stream = acceptor.accept().await;
                // One that is gone already has no address.
                let Ok(peer) = stream.peer_addr().map(|address| address.ip()) else { continue };
                let Some(open) = table.enter(peer).await else { return };
                let connection = self.clone().serve(stream, Served { open, peer });
                task::spawn("api connection", connections.track_future(connection));
            }
        };
        self.stop.run_until_cancelled(accepting).await;
        connections.close();
        if timeout(STOP_TIMEOUT, connections.wait()).await.is_err() {
            tracing::debug!(connections = connections.len(), "API connections cut at the stop");
        }
    }

    /// Serves a connection until its end, or until it gives way.
    async fn serve(self, stream: TcpStream, served: Served) {
        tokio::select! {
            () = self.serve_stream(stream, &served) => {}
            () = served.open.evicted() => {}
        }
    }

    async fn serve_stream(&self, stream: TcpStream, served: &Served) {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(WRITE_TIMEOUT));
        let stream = Box::pin(stream);
        let Some(tls) = &self.tls else { return self.serve_http(stream, served).await };
        let handshake = timeout(HANDSHAKE_TIMEOUT, tls.acceptor().accept(stream));
        match self.stop.run_until_cancelled(handshake).await {
            Some(Ok(Ok(stream))) => self.serve_http(stream, served).await,
            Some(Ok(Err(error))) => {
                tracing::debug!(error = report::chain(&error), "API connection without a TLS session");
            }
            Some(Err(_elapsed)) => tracing::debug!("API connection cut: its TLS handshake took too long"),
            None => {}
        }
    }

    async fn serve_http(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        served: &Served,
    ) {
        let place = SocketPlace::of(served.open.entry());
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_UNREAD as usize);
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(|request: Request<Incoming>| {
            let entry = served.open.entry();
            entry.begin(client_address(served.peer, request.headers(), &self.trusted_proxies));
            let mut request = request.map(|body| RequestBody::new(body, entry.clone()));
            request.extensions_mut().insert(entry.clone());
            request.extensions_mut().insert(place.clone());
            let answer = router.call(request);
            async { answer.await.map(|answer| answer.map(|body| AnswerBody::new(body, entry))) }
        });
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            tracing::debug!(error = report::chain(&error), "API connection broke");
        }
        place.ended().await;
    }
}
