//! Measures the path in a sandbox. Its client speaks TCP to `socat`, which forks a process per connection to the unix
//! socket.

use std::{
    io,
    process::{Child, Command, Stdio},
};

use super::{Load, Workload};
use crate::{
    load::Target,
    measure::process,
    peer::{free_address, wait_for},
    request,
};

pub(super) const WORKLOAD: Workload = Workload {
    name: "socat-8",
    about: "1 KB in, 600 B out, 8 connections, each through socat as in a sandbox (its CPU time not counted)",
    load: Load::ClosedThroughSocat { connections: 8 },
    request: || request::chat("fast", 1024),
    ..Workload::CLOSED
};

/// A listening `socat`, stopped on drop together with its forks.
pub(super) struct Bridge {
    pub(super) target: Target,
    child: Child,
}

impl Bridge {
    pub(super) fn start(to: &Target) -> io::Result<Self> {
        let address = free_address()?;
        let child = Command::new("socat")
            .arg(format!("TCP-LISTEN:{},bind=127.0.0.1,reuseaddr,fork,nodelay,backlog=64", address.port()))
            .arg(match to {
                Target::Tcp(address) => format!("TCP:{address},nodelay"),
                Target::Unix(path) => format!("UNIX-CONNECT:{}", path.display()),
            })
            .stdin(Stdio::null())
            .stderr(Stdio::null()) // it complains about connections that are reset at the end
            .spawn()?;
        let bridge = Self { target: Target::Tcp(address), child };
        wait_for(&bridge.target)
            .map_err(|error| io::Error::new(error.kind(), format!("socat does not listen: {error}")))?;
        Ok(bridge)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        for pid in process::with_children(self.child.id()) {
            drop(Command::new("kill").arg(pid.to_string()).stderr(Stdio::null()).status());
        }
        drop(self.child.wait());
    }
}
