//! Reserves descriptors for control alone. When the process has no others left, an operator can still reach it and
//! act.
//!
//! A reserved descriptor is given up so that a connection can be accepted. At its end the connection's own descriptor
//! becomes the reserve again, in one step: no other waiter gets hold of it.

use std::{fs::File, io, os::fd::OwnedFd};

use platform_runtime::sync::Mutex;

/// Number of reserved descriptors: connections that can be open while nothing else can.
const RESERVED_FDS: usize = 4;

/// Reserve of descriptors.
#[derive(Debug)]
pub(super) struct ReservedFds {
    null: File,
    reserve: Mutex<Vec<OwnedFd>>,
}

impl ReservedFds {
    /// Opens the reserve.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub(super) fn new() -> io::Result<Self> {
        let null = File::open("/dev/null")?;
        let reserve = (0..RESERVED_FDS).map(|_| Ok(null.try_clone()?.into())).collect::<io::Result<_>>()?;
        Ok(Self { null, reserve: Mutex::new(reserve) })
    }

    /// Gives up one descriptor, so that a connection can be accepted. Returns whether one was left.
    pub(super) fn give_up(&self) -> bool {
        self.reserve.lock().pop().is_some()
    }

    /// Closes `connection`, and keeps its descriptor if one was given up.
    pub(super) fn close(&self, mut connection: OwnedFd) {
        let mut reserve = self.reserve.lock();
        if reserve.len() < RESERVED_FDS && rustix::io::dup2(&self.null, &mut connection).is_ok() {
            reserve.push(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::net::UnixStream};

    use super::*;

    #[test]
    fn a_closed_connection_refills_the_reserve() {
        let fds = ReservedFds::new().unwrap();
        let given = std::iter::from_fn(|| fds.give_up().then_some(())).count();
        assert_eq!(given, RESERVED_FDS);
        for round in 0..=RESERVED_FDS {
            let (mut client, server) = UnixStream::pair().unwrap();
            fds.close(server.into());
            assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "closed in round {round}");
        }
        assert_eq!(fds.reserve.lock().len(), RESERVED_FDS);
    }
}
