//! transport names the ways over which git may reach a repository.

/// Way over which git may reach a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Transport {
    /// A directory on this host.
    File,
    /// HTTP without encryption.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Transport {
    /// Returns git's name of it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}
