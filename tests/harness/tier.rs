//! Keeps the tests of `tests/processes` from Docker, also where a daemon runs: they pass on a machine without one.

/// Returns whether this test may use Docker, which its binary decides.
pub(crate) fn may_use_docker() -> bool {
    let own = std::env::current_exe().unwrap();
    !own.file_name().is_some_and(|name| name.to_string_lossy().starts_with("processes-"))
}
