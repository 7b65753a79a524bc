//! Tests host tools of third-party servers.

mod servers;
mod servers_double;
