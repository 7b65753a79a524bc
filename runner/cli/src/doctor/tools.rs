//! Checks whether the host tools that agents may call can be used here.

use std::{collections::BTreeSet, os::unix::net::UnixStream};

use platform_runtime::settings::Settings;
use runner_tools::CatalogEntry;

use super::{STORE, check::Check};
use crate::plural::counted;

const TOOLS: &str = "host tools";

/// Checks the tools of all agents, if there are any. The `catalog` is absent without a store.
pub(crate) fn tools_check(settings: &Settings, catalog: Option<&[CatalogEntry]>) -> Option<Check> {
    let granted: BTreeSet<_> = settings.agents.values().flat_map(|agent| &agent.host_tools).collect();
    if granted.is_empty() {
        return None;
    }
    let Some(catalog) = catalog else { return Some(Check::unknown(TOOLS, STORE)) };
    let lacking = |entry: &CatalogEntry| {
        let reason = entry.unavailable.as_ref().filter(|_| granted.contains(&entry.name))?;
        Some(format!("{}: {reason}", entry.name))
    };
    let lacking: Vec<_> = catalog.iter().filter_map(lacking).collect();
    if !lacking.is_empty() {
        let fix = "configure what they lack, or take them out of `host_tools`";
        return Some(Check::broken(TOOLS, lacking.join("\n"), fix));
    }
    let is_served = UnixStream::connect(settings.tool_socket()).is_ok();
    let served = if is_served { "served by `sluice up`" } else { "`sluice up` serves them while it runs" };
    Some(Check::ok(TOOLS, format!("{} for agents, {served}", counted(granted.len(), "tool"))))
}

#[cfg(test)]
mod tests {
    use platform_core::limit::Millis;
    use platform_runtime::config::Sources;
    use runner_tools::Effect;

    use super::*;

    fn check(granted: &str, unavailable: Option<&str>) -> Option<Check> {
        let text = format!("[agents.'t:a']\nimage = 'i:1'\nargv = ['a']\nhost_tools = [{granted}]");
        let file = Some(("s.toml".into(), text));
        let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
        let entry = CatalogEntry {
            name: "repo_refresh".parse().unwrap(),
            description: String::new(),
            schema: serde_json::Value::Null,
            effect: Effect::Writes,
            timeout: Millis::seconds(1),
            server: None,
            unavailable: unavailable.map(str::to_owned),
        };
        tools_check(&settings, Some(&[entry]))
    }

    #[test]
    fn a_granted_tool_that_cannot_be_used_is_broken() {
        assert!(check("", Some("no mirror")).is_none(), "no agent has it");
        assert!(check("'repo_refresh'", None).unwrap().is_ok());
        let broken = format!("{:?}", check("'repo_refresh'", Some("no mirror")).unwrap());
        assert!(broken.contains("repo_refresh: no mirror"), "{broken}");
    }
}
