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

/// Profiles, with their tools. The profile `full` has all.
const PROFILES: [(&str, &[&str]); 3] = [
    ("minimal", &["gateway"]),
    (
        "coding",
        &[
            "exec",
            "process",
            "read",
            "write",
            "edit",
            "apply_patch",
            "web_search",
            "web_fetch",
            "sessions_spawn",
            "sessions_yield",
            "sessions_list",
            "sessions_send",
            "cron",
            "gateway",
        ],
    ),
    (
        "messaging",
        &["sessions_spawn", "sessions_yield", "sessions_list", "sessions_send", "message", "gateway"],
    ),
];

/// Tools that have no name in `group:openclaw`.
const PRIMITIVES: [&str; 7] = ["read", "write", "edit", "apply_patch", "exec", "process", "canvas"];

/// Returns the tools about which people ask.
pub(crate) fn tools() -> impl Iterator<Item = &'static str> {
    GROUPS.into_iter().flat_map(|(_, tools)| tools.iter().copied())
}

/// Returns those of the tools that the profile `name` has; `None` if it has all, or is unknown.
pub(crate) fn profile(name: &str) -> Option<&'static [&'static str]> {
    PROFILES.into_iter().find(|(profile, _)| *profile == name).map(|(_, tools)| tools)
}

/// Returns whether a name of a list, in which `*` stands for any text, includes `tool`.
pub(crate) fn matches(pattern: &str, tool: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == tool };
    let Some(mut left) = tool.strip_prefix(start) else { return false };
    let mut parts = rest.split('*');
    let Some(end) = parts.next_back() else { return false };
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(end)
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

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, tool, expected) in [
            ("web_*", "web_search", true),
            ("*", "exec", true),
            ("*_search", "web_search", true),
            ("w*_*h", "web_fetch", true),
            ("web*web", "web", false),
            ("web_*", "exec", false),
            ("exec", "exec", true),
            ("exe", "exec", false),
        ] {
            assert_eq!(matches(pattern, tool), expected, "{pattern} {tool}");
        }
    }

    #[test]
    fn profiles_name_tools_that_people_ask_about() {
        let known: Vec<_> = tools().collect();
        for (name, profile) in PROFILES {
            assert!(profile.iter().all(|tool| known.contains(tool)), "{name}");
        }
        assert_eq!((profile("full"), profile("other")), (None, None));
    }
}
