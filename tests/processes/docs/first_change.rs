//! The first change of a developer, executed as CONTRIBUTING describes it, in a fresh clone.

use std::{fs, path::Path, time::Duration};

use harness::book::Page;
use platform_runtime::{config::Environment, report::ErrorText};
use tokio::{process::Command, time::timeout};

/// Longest that one step may take, beside other tests. The page promises ten minutes for all of them, reading included.
const STEP_TIMEOUT: Duration = Duration::from_secs(200);
/// Variables that a developer's shell has, too. Those of this test's package would reach build scripts.
const KEPT: [&str; 4] = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"];
/// Variables that name the author of a commit.
const PERSON: [&str; 4] =
    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];

/// Lines of the test that the page names: one that is there, and the one that a developer adds behind it.
const CASE: (&str, &str) =
    ("            (\"1500\", 1500, \"1500 B\"),\n", "            (\"\\t7 KiB\", 7 << 10, \"7 KiB\"),\n");

/// Runs commands of the page in `clone`.
async fn run(clone: &Path, commands: &str) -> Result<String, ErrorText> {
    let own = Environment::capture();
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{commands}")]).current_dir(clone).env_clear();
    shell.envs(KEPT.into_iter().filter_map(|name| Some((name, own.get(name)?))));
    shell.envs(PERSON.map(|name| (name, "ann@example.com")));
    shell.env("CARGO_NET_OFFLINE", "true").kill_on_drop(true);
    let ended = timeout(STEP_TIMEOUT, shell.output()).await;
    let output = ended.unwrap_or_else(|_| panic!("it hangs: {commands}")).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(said) } else { Err(ErrorText(said)) }
}

/// The control: a case that is wrong fails.
#[tokio::test]
async fn the_first_change_works_as_written() {
    let page = Page::read("CONTRIBUTING.md");
    let clone = page.root.path().join("sluicegate");
    let repository = format!("{}/..", env!("CARGO_MANIFEST_DIR"));
    run(page.root.path(), &format!("git clone --quiet {repository} sluicegate")).await.unwrap();
    let section = page.section("## Your first change in ten minutes");
    let blocks: Vec<_> =
        section.split("   ```sh\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let [test_all, test_limits, lint, commit] = blocks[..] else { panic!("{blocks:?}") };
    run(&clone, test_all).await.unwrap();
    let file = clone.join("platform/core/src/limit.rs");
    let text = fs::read_to_string(&file).unwrap();
    let (before, case) = CASE;
    fs::write(&file, text.replacen(before, &format!("{before}{}", case.replace("7 <<", "8 <<")), 1)).unwrap();
    let said = run(&clone, test_limits).await.expect_err("a wrong case passes");
    assert!(said.0.contains("sizes_are_read_and_shown_with_units"), "{said}");
    fs::write(&file, text.replacen(before, &format!("{before}{case}"), 1)).unwrap();
    run(&clone, test_limits).await.unwrap();
    run(&clone, lint).await.unwrap();
    run(&clone, commit).await.unwrap();
    let changed = run(&clone, "git show --stat --format=%s").await.unwrap();
    assert!(changed.starts_with("test(limits)") && changed.contains("1 insertion(+)"), "{changed}");
}
