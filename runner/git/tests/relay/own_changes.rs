//! own_changes tests commits of the host itself: one file changes, on top of the newest commit.

use platform_core::limit::ByteSize;
use runner_git::{
    AuthorIdentity, Error, FileAt, FileChange, Git, PushOrder, PushOutcome, Quarantine, RelayPolicy,
    RelayRule, RelayVerdict,
};

use crate::{
    agent::{done, plain_git},
    world::World,
};

/// Largest file that is read.
const MOST: ByteSize = ByteSize::kib(1);

async fn change(world: &World, path: &str, text: &str) -> Result<(Quarantine, RelayVerdict), Error> {
    let mirror = world.mirror().await;
    let start = mirror.base_tip(&World::base()).await?;
    let git: &Git = &world.git;
    let quarantine = Quarantine::create(git, &world.dir.join("own.git")).await?;
    let author = AuthorIdentity::new("Relay", "relay@example.org").expect("it is an author");
    let change = FileChange { path, text, message: "Add it", author: &author, time: 1_700_000_000 };
    quarantine.commit_file(&mirror, &start, &change).await?;
    let verdict = quarantine.judge(&RelayPolicy::default()).await?;
    Ok((quarantine, verdict))
}

fn shown(world: &World, arguments: &[&str]) -> String {
    let mut git = plain_git(&world.home, &world.upstream);
    let output = git.args(arguments).output().expect("git starts");
    String::from_utf8(output.stdout).expect("it is text")
}

#[tokio::test]
async fn one_file_changes_and_no_other() {
    let world = World::new();
    for (path, text) in [("src/main.txt", "one\n2\n"), ("skills/greet/SKILL.md", "# Greet\n")] {
        let (quarantine, verdict) = change(&world, path, text).await.unwrap();
        let RelayVerdict::Accepted(work) = verdict else { panic!("{verdict:?}") };
        assert_eq!([work.commits(), work.files()], [1, 1]);
        let (_same, again) = change(&world, path, text).await.unwrap();
        assert_eq!(again, RelayVerdict::Accepted(work.clone()), "the same change is the same commit");
        let order = PushOrder::new(&work, World::branch(), None);
        assert_eq!(quarantine.push(&world.remote, &order).await.unwrap(), PushOutcome::Pushed);
        assert_eq!(shown(&world, &["diff", "--name-only", "main", "sandbox/run-1"]).trim(), path);
        assert_eq!(shown(&world, &["show", &format!("sandbox/run-1:{path}")]), text);
        let author = shown(&world, &["log", "-1", "--format=%an <%ae> %at %s", "sandbox/run-1"]);
        assert_eq!(author.trim(), "Relay <relay@example.org> 1700000000 Add it");
        done(plain_git(&world.home, &world.upstream).args(["branch", "--quiet", "-D", "sandbox/run-1"]));
    }
}

#[tokio::test]
async fn a_secret_is_refused_as_an_agents_is() {
    let world = World::new();
    let text = format!("token = {}\n", ["gh", "p_"].concat() + &"a1B2".repeat(9));
    let (_quarantine, verdict) = change(&world, "a.toml", &text).await.unwrap();
    let RelayVerdict::Refused(objections) = verdict else { panic!("{verdict:?}") };
    assert_eq!(objections[0].rule, RelayRule::Secret);
    let (_quarantine, verdict) = change(&world, "a.toml", "token = 1\n").await.unwrap();
    assert!(matches!(verdict, RelayVerdict::Accepted(_)), "{verdict:?}");
}

#[tokio::test]
async fn a_file_is_read_where_it_is_one() {
    let world = World::new();
    let mirror = world.mirror().await;
    let tip = mirror.base_tip(&World::base()).await.unwrap();
    for (path, expected) in [
        ("src/main.txt", FileAt::Text("one\ntwo\n".to_owned())),
        ("src", FileAt::Other),
        ("none.toml", FileAt::Missing),
        ("src/none/deep.toml", FileAt::Missing),
    ] {
        assert_eq!(mirror.file(&tip, path, MOST).await.unwrap(), expected, "{path}");
    }
    assert_eq!(mirror.file(&tip, "src/main.txt", ByteSize(3)).await.unwrap(), FileAt::Other);
    // A file in the place of a directory stays.
    assert!(change(&world, "README.md/SKILL.md", "x").await.is_err());
}
