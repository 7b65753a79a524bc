//! Tests that the usual programs find the places that they write to, and both addresses of `localhost`.

use harness::World;

use super::{inside, run, shell_agent};

#[tokio::test]
async fn programs_run_where_builds_put_them() {
    let script = "for place in /tmp /var/tmp /workspace /run; do
        cp /bin/true $place/program && $place/program 2>/dev/null && echo $place
    done; true";
    // Control: /run takes files, and executes none.
    assert_eq!(inside(script).await, "/tmp\n/var/tmp\n/workspace\n");
}

#[tokio::test]
async fn shared_memory_holds_what_browsers_need() {
    let script = "head -c 200M /dev/zero >/dev/shm/frames && stat --format %s /dev/shm/frames";
    assert_eq!(inside(script).await, format!("{}\n", 200 << 20));
}

#[tokio::test]
async fn a_commit_has_an_author_and_home_is_writable() {
    let script = "echo kept >$HOME/file && cat $HOME/file && cd $(mktemp -d) && git init --quiet . &&
        git commit --quiet --allow-empty --message first && git log --format='%an, %cn'";
    assert_eq!(inside(script).await, "kept\nSandboxed agent, Sandboxed agent\n");
}

#[tokio::test]
async fn localhost_is_either_address() {
    // What a development server binds, and where a client looks first.
    let listen = "node --eval '
        const server = require(\"net\").createServer().listen(3000, \"::1\", () => {
            console.log(\"listens\");
            server.close();
        });'";
    let ask = |host| format!("curl --silent --fail http://{host}:8080/v1/models >/dev/null && echo {host}");
    let asked = ["localhost", "127.0.0.1", "'[::1]'"].map(ask).join("; ");
    assert_eq!(inside(&format!("{listen}; {asked}")).await, "listens\nlocalhost\n127.0.0.1\n[::1]\n");
}

#[tokio::test]
async fn an_agent_can_have_port_8080_itself() {
    let script = "node --eval '
        const server = require(\"http\").createServer((_, answer) => answer.end(\"own\")).listen(8080, () => {
            fetch(\"http://localhost:8080\").then(answer => answer.text()).then(text => {
                console.log(text);
                return fetch(process.env.OPENAI_BASE_URL + \"/models\");
            }).then(answer => {
                console.log(answer.status, process.env.OPENAI_BASE_URL);
                server.close();
                server.closeAllConnections();
            });
        });'";
    let world = World::with(&shell_agent(script, "bridge_port = 4180")).await;
    let outcome = run(&world).await;
    assert_eq!(outcome.result()["text"], "own\n200 http://localhost:4180/v1", "{outcome:?}");
    world.assert_nothing_left().await;
    // Control: where the bridge has it, no other program can.
    let world = World::with(&shell_agent("exec 3<>/dev/tcp/localhost/8080 && echo taken", "")).await;
    assert_eq!(run(&world).await.result()["text"], "taken");
}
