//! Reserves descriptors for control alone. When the process has no others left, an operator can still reach it and
//! act.
//!
//! A reserved descriptor is given up so that a connection can be accepted. At its end the connection's own descriptor
//! becomes the reserve again, in one step: no other waiter gets hold of it.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Number of reserved descriptors: connections that can be open while nothing else can.
const SPARES: usize = 4;

/// The reserved descriptors.
#[derive(Debug)]
pub(super) struct Spares {
    null: File,
    kept: Mutex<Vec<OwnedFd>>,
}

impl Spares {
    /// Opens the reserve.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub(super) fn new() -> io::Result<Self> {
        let null = File::open("/dev/null")?;
        let kept = (0..SPARES).map(|_| Ok(null.try_clone()?.into())).collect::<io::Result<_>>()?;
        Ok(Self { null, kept: Mutex::new(kept) })
    }

    /// Gives up one descriptor, if one is left.
    pub(super) fn give_up(&self) -> bool {
        self.kept().pop().is_some()
    }

    /// Closes `connection`, and keeps its descriptor if one was given up.
    pub(super) fn close(&self, mut connection: OwnedFd) {
        let mut kept = self.kept();
        if kept.len() < SPARES && rustix::io::dup2(&self.null, &mut connection).is_ok() {
            kept.push(connection);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<OwnedFd>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::net::UnixStream};

    use super::*;

    #[test]
    fn what_was_given_up_is_taken_back_from_a_connection_which_is_closed() {
        let spares = Spares::new().unwrap();
        let given = std::iter::from_fn(|| spares.give_up().then_some(())).count();
        assert_eq!(given, SPARES);
        for round in 0..=SPARES {
            let (mut client, server) = UnixStream::pair().unwrap();
            spares.close(server.into());
            assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "closed in round {round}");
        }
        assert_eq!(spares.kept().len(), SPARES);
    }
}
