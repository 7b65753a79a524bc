//! Lists OpenClaw's groups of tools, as far as they matter here. Pure.
//!
//! Source: <https://docs.openclaw.ai/gateway/config-tools/tool-policy>, version 2026.9.6.

/// Groups, with their tools.
const GROUPS: [(&str, &[&str]); 7] = [
    ("group:runtime", &["exec", "process"]),
    ("group:fs", &["read", "write", "edit", "apply_patch"]),
    ("group:web", &["web_search", "web_fetch"]),
    ("group:ui", &["browser", "canvas"]),
    ("group:sessions", &["sessions_spawn", "sessions_yield", "sessions_list", "sessions_send"]),
    ("group:automation", &["cron", "gateway"]),
    ("group:messaging", &["message"]),
];

/// Tools that have no name in `group:openclaw`.
const PRIMITIVES: [&str; 7] = ["read", "write", "edit", "apply_patch", "exec", "process", "canvas"];

/// Returns the tools about which people ask.
pub(crate) fn tools() -> impl Iterator<Item = &'static str> {
    GROUPS.into_iter().flat_map(|(_, tools)| tools.iter().copied())
}

/// Returns the names that include `tool` in a list: its own, those of its groups, and the one of all tools.
pub(crate) fn names_of(tool: &str) -> Vec<&str> {
    let groups = GROUPS.into_iter().filter(|(_, tools)| tools.contains(&tool)).map(|(group, _)| group);
    let openclaw = (!PRIMITIVES.contains(&tool)).then_some("group:openclaw");
    // `bash` is another name of `exec`. A list with `write` allows `apply_patch`, and does not deny it.
    let alias = (tool == "exec").then_some("bash");
    [tool, "*"].into_iter().chain(groups).chain(openclaw).chain(alias).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_tools_in_several_ways() {
        assert_eq!(names_of("exec"), ["exec", "*", "group:runtime", "bash"]);
        assert_eq!(names_of("browser"), ["browser", "*", "group:ui", "group:openclaw"]);
        assert_eq!(names_of("unlisted"), ["unlisted", "*", "group:openclaw"]);
        assert_eq!(tools().count(), 17);
    }
}
