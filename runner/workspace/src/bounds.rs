//! Defines what a workspace has to survive. Pure.

/// Failures that a workspace has to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of its run, at most: if the machine goes down, its container is gone too.
    Run,
    /// A crash of the machine as well.
    Machine,
}
