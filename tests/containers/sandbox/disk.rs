//! Tests that a workspace is as large as it may be and no larger, and that nothing of it stays on the host.

use harness::{Outcome, World, docker::docker, eventually, mounts};
use serde_json::json;

use super::{shell_agent, world_with};

const IMAGE: &str = "sluicegate/sandbox-runtime:latest";
/// Script that fills the disk with one file, then with as many as there can be.
const FILL: &str = "dd if=/dev/zero of=large bs=1M 2>&1 | grep -o 'No space left on device'; rm -f large; \
                    number=0; while : > file$number; do number=$((number + 1)); done 2>/dev/null; \
                    [ $number -gt 1000 ] && echo $number files";

async fn run(world: &World, settings: &[&str]) -> Outcome {
    run_under(world, &["env"], settings).await
}

/// Runs the shell agent; `words` start `sluice`.
async fn run_under(world: &World, words: &[&str], settings: &[&str]) -> Outcome {
    let settings: Vec<_> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let words = world.sluice().under(words);
    words.run(&[&["run", "--agent", "test:sh", "--json", "q"], &settings[..]].concat()).await
}

/// The entry's `disk` decides how many files a run may begin with, as it decides how many its workspace holds.
#[tokio::test]
async fn a_larger_disk_takes_more_files() {
    let world = World::with(&shell_agent("ls | wc -l", "disk = '128 MiB'\n")).await;
    let dir = world.path().join("many");
    std::fs::create_dir(&dir).unwrap();
    (0..100).for_each(|number| std::fs::write(dir.join(number.to_string()), "").unwrap());
    let dir = dir.display().to_string();
    let bounds = ["--set", "sandbox.workspace_size=64MiB", "--set", "sandbox.max_workspace_files=128"];
    let order = [&["run", "--agent", "test:sh", "--workspace", &dir, "q"][..], &bounds].concat();
    let taken = world.sluice().run(&order).await;
    assert_eq!((taken.code, taken.stdout.trim()), (Some(0), "100"), "{taken:?}");
    world.reconfigure("disk = '128 MiB'", "disk = '64 MiB'");
    let refused = world.sluice().run(&order).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for said in ["100 files and directories exceed the limit of 64", "`disk`", "sandbox.max_workspace_files"]
    {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
}

#[tokio::test]
async fn a_full_workspace_fills_nothing_else() {
    let world = world_with(FILL).await;
    let size =
        ["sandbox.workspaces=image", "sandbox.workspace_size=32MiB", "sandbox.max_workspace_files=4096"];
    let outcome = run(&world, &size).await;
    let text = outcome.result()["stdout"]["text"].as_str().unwrap().to_owned();
    let files = text.strip_prefix("No space left on device\n").and_then(|rest| rest.strip_suffix(" files\n"));
    let files: u32 = files.unwrap_or_else(|| panic!("{outcome:?}")).parse().unwrap();
    assert!((3900..4200).contains(&files), "{files} of 4096");
    assert_eq!(outcome.code, Some(0), "it can go on: {outcome:?}");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn an_agent_that_fills_its_directory_is_ended() {
    let grows = "while true; do head -c 1M /dev/zero >> large; sleep 0.01; done";
    let multiplies = "number=0; while : > file$number; do number=$((number + 1)); done";
    for (script, message) in
        [(grows, "its workspace grew beyond 16 MiB"), (multiplies, "its workspace had more than 1000 files")]
    {
        let world = world_with(script).await;
        let size = [
            "sandbox.workspaces=directory",
            "sandbox.workspace_size=16MiB",
            "sandbox.max_workspace_files=1000",
        ];
        let outcome = run(&world, &size).await;
        let error = &outcome.result()["error"];
        assert_eq!(error["code"], "container_failed", "{outcome:?}");
        assert_eq!((outcome.code, &error["message"]), (Some(1), &json!(message)), "{outcome:?}");
        world.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn a_workspace_in_use_is_left_to_its_container() {
    let world = world_with("touch up; until [ -e go ]; do sleep 0.02; done").await;
    let child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"]);
    let workspace = world.workspace("r1").await;
    eventually("the agent runs", || async { workspace.join("up").exists() }, |up| *up).await;
    let (name, volume) =
        (format!("{}-other", world.installation()), format!("{}:/workspace", workspace.display()));
    let label = format!("sluicegate.installation={}", world.installation());
    let words = [
        "run",
        "--detach",
        "--network",
        "none",
        "--name",
        &name,
        "--label",
        &label,
        "--volume",
        &volume,
        "--workdir",
        "/workspace",
    ];
    docker(&[&words[..], &["--entrypoint", "sleep", IMAGE, "60"]].concat()).await;
    std::fs::write(workspace.join("go"), "").unwrap();
    let outcome: Outcome = child.wait_with_output().await.unwrap().into();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!workspace.exists());
    assert_eq!(mounts::below(world.path()).len(), 0);
    assert_eq!(mounts::loops_below(world.path()).len(), 1, "control: a device that is in use is seen");
    let kept = docker(&["exec", &name, "ls", "/workspace"]).await;
    assert_eq!(kept.split_whitespace().collect::<Vec<_>>(), ["go", "up"], "it notices nothing");
    docker(&["rm", "--force", &name]).await;
    world.assert_nothing_left().await;
}

/// The doctor says why.
#[tokio::test]
async fn without_images_workspaces_are_directories() {
    let world = world_with("touch file && stat -c '%u %a' . .cogni").await;
    let found = world.sluice().run(&["doctor"]).await;
    assert!(found.stdout.contains("ok       workspaces: images of 1 GiB and 131072 files in "), "{found:?}");
    for (words, because) in [
        // As a service that has its own mounts: Docker does not see them.
        (&["unshare", "--mount", "--propagation", "private"][..], "PrivateTmp"),
        (&["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"], "mount failed on"),
    ] {
        let doctor = world.sluice().under(words).run(&["doctor"]).await;
        assert!(doctor.stdout.contains("ok       workspaces: watched directories, because"), "{doctor:?}");
        assert!(doctor.stdout.contains(because), "{doctor:?}");
        assert_eq!(doctor.stderr.matches("workspaces are directories").count(), 1, "{doctor:?}");
        let image = ["--set", "sandbox.workspaces=image", "doctor"];
        let doctor = world.sluice().under(words).run(&image).await;
        assert!(
            doctor.stdout.contains("broken   workspaces: ") && doctor.stdout.contains(because),
            "{doctor:?}"
        );
        let outcome = run_under(&world, words, &[]).await;
        assert_eq!(outcome.result()["stdout"]["text"], "1001 755\n1001 755\n", "{outcome:?}");
        world.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn a_workspace_is_the_agents_whatever_the_umask() {
    let script =
        "touch file && cat .cogni/conversation.md && stat -c '%u:%g %a' . .cogni .cogni/messages.json";
    for form in ["image", "directory"] {
        let world = world_with(script).await;
        let form = format!("sandbox.workspaces={form}");
        let outcome = run_under(&world, &["sh", "-c", r#"umask 0777 && exec "$0" "$@""#], &[&form]).await;
        let conversation = "# Conversation\n\n## user\n\n```\nq\n```\n";
        let expected = format!("{conversation}1001:1001 755\n1001:1001 755\n1001:1001 644\n");
        assert_eq!(outcome.result()["stdout"]["text"], expected, "{outcome:?}");
        world.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn no_run_begins_where_it_could_fill_the_disk() {
    let world = world_with("true").await;
    let outcome = run(&world, &["sandbox.disk_reserve=1000000GiB"]).await;
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    assert!(
        outcome.stderr.contains("has too little room") && outcome.stderr.contains("sandbox.disk_reserve")
    );
    let runs = world.sluice().run(&["runs", "ls", "--json"]).await.result();
    assert_eq!(runs["runs"], json!([]), "nothing of it is stored");
    let doctor = world.sluice().run(&["--set", "sandbox.disk_reserve=1000000GiB", "doctor"]).await;
    assert!(doctor.stdout.contains("broken   workspaces: too little room"), "{doctor:?}");
    assert_eq!(run(&world, &[]).await.code, Some(0), "control");
}
