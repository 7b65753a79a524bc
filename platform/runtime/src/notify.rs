//! Reports this process's state to a service manager: systemd's notify protocol, sd_notify(3).
//!
//! Each message is one datagram to the socket that `NOTIFY_SOCKET` names. Without that variable nothing is sent. A lost
//! message is only logged; the manager's own timeouts decide what follows.

use std::{
    io,
    os::{linux::net::SocketAddrExt, unix::net},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

use crate::{config::Environment, report};

/// Connection to the service manager, if there is one.
#[derive(Debug, Default)]
pub struct Notifier {
    /// Socket to send from, and the manager's address.
    manager: Option<(net::UnixDatagram, net::SocketAddr)>,
    /// Time without a sign of life after which the manager considers this process dead.
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Returns a notifier for the manager that `environment` names; without one, nothing is sent.
    ///
    /// # Errors
    /// If the named manager's address is invalid, or no socket can be created.
    pub fn from_environment(environment: &Environment) -> io::Result<Self> {
        let Some(name) = environment.get("NOTIFY_SOCKET") else { return Ok(Self::default()) };
        let address = match name.strip_prefix('@') {
            Some(name) => net::SocketAddr::from_abstract_name(name)?,
            None => net::SocketAddr::from_pathname(name)?,
        };
        let number = |name| environment.get(name).and_then(|text| text.parse::<u64>().ok());
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|_| is_ours).map(Duration::from_micros);
        let watchdog = watchdog.filter(|interval| !interval.is_zero());
        Ok(Self { manager: Some((net::UnixDatagram::unbound()?, address)), watchdog })
    }

    /// Returns the time without [`Notifier::alive`] after which the manager considers this process dead.
    #[must_use]
    pub const fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Reports that this process is ready to serve.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// Reports that the configuration is read again; [`Notifier::ready`] follows in any case.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1000));
    }

    /// Reports that this process stops and needs at most `within` for it.
    pub fn stopping(&self, within: Duration) {
        self.send(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", within.as_micros()));
    }

    /// Reports that this process is not stuck.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, message: &str) {
        let Some((socket, address)) = &self.manager else { return };
        if let Err(error) = socket.send_to_addr(message.as_bytes(), address) {
            tracing::warn!(error = report::chain(&error), message, "service manager not notified");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    fn receive(socket: &UnixDatagram) -> String {
        let mut message = [0; 256];
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_manager_is_notified_at_either_address() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let abstract_name = format!("sluicegate-test-{:x}", crate::random::bits());
        let at = net::SocketAddr::from_abstract_name(&abstract_name).unwrap();
        for (name, socket) in [
            (path.display().to_string(), UnixDatagram::bind(&path).unwrap()),
            (format!("@{abstract_name}"), UnixDatagram::bind_addr(&at).unwrap()),
        ] {
            let environment =
                Environment::from([("NOTIFY_SOCKET", name.as_str()), ("WATCHDOG_USEC", "3000000")]);
            let notifier = Notifier::from_environment(&environment).unwrap();
            assert_eq!(notifier.watchdog(), Some(Duration::from_secs(3)));
            notifier.ready();
            assert_eq!(receive(&socket), "READY=1");
            notifier.reloading();
            let reloading = receive(&socket);
            let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
            assert!(since.parse::<u64>().unwrap() > 0);
            notifier.stopping(Duration::from_secs(2));
            assert_eq!(receive(&socket), "STOPPING=1\nEXTEND_TIMEOUT_USEC=2000000");
            notifier.alive();
            assert_eq!(receive(&socket), "WATCHDOG=1");
        }
    }

    #[test]
    fn another_processs_watchdog_is_ignored() {
        let none = Notifier::from_environment(&Environment::default()).unwrap();
        none.ready();
        assert_eq!(none.watchdog(), None);
        let environment = Environment::from([
            ("NOTIFY_SOCKET", "/nowhere/notify"),
            ("WATCHDOG_USEC", "3000000"),
            ("WATCHDOG_PID", "1"),
        ]);
        let others = Notifier::from_environment(&environment).unwrap();
        assert_eq!(others.watchdog(), None);
        others.ready();
    }
}
