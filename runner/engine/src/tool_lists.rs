//! Decides which host tools a run may call: those of its agent that neither its account nor its order leaves out.
//!
//! Does not know which tools exist.

use std::fmt;

use platform_core::{
    id::ToolName,
    json::{self, Bounds},
};
use platform_runtime::settings::Settings;

use crate::run_request::{RunRequest, RunSpec};

/// The three lists of tools that apply to a run. A tool has to be on all of them.
#[derive(Debug, Clone, Copy)]
pub struct ToolLists<'l> {
    /// Tools of the agent.
    pub agent: &'l [ToolName],
    /// Tools of the account; all if absent.
    pub account: Option<&'l [ToolName]>,
    /// Tools of the order; all if absent.
    pub order: Option<&'l [ToolName]>,
}

/// List of tools that applies to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolList {
    /// `host_tools` of the agent.
    Agent,
    /// `host_tools` of the account.
    Account,
    /// Tools of the order.
    Order,
}

impl ToolList {
    /// Returns the list in a word, for output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Account => "account",
            Self::Order => "run",
        }
    }
}

impl fmt::Display for ToolList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl<'l> ToolLists<'l> {
    /// Returns the lists of `request`. That of the account is the one of the latest `settings`, so that a tool can be
    /// taken away from runs that wait.
    #[must_use]
    pub fn of(request: &'l RunRequest, settings: &'l Settings) -> Self {
        Self {
            agent: &request.spec.agent.host_tools,
            account: settings.accounts.of(&request.account).host_tools.as_deref(),
            order: request.spec.host_tools.as_deref(),
        }
    }

    /// Returns the tools that a stored order lets its run call, if its account does; none if the order was removed.
    #[must_use]
    pub fn ordered(wanted: &str) -> Vec<ToolName> {
        let spec: Option<RunSpec> = json::from_str(wanted, Bounds::STORED).ok();
        let of = |spec: RunSpec| {
            let order = spec.host_tools.as_deref();
            ToolLists { agent: &spec.agent.host_tools, account: None, order }.granted()
        };
        spec.map(of).unwrap_or_default()
    }

    /// Returns the first list that lacks `tool`; `None` if the run may call it.
    #[must_use]
    pub fn lacking(&self, tool: &ToolName) -> Option<ToolList> {
        let lists = [
            (ToolList::Agent, Some(self.agent)),
            (ToolList::Account, self.account),
            (ToolList::Order, self.order),
        ];
        let lacks = |list: &Option<&[ToolName]>| list.is_some_and(|list| !list.contains(tool));
        lists.into_iter().find_map(|(which, list)| lacks(&list).then_some(which))
    }

    /// Returns the tools that the run may call, sorted, each once.
    #[must_use]
    pub fn granted(&self) -> Vec<ToolName> {
        let mut tools: Vec<_> =
            self.agent.iter().filter(|tool| self.lacking(tool).is_none()).cloned().collect();
        tools.sort_unstable();
        tools.dedup();
        tools
    }

    /// Returns the first tool of the order that another list lacks, and that list.
    pub(crate) fn refused(&self) -> Option<(&'l ToolName, ToolList)> {
        self.order.unwrap_or_default().iter().find_map(|tool| Some((tool, self.lacking(tool)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<ToolName> {
        names.iter().map(|name| ToolName::parse(name).unwrap()).collect()
    }

    #[test]
    fn a_tool_has_to_be_on_every_list() {
        let [agent, account, order] = [tools(&["c", "a", "b", "a"]), tools(&["b", "c", "x"]), tools(&["c"])];
        let lists = ToolLists { agent: &agent, account: None, order: None };
        assert_eq!(lists.granted(), tools(&["a", "b", "c"]));
        let lists = ToolLists { account: Some(&account), ..lists };
        assert_eq!(lists.granted(), tools(&["b", "c"]));
        let lists = ToolLists { order: Some(&order), ..lists };
        assert_eq!(lists.granted(), tools(&["c"]));
        let lacking = |name: &str| lists.lacking(&ToolName::parse(name).unwrap());
        assert_eq!(
            ["x", "a", "b", "c", "C"].map(lacking),
            [
                Some(ToolList::Agent),
                Some(ToolList::Account),
                Some(ToolList::Order),
                None,
                Some(ToolList::Agent)
            ]
        );
        assert_eq!(ToolLists { order: Some(&[]), ..lists }.granted(), []);
        assert_eq!(ToolLists { account: Some(&[]), ..lists }.granted(), []);
    }

    #[test]
    fn an_order_names_a_tool_that_is_not_granted() {
        let [agent, account, order] = [tools(&["a", "b"]), tools(&["a"]), tools(&["a", "b", "x"])];
        let lists = ToolLists { agent: &agent, account: Some(&account), order: Some(&order) };
        assert_eq!(lists.refused(), Some((&order[1], ToolList::Account)));
        let lists = ToolLists { account: None, ..lists };
        assert_eq!(lists.refused(), Some((&order[2], ToolList::Agent)));
        assert_eq!(ToolLists { order: Some(&agent), ..lists }.refused(), None);
    }
}
