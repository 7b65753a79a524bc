//! Names the steps in which a gateway gets an agent.

/// Step of applying an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentStep {
    /// The file of a managed gateway is written, and the gateway takes it.
    Configuration,
    /// The agent is created, renamed or deleted.
    Agent,
    /// The approvals of its commands are set.
    Approvals,
    /// Its groups of tools are set.
    Tools,
    /// Its behaviour files are written.
    Files,
}

impl AgentStep {
    /// Returns the step as a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Agent => "agent",
            Self::Approvals => "approvals",
            Self::Tools => "tools",
            Self::Files => "files",
        }
    }
}
