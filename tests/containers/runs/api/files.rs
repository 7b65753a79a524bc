//! Tests files of runs over the HTTP API: hostile names, links and foreign accounts lead to nothing else.

use std::{fs, path::Path};

use harness::{Agent, Answer};
use serde_json::{Value, json};

use super::orders::{Served, assert_problem, ended};

const PATH: &str = "/api/v1/runs/r1";
/// Script of an agent that leaves what may mislead a reader.
const HOSTILE: &str = "echo changed > a.txt; rm gone.txt; echo '<script>' > 'a b<i>.html'; \
     ln -s /etc/passwd passwd; ln -s /etc etc; ln a.txt second.txt; echo one > plain.txt; mkfifo pipe; \
     mkdir -p .git && echo secret > .git/config; printf x > \"$(printf 'bad\\377name')\"; \
     printf '\\000\\001' > binary; echo noise > new.log; head -c 1000000 /dev/zero > large; echo it is done";

/// Runs the world's shell agent as `r1` of `acct-1` with a directory's files.
async fn run_with_files(there: &Served) {
    let dir = there.world.path().join("project");
    fs::create_dir(&dir).unwrap();
    for (name, content) in [("a.txt", "text\n"), ("gone.txt", "old\n"), (".gitignore", "*.log\n")] {
        fs::write(dir.join(name), content).unwrap();
    }
    let dir = dir.to_str().unwrap();
    let arguments =
        ["run", "--agent", "test:sh", "--run-id", "r1", "--account", "acct-1", "--workspace", dir, "q"];
    let outcome = there.world.sluice().run(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

async fn end(there: Served) {
    let outcome = there.world.sluice().run(&["runs", "gc", "--kept"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    there.end().await;
}

async fn get(api: &Agent, path: &str) -> Answer {
    api.get(&format!("{PATH}/{path}")).await
}

fn file<'l>(list: &'l Value, path: &str) -> &'l Value {
    let files = list["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path}: {list}"))
}

#[tokio::test]
async fn files_are_listed_with_their_changes() {
    let there = Served::of("", HOSTILE).await;
    run_with_files(&there).await;
    let owner = there.principal(&["owner", "--account", "acct-1", "--role", "viewer"]).await;
    let list = get(&owner, "files").await.json();
    for (path, form, change) in [
        ("plain.txt", "file", json!("added")),
        ("gone.txt", "deleted", json!("deleted")),
        (".gitignore", "file", Value::Null),
        ("passwd", "link", json!("added")),
        ("a b<i>.html", "file", json!("added")),
        ("a.txt", "unreadable", Value::Null),
        ("pipe", "unreadable", Value::Null),
    ] {
        let file = file(&list, path);
        assert_eq!((&file["type"], &file["change"]), (&json!(form), &change), "{path}: {file}");
    }
    assert_eq!((file(&list, "large")["size"].as_u64(), &list["omittedFiles"]), (Some(1_000_000), &json!(0)));
    assert_eq!(list["hidden"], json!({ "gitDirs": [".git"], "ignored": ["new.log"] }));
    assert!(!list.to_string().contains(there.world.path().to_str().unwrap()), "no path of the host: {list}");
    let all = get(&owner, "files?all=true&path=new.log").await.json();
    assert_eq!(
        all["files"],
        json!([{ "path": "new.log", "type": "file", "size": 6, "executable": false, "change": "added" }])
    );
    for query in
        ["files?recursive=1", "files?path=../x", "files?path=/etc", "diff?stat=1", "files/plain.txt?raw=1"]
    {
        assert_problem(&get(&owner, query).await, 400, "invalid_request");
    }
    end(there).await;
}

#[tokio::test]
async fn a_file_is_given_out_as_an_attachment() {
    let there = Served::of("", HOSTILE).await;
    run_with_files(&there).await;
    let owner = there.principal(&["owner", "--account", "acct-1"]).await;
    let page = get(&owner, "files/a%20b%3Ci%3E.html").await;
    assert_eq!((page.status.as_u16(), page.text()), (200, "<script>\n".to_owned()));
    for (header, value) in [
        ("content-type", "application/octet-stream"),
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "attachment; filename*=UTF-8''a%20b%3Ci%3E.html"),
        ("content-length", "9"),
    ] {
        assert_eq!(page.headers[header], value, "{header}");
    }
    assert_eq!(get(&owner, "files/bad%ffname").await.text(), "x", "names need not be UTF-8");
    let large = get(&owner, "files/large").await;
    assert_eq!((large.body.len(), large.body.iter().any(|byte| *byte != 0)), (1_000_000, false));
    // Through a link, out of the directory, or by another name, nothing is read.
    for (path, status, code) in [
        ("passwd", 409, "file_refused"),
        ("etc/passwd", 409, "file_refused"),
        ("a.txt", 409, "file_refused"),
        ("second.txt", 409, "file_refused"),
        ("pipe", 404, "not_found"),
        (".git/config", 404, "not_found"),
        (".GIT/config", 404, "not_found"),
        ("gone.txt", 404, "not_found"),
        ("plain.txt/x", 404, "not_found"),
        ("..%2f..%2fa.txt", 404, "not_found"),
        ("../a.txt", 404, "not_found"),
        ("%2fetc%2fpasswd", 404, "not_found"),
        ("a%00", 404, "not_found"),
    ] {
        let refused = get(&owner, &format!("files/{path}")).await;
        assert_problem(&refused, status, code);
        assert!(!refused.text().contains("root:"), "{path}: {}", refused.text());
    }
    // The control: the link is there, and leads to a file of this host.
    let link = there.world.workspace("r1").await.join("repo/passwd");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("/etc/passwd"));
    assert!(fs::read_to_string(&link).unwrap().contains("root:"));
    end(there).await;
}

