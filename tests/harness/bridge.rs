//! The bridge between a sandbox's `localhost:8080` and its socket, with the options of the sandbox's entrypoint.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Stdio,
};

use platform_runtime::random;
use tokio::process::{Child, Command};

use crate::{agent::Agent, eventually::eventually, process::descendants_of};

/// A running `socat`, killed on drop.
#[derive(Debug)]
pub struct Bridge {
    /// A client on its TCP side.
    pub agent: Agent,
    address: SocketAddr,
    socat: Child,
}

impl Bridge {
    /// Starts a bridge to `socket`.
    ///
    /// # Panics
    /// If socat is missing or does not listen.
    pub async fn to(socket: &Path) -> Self {
        let address = free_port();
        let socat = Command::new("socat")
            .args(["-b", "65536"])
            .arg(format!("TCP-LISTEN:{},fork,reuseaddr,bind=127.0.0.1,nodelay,backlog=128", address.port()))
            .arg(format!("UNIX-CONNECT:{}", socket.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("socat is needed, as in the sandbox: run `make setup`");
        let agent = Agent::over_tcp(address).searched();
        eventually("socat listens", || async { agent.connect().await.map(drop) }, Result::is_ok)
            .await
            .unwrap();
        Self { agent, address, socat }
    }

    /// Returns the number of its descendant processes.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn processes(&self) -> usize {
        descendants_of(self.socat.id().unwrap())
    }

    /// Returns `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Returns an address of the loopback interface with a port that is free now, and stays so with all likelihood: Linux
/// gives no port of this range to connections or to listeners that name none, and tests choose at random.
///
/// # Panics
/// If no port is free.
#[must_use]
pub fn free_port() -> SocketAddr {
    const FIRST: u16 = 10_000;
    const COUNT: usize = 22_000;
    let mut tried = (0..100).map(|_| FIRST + u16::try_from(random::below(COUNT)).unwrap());
    let free = tried.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    free.expect("a port is free").local_addr().unwrap()
}
