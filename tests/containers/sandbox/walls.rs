//! Tests the isolation of a sandbox: user, capabilities, file systems, processes. Each question also goes to a plain
//! container, which answers otherwise, so that the isolation is Sluicegate's doing.

use std::fs;

use harness::{World, docker::docker};

use super::{inside, run, shell_agent};

const IMAGE: &str = "sluicegate/sandbox-runtime:latest";

/// A question for bash, and its answer in a sandbox.
type Wall = (&'static str, &'static str);

const PRIVILEGES: &[Wall] = &[
    ("id -u; id -g; id -G", "1001\n1001\n1001\n"),
    ("grep -E '^Cap(Prm|Eff|Bnd)' /proc/self/status | cut -f 2 | sort -u", "0000000000000000\n"),
    ("grep ^NoNewPrivs: /proc/self/status | cut -f 2", "1\n"),
    ("grep ^Seccomp: /proc/self/status | cut -f 2", "2\n"),
    ("unshare --user true 2>/dev/null || echo refused", "refused\n"),
    ("mknod /tmp/null c 1 3 2>/dev/null || echo refused", "refused\n"),
    ("chroot / true 2>/dev/null || echo refused", "refused\n"),
];

const FILE_SYSTEMS: &[Wall] = &[
    ("findmnt --noheadings --output OPTIONS / | cut -c 1-2", "ro\n"),
    ("touch /home/sandboxer/x 2>&1 | grep -o 'Read-only file system'", "Read-only file system\n"),
    ("findmnt --noheadings --output OPTIONS /llm-sock | cut -c 1-2", "ro\n"),
    ("touch /llm-sock/x 2>&1 | grep -o 'Read-only file system'", "Read-only file system\n"),
    ("rm -f /llm-sock/llm.sock 2>&1 | grep -o 'Read-only file system'", "Read-only file system\n"),
    ("ls /llm-sock 2>&1 | grep -o 'Permission denied'", "Permission denied\n"),
    ("find /llm-sock/llm.sock -perm 666 -type s", "/llm-sock/llm.sock\n"),
    ("findmnt --noheadings --bytes --output SIZE /tmp | tr -d ' '", "1073741824\n"),
    ("findmnt --noheadings --bytes --output SIZE /run | tr -d ' '", "8388608\n"),
    ("head -c 9M /dev/zero 2>&1 >/run/big | grep -o 'No space left'; rm /run/big", "No space left\n"),
    ("cp /bin/true /run/t && /run/t 2>/dev/null || echo refused", "refused\n"),
    ("findmnt --noheadings --output OPTIONS /tmp | grep -o nosuid", "nosuid\n"),
    ("findmnt --noheadings --output OPTIONS /var/tmp | grep -o nosuid", "nosuid\n"),
    ("findmnt --noheadings --output OPTIONS /run | grep -o nosuid", "nosuid\n"),
];

const DOCKER: &[Wall] = &[
    // `%M` looks at the file itself: of a socket that is mounted over it its directory knows nothing.
    ("find / -path /proc -prune -o -printf '%M %p\n' 2>/dev/null | grep ^s", ""),
    ("grep docker.sock /proc/mounts", ""),
];

/// Returns a script that answers all questions, the end of each marked.
fn script(walls: &[Wall]) -> String {
    walls.iter().map(|(question, _)| format!("({question}); printf '\\036'\n")).collect()
}

/// Asserts that a sandbox has all of `walls`, and that a container with these `privileges` has none.
async fn assert_walls(walls: &[Wall], privileges: &[&str]) {
    let answers = inside(&script(walls)).await;
    let control = docker(&[&["run", "--rm"], privileges, &[IMAGE, "-c", &script(walls)]].concat()).await;
    let (answers, control) = (answers.split_terminator('\x1e'), control.split_terminator('\x1e'));
    assert_eq!((answers.clone().count(), control.clone().count()), (walls.len(), walls.len()));
    for (((question, expected), answer), other) in walls.iter().zip(answers).zip(control) {
        assert_eq!(answer, *expected, "{question}");
        assert_ne!(other, *expected, "this can never fail: {question}");
    }
}

#[tokio::test]
async fn an_agent_has_no_privilege_and_no_way_to_one() {
    let root = ["--user", "0", "--security-opt", "seccomp=unconfined", "--entrypoint", "bash"];
    assert_walls(PRIVILEGES, &root).await;
}

/// All but the workspace are in memory, and temporary.
#[tokio::test]
async fn only_workspace_and_tmp_are_writable() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("llm.sock"), "").unwrap();
    let mount = format!("{}:/llm-sock", dir.path().display());
    assert_walls(FILE_SYSTEMS, &["--user", "0", "--entrypoint", "bash", "--volume", &mount]).await;
    let places = "for dir in /workspace /tmp /var/tmp /run; do touch $dir/x && rm $dir/x && echo $dir; done";
    assert_eq!(inside(places).await, "/workspace\n/tmp\n/var/tmp\n/run\n");
}

#[tokio::test]
async fn no_socket_of_the_host_is_inside() {
    let mount = ["--volume", "/var/run/docker.sock:/var/run/docker.sock"];
    assert_walls(DOCKER, &["--entrypoint", "bash", mount[0], mount[1]]).await;
}

/// Script that leaves two hundred orphans to process 1 and waits for their end, which closes a pipe that all of them
/// hold. It then counts the zombies until there are none or a second has passed.
const ORPHANS: &str = r#"
    pipe(my $all_ended, my $alive);
    for (1..200) { my $child = fork; if (!$child) { fork or select(undef, undef, undef, 0.05); exit } waitpid $child, 0 }
    close $alive; <$all_ended>;
    my $zombies;
    for (1..50) {
        select(undef, undef, undef, 0.02);
        $zombies = 0;
        for (glob "/proc/[0-9]*/stat") { open(my $file, "<", $_) or next; $zombies++ if <$file> =~ /\) Z/ }
        last if !$zombies;
    }
    print "$zombies\n""#;

#[tokio::test]
async fn an_init_reaps_what_an_agent_leaves_behind() {
    let world = World::with(&shell_agent(&format!("cat /proc/1/comm; perl -e '{ORPHANS}'"), "")).await;
    assert_eq!(run(&world).await.result()["stdout"]["text"], "docker-init\n0\n");
    // Ours does it below Docker's, and alone.
    assert_eq!(docker(&["run", "--rm", IMAGE, "perl", "-e", ORPHANS]).await, "0");
    // Control: where the agent itself is process 1, they stay.
    let alone = ["run", "--rm", "--entrypoint", "perl", IMAGE, "-e", ORPHANS];
    assert_eq!(docker(&alone).await, "200");
}
