//! Tests the way in: a socket in a mounted directory that leads to a port of the sandbox.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use futures_util::future::join_all;
use harness::{
    Init, eventually,
    init::{outcome, sandbox_init},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    time::timeout,
};

use super::noise;

/// A sandbox in which the test itself listens.
struct Sandbox {
    listener: TcpListener,
    socket: PathBuf,
    init: Init,
    _dir: tempfile::TempDir,
}

impl Sandbox {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = dir.path().join("entry.sock");
        let init = Init::entered(&socket, listener.local_addr().unwrap().port()).await;
        Self { listener, socket, init, _dir: dir }
    }

    async fn visit(&self) -> UnixStream {
        UnixStream::connect(&self.socket).await.unwrap()
    }

    async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }
}

#[tokio::test]
async fn the_entry_relays_bytes_and_ends() {
    let sandbox = Sandbox::start().await;
    let descriptors = sandbox.init.descriptors();
    let (into, out) = (noise(4 << 20), noise((4 << 20) + 1));
    let (mut visitor, mut host) = (sandbox.visit().await, sandbox.accept().await);
    let (mut to_visitor, mut to_host) = (Vec::new(), Vec::new());
    let (mut read_host, mut write_host) = host.split();
    let (mut read_visitor, mut write_visitor) = visitor.split();
    let speak = async |into: &mut (dyn tokio::io::AsyncWrite + Unpin + Send), what: &[u8]| {
        into.write_all(what).await?;
        into.shutdown().await
    };
    tokio::try_join!(
        speak(&mut write_visitor, &into),
        speak(&mut write_host, &out),
        async { read_host.read_to_end(&mut to_host).await.map(drop) },
        async { read_visitor.read_to_end(&mut to_visitor).await.map(drop) },
    )
    .unwrap();
    assert!(to_host == into && to_visitor == out, "what arrives is not what was sent");
    drop((visitor, host));
    let left = || async { sandbox.init.descriptors() };
    eventually("nothing is open", left, |now| *now == descriptors).await;
}

#[tokio::test]
async fn a_visitor_who_goes_away_is_gone_inside_too() {
    let sandbox = Sandbox::start().await;
    let (visitor, mut host) = (sandbox.visit().await, sandbox.accept().await);
    drop(visitor);
    let mut nothing = Vec::new();
    assert_eq!(host.read_to_end(&mut nothing).await.unwrap(), 0);
}

#[tokio::test]
async fn the_entry_socket_is_open_to_all_users() {
    let sandbox = Sandbox::start().await;
    assert_eq!(fs::metadata(&sandbox.socket).unwrap().permissions().mode() & 0o777, 0o666);
}

#[tokio::test]
async fn at_most_sixty_four_visitors_are_inside() {
    let sandbox = Sandbox::start().await;
    let visitors = join_all((0..70).map(|_| sandbox.visit())).await;
    let mut inside = Vec::new();
    while let Ok(host) = timeout(Duration::from_millis(500), sandbox.accept()).await {
        inside.push(host);
    }
    assert_eq!(inside.len(), 64);
    // A place is free once both ends have left it.
    drop((visitors, inside));
    for _ in 0..6 {
        sandbox.accept().await;
    }
}

/// The next listener is found.
#[tokio::test]
async fn without_a_listener_visitors_are_hung_up_on() {
    let Sandbox { listener, socket, init: _init, _dir } = Sandbox::start().await;
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut nothing = Vec::new();
    let mut visitor = UnixStream::connect(&socket).await.unwrap();
    assert_eq!(visitor.read_to_end(&mut nothing).await.unwrap_or(0), 0);
    let listener = TcpListener::bind(address).await.unwrap();
    let mut visitor = UnixStream::connect(&socket).await.unwrap();
    visitor.write_all(b"?").await.unwrap();
    assert_eq!(listener.accept().await.unwrap().0.read_u8().await.unwrap(), b'?');
}

#[tokio::test]
async fn only_a_stale_socket_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("entry.sock");
    let enter = async || {
        let mut init = sandbox_init(&["echo", "began"]);
        init.env("SANDBOX_ENTRY_SOCKET", &socket).env("SANDBOX_ENTRY_PORT", "9");
        outcome(init.spawn().unwrap()).await
    };
    let refused = format!(
        "sandbox-init: cannot listen at {} for connections into the sandbox: Address already in use (os error 98)\n",
        socket.display()
    );

    let live = UnixListener::bind(&socket).unwrap();
    let ended = enter().await;
    assert_eq!((ended.code, ended.stdout, ended.stderr), (Some(1), String::new(), refused.clone()));
    drop(live);
    for time in ["what somebody left", "what it left itself"] {
        let ended = enter().await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "began\n"), "{time}: {}", ended.stderr);
    }

    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "a file").unwrap();
    assert_eq!(enter().await.stderr, refused);
    assert_eq!(fs::read_to_string(&socket).unwrap(), "a file");
    // The target of a link is not removed, either.
    let other = dir.path().join("other.sock");
    drop(UnixListener::bind(&other).unwrap());
    fs::remove_file(&socket).unwrap();
    std::os::unix::fs::symlink(&other, &socket).unwrap();
    assert_eq!(enter().await.stderr, refused);
    assert!(other.exists());
}
