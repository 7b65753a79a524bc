//! Passes calls of host tools to the control plane, over its tool socket.
//!
//! Each call has its own connection, and dropping it cancels the call. The process that listens must run as a
//! trusted user. Another one could take the place of the control plane, and read what agents send to it. Nothing is ever
//! sent twice.

mod answer;

use std::{
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use http::Request;
use platform_core::limit::ByteSize;
use tokio::net::UnixStream;

pub(crate) use self::answer::ToolAnswer;

/// The tool socket.
#[derive(Debug)]
pub(crate) struct ToolSocket {
    path: PathBuf,
}

/// Connection for one call.
#[derive(Debug)]
pub(crate) struct ToolConnection(UnixStream);

/// Reason why a call of a host tool has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The control plane does not listen: nothing was sent.
    #[error("cannot connect to the tool socket {}", path.display())]
    Unreachable {
        /// Path of the socket.
        path: PathBuf,
        /// Failure of the system call.
        #[source]
        source: io::Error,
    },
    /// A process of another user listens: nothing was sent.
    #[error("user {uid}, who listens on the tool socket {}, is not trusted", path.display())]
    Untrusted {
        /// Path of the socket.
        path: PathBuf,
        /// User of the process that listens.
        uid: u32,
    },
    /// The control plane takes no calls, or none of this version of the protocol: nothing ran.
    #[error("the control plane takes no calls (status {status})")]
    Refused {
        /// Status of its answer.
        status: u16,
    },
    /// The connection broke after some of the call may have been sent.
    #[error("the tool socket was closed before the answer was complete")]
    Broken(#[source] hyper::Error),
    /// The answer is outside the protocol.
    #[error("the control plane answered against the protocol (status {status})")]
    Protocol {
        /// Status of its answer.
        status: u16,
    },
    /// The answer is larger than the run may receive.
    #[error("the answer of the tool is larger than {limit}")]
    TooLarge {
        /// Largest size of the answer.
        limit: ByteSize,
        /// The answer, without its body.
        head: Box<ToolAnswer>,
    },
}

impl ToolSocket {
    /// Returns the tool socket at `path`.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Connects, and checks that a process of one of the `trusted` users listens. Nothing is sent yet.
    ///
    /// # Errors
    /// If no process listens, or an untrusted one.
    pub(crate) async fn connect(&self, trusted: &[u32]) -> Result<ToolConnection, Error> {
        let unreachable = |source| Error::Unreachable { path: self.path().to_owned(), source };
        let stream = UnixStream::connect(&self.path).await.map_err(unreachable)?;
        let uid = stream.peer_cred().map_err(unreachable)?.uid();
        if !trusted.contains(&uid) {
            return Err(Error::Untrusted { path: self.path().to_owned(), uid });
        }
        Ok(ToolConnection(stream))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl ToolConnection {
    /// Sends `request`, and reads its answer whole, up to `limit`. Dropping the future cancels the call.
    ///
    /// # Errors
    /// If no answer comes that the agent may receive.
    pub(crate) async fn call(self, request: Request<Bytes>, limit: ByteSize) -> Result<ToolAnswer, Error> {
        let answer = platform_outbound::send(self.0, request).await.map_err(Error::Broken)?;
        answer::read(answer, limit).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn only_trusted_users_are_sent_calls() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tools.sock");
        let own = rustix::process::geteuid().as_raw();
        let connect = async |uid| ToolSocket::new(path.clone()).connect(&[uid]).await;
        assert!(matches!(connect(own).await, Err(Error::Unreachable { .. })));
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(matches!(connect(own + 1).await, Err(Error::Untrusted { uid, .. }) if uid == own));
        assert!(connect(own).await.is_ok(), "the control");
    }
}
