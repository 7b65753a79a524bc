//! Lists the top-level sections of a configuration, and the program that owns each.
//!
//! Both programs read the whole file. On a reload each handles only its own sections, so this list names the owner of
//! every section. A section without an entry cannot be read, and a test compares the schema's sections with this list.

/// A top-level section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionName {
    /// `[upstream]`
    Upstream,
    /// `[proxy]`
    Proxy,
    /// `[journal]`
    Journal,
    /// `[sandbox]`
    Sandbox,
    /// `[store]`
    Store,
    /// `[worker]`
    Worker,
    /// `[api]`
    Api,
    /// `[billing]`
    Billing,
    /// `[relay]`
    Relay,
    /// `[github]`
    GitHub,
    /// `[agents_repository]`
    AgentsRepository,
    /// `[telemetry]`
    Telemetry,
    /// `[tools]`
    Tools,
    /// `[connections]`
    Connections,
    /// `[agents."family:name"]`
    Agents,
    /// `[gateways.NAME]`
    Gateways,
    /// `[accounts."id"]`
    Accounts,
    /// `[prices."model"]`
    Prices,
    /// `[models."model"]`
    Models,
    /// `[runs."id"]`
    Runs,
}

/// Program that a change of a section concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwningProgram {
    /// `sluice-proxy`, which applies the change or refuses it by name.
    Proxy,
    /// `sluice up`, which applies the change or reports that the old value stays in force. The proxy ignores it.
    ControlPlane,
}

impl SectionName {
    /// All sections.
    pub const ALL: [Self; 20] = [
        Self::Upstream,
        Self::Proxy,
        Self::Journal,
        Self::Sandbox,
        Self::Store,
        Self::Worker,
        Self::Api,
        Self::Billing,
        Self::Relay,
        Self::GitHub,
        Self::AgentsRepository,
        Self::Telemetry,
        Self::Tools,
        Self::Connections,
        Self::Agents,
        Self::Gateways,
        Self::Accounts,
        Self::Prices,
        Self::Models,
        Self::Runs,
    ];

    /// Returns the section's name in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Proxy => "proxy",
            Self::Journal => "journal",
            Self::Sandbox => "sandbox",
            Self::Store => "store",
            Self::Worker => "worker",
            Self::Api => "api",
            Self::Billing => "billing",
            Self::Relay => "relay",
            Self::GitHub => "github",
            Self::AgentsRepository => "agents_repository",
            Self::Telemetry => "telemetry",
            Self::Tools => "tools",
            Self::Connections => "connections",
            Self::Agents => "agents",
            Self::Gateways => "gateways",
            Self::Accounts => "accounts",
            Self::Prices => "prices",
            Self::Models => "models",
            Self::Runs => "runs",
        }
    }

    /// Returns the program that a change of the section concerns.
    #[must_use]
    pub const fn owner(self) -> OwningProgram {
        match self {
            Self::Upstream | Self::Proxy | Self::Journal | Self::Accounts | Self::Prices | Self::Runs => {
                OwningProgram::Proxy
            }
            Self::Sandbox
            | Self::Store
            | Self::Worker
            | Self::Api
            | Self::Billing
            | Self::Relay
            | Self::GitHub
            | Self::AgentsRepository
            | Self::Telemetry
            | Self::Tools
            | Self::Connections
            | Self::Agents
            | Self::Gateways
            | Self::Models => OwningProgram::ControlPlane,
        }
    }

    /// Returns whether `sluice up` applies a change of the section when it reads the configuration again.
    #[must_use]
    pub const fn is_reloaded_by_control_plane(self) -> bool {
        matches!(self, Self::Agents | Self::Models | Self::Billing | Self::Relay | Self::AgentsRepository)
    }

    /// Returns the section that contains the setting with the dotted `key`.
    #[must_use]
    pub fn of(key: &str) -> Option<Self> {
        let name = key.split_once('.').map_or(key, |(name, _)| name);
        Self::ALL.into_iter().find(|section| section.name() == name)
    }
}
