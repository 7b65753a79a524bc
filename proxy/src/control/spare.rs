//! Descriptors that are kept for control alone: when the process has no others left, it can still be reached, by those who
//! can do something about that.
//!
//! One is given up so that a connection can be accepted, and taken back from that very connection at its end, in one step:
//! whoever else waits for a descriptor never gets hold of it.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How many: connections that can be open while nothing else can.
const SPARES: usize = 4;

/// The descriptors.
#[derive(Debug)]
pub(super) struct Spares {
    null: File,
    kept: Mutex<Vec<OwnedFd>>,
}

impl Spares {
    /// # Errors
    /// If there are none to be had.
    pub(super) fn new() -> io::Result<Self> {
        let null = File::open("/dev/null")?;
        let kept = (0..SPARES).map(|_| Ok(null.try_clone()?.into())).collect::<io::Result<_>>()?;
        Ok(Self { null, kept: Mutex::new(kept) })
    }

    /// Gives one up, if there is one.
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