#[tokio::test]
async fn a_difference_is_text_or_json() {
    let there =
        Served::of("", "echo changed > a.txt; rm gone.txt; echo new > new.txt; printf '\\000' > binary")
            .await;
    run_with_files(&there).await;
    let owner = there.principal(&["owner", "--account", "acct-1"]).await;
    let text = get(&owner, "diff").await;
    assert_eq!(
        (text.status.as_u16(), &text.headers["content-type"]),
        (200, &"text/plain; charset=utf-8".parse().unwrap())
    );
    let printed = there.world.sluice().run(&["runs", "diff", "r1"]).await;
    assert_eq!(text.text(), printed.stdout, "as the command line has it");
    assert!(text.text().contains("-text\n+changed\n"), "{}", text.text());
    let json_of = owner.clone().with_header("accept", "application/json");
    let diff = get(&json_of, "diff").await.json();
    assert_eq!(
        (&diff["insertions"], &diff["deletions"], &diff["diff"]),
        (&json!(2), &json!(2), &json!(text.text()))
    );
    assert_eq!(
        file(&diff, "a.txt"),
        &json!({ "path": "a.txt", "change": "modified", "insertions": 1, "deletions": 1 })
    );
    assert_eq!(file(&diff, "binary")["binary"], json!({ "oldSize": 0, "newSize": 1 }));
    let one = get(&json_of, "diff?path=new.txt").await.json();
    assert_eq!((one["files"].as_array().unwrap().len(), &one["insertions"]), (1, &json!(1)));
    end(there).await;
}

#[tokio::test]
async fn files_are_for_the_runs_account() {
    let there = Served::of("", HOSTILE).await;
    run_with_files(&there).await;
    let [owner, stranger] = [
        there.principal(&["owner", "--account", "acct-1"]).await,
        there.principal(&["stranger", "--account", "acct-2"]).await,
    ];
    for path in ["files", "files/plain.txt", "diff"] {
        assert_problem(&get(&stranger, path).await, 404, "not_found");
        assert_problem(&get(&there.api, path).await, 401, "unauthenticated");
        assert_eq!(get(&owner, path).await.status, 200, "control: {path}");
    }
    // A run without files, and one after the removal of its files.
    let order = json!({ "agentId": "test:sh", "model": "fake", "input": "q" });
    let without = owner.post("/api/v1/runs", &order).await.json()["runId"].as_str().unwrap().to_owned();
    ended(&owner, &without).await;
    let gc = there.world.sluice().run(&["runs", "gc", "--kept"]).await;
    assert_eq!(gc.code, Some(0), "{gc:?}");
    for run in [without.as_str(), "r1"] {
        for path in ["files", "files/plain.txt", "diff"] {
            assert_problem(&owner.get(&format!("/api/v1/runs/{run}/{path}")).await, 404, "no_files");
        }
    }
    end(there).await;
}
