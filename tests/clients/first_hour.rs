//! Tests the path of a person from the files of `make dist` to their removal, on a Debian that has nothing but Docker. What is
//! typed comes from the pages of the book.

use bench::upstream::ScriptedUpstream;
use harness::{
    CANARY_KEY, Cases, GitHost, GitRemote, LiteLlm,
    artifacts::{dist, static_programs},
    bare_debian::{BareDebian, IMAGE},
    book::Page,
    bridge::free_port,
    eventually,
    shell_agents::shell_agent,
};
use serde_json::json;

/// Agent that asks its model, and commits the answer.
const ASKS_AND_COMMITS: &str = r#"
ask='{"model":"fake","messages":[{"role":"user","content":"What changes?"}]}'
curl -sf http://localhost:8080/v1/chat/completions --json "$ask" | jq -er '.choices[0].message.content' >>a.txt
git commit --quiet -am 'Write the answer down' && echo done"#;

/// Words of the scripted upstream, which are the answer of each model.
const ANSWER: &str = "Hello from the scripted upstream, it is a lovely day.";
/// Account of those who name none.
const ACCOUNT: &str = "local";

/// The person's machine, and what it reaches.
struct Person {
    debian: BareDebian,
    litellm: LiteLlm,
    _upstream: ScriptedUpstream,
    host: GitHost,
    remote: GitRemote,
    /// Address of the API on that machine.
    api: String,
    _files: tempfile::TempDir,
}

impl Person {
    async fn with_artifacts() -> Self {
        let files = tempfile::Builder::new().prefix("sw-dist-").tempdir_in("/tmp").unwrap();
        let out = files.path().display().to_string();
        dist(&["pack", &static_programs(), &out], &[("IMAGES", IMAGE)]).await;
        let upstream = ScriptedUpstream::start().await.unwrap();
        let litellm = LiteLlm::in_front_of(&upstream, CANARY_KEY).await;
        let host = GitHost::start().await;
        let remote = host.repository("app");
        let debian = BareDebian::with(files.path()).await;
        Self {
            debian,
            litellm,
            _upstream: upstream,
            host,
            remote,
            api: free_port().to_string(),
            _files: files,
        }
    }

    /// Returns the line that gives the token of the git host to a shell.
    fn github_token(&self) -> String {
        format!("export GITHUB_TOKEN={}", self.host.token)
    }

    /// Installs the package, and watches the demonstration to its end.
    async fn installs(&self) {
        let page = Page::read("docs/src/how-to/install.md");
        let bare =
            "if command -v cc gcc rustc cargo sluice; then exit 1; fi; docker images --quiet | wc -l\n";
        assert_eq!(self.debian.run(bare).await.trim(), "0", "nothing is there");
        self.debian.run(&traces("before")).await;
        let said = self.debian.run(&page.commands("## As a Debian package")).await;
        let shown =
            [IMAGE, "A sluice gate lets through what may pass", "quota_exhausted", "\"run_id\":\"demo\""];
        assert_shows(&said, &shown);
    }

    /// Writes the first configuration. A key that LiteLLM refuses writes nothing.
    async fn configures(&self) {
        let page =
            Page::read("docs/src/how-to/deploy.md").with("http://litellm:4000", &self.litellm.base_url);
        let commands = page.with("gpt-4o-mini", "fake").commands("## Write the key and the configuration");
        let refused = self.debian.fails_with("export LITELLM_MASTER_KEY=sk-wrong", &commands).await;
        assert_shows(&refused, &["nothing was written", "takes its master key alone"]);
        let nothing = self.debian.run("ls /etc/sluicegate/sluice.toml 2>&1 || true").await;
        assert_shows(&nothing, &["No such file"]);
        let key = format!("export LITELLM_MASTER_KEY={CANARY_KEY}");
        let said = self.debian.run_with(&key, &commands).await;
        assert_shows(&said, &["wrote     /etc/sluicegate/sluice.toml"]);
        assert!(!said.contains(CANARY_KEY), "the key is shown: {said}");
        let api = Page::read("docs/src/how-to/dashboard.md").with("127.0.0.1:4180", &self.api);
        let agent = shell_agent(ASKS_AND_COMMITS, "");
        let toml = format!("{}\n{agent}\n{}", api.blocks("toml")[0], self.host.settings());
        self.debian.run(&format!("cat >>/etc/sluicegate/sluice.toml <<'TOML'\n{toml}\nTOML")).await;
    }

    /// Starts Sluicegate on a second terminal, and asks something.
    async fn starts(&self) {
        let commands = Page::read("docs/src/how-to/deploy.md").commands("## Check and start");
        let lines: Vec<_> = commands.lines().collect();
        let [check, show, up, doctor, ask] = lines[..] else { panic!("{commands}") };
        self.debian.run(&format!("{check}\n{show}")).await;
        self.debian.starts_with(&self.github_token(), up.split("  ").next().unwrap(), "\nready").await;
        // A LiteLLM on a busy machine may answer later than either command waits.
        self.debian.run_until_it_succeeds(doctor).await;
        assert_shows(&self.debian.run(ask).await, &[ANSWER]);
    }

    /// Lets an agent work on a repository. Its commits become a pull request. Returns the id of the run.
    async fn orders_a_pull_request(&self) -> String {
        let url = format!("{} --agent test:sh --base main", self.host.url("app"));
        let page = Page::read("docs/src/how-to/repositories.md");
        let page = page.with("https://github.com/acme/app --base develop", &url);
        let commands = page.commands("## Run an agent on a repository");
        let command = commands.lines().find(|line| line.contains("--pr ")).unwrap();
        let said = self.debian.run_with(&self.github_token(), command).await;
        let pull = self.host.pull_url("app", 1);
        assert_shows(&said, &["done", &pull]);
        let pulls = self.host.github.pulls();
        assert_eq!((pulls.len(), &*pulls[0].base), (1, "main"), "{pulls:?}");
        let branch = &pulls[0].head;
        assert_eq!(self.remote.branches(), ["main first", &format!("{branch} Write the answer down")]);
        assert_eq!(self.remote.content(branch, "a.txt"), format!("text\n{ANSWER}\n"), "by its model");
        branch.strip_prefix("sandbox/").unwrap().to_owned()
    }

    /// Talks to the agent that ships, as the reference shows it.
    async fn chats(&self) {
        let reference = Page::read("docs/src/reference/cli.md");
        let line = reference.text.lines().find(|line| line.trim().starts_with("printf 'Hi")).unwrap();
        let said = self.debian.run(line.trim().split("  ").next().unwrap()).await;
        assert_eq!(said.matches(ANSWER).count(), 2, "an answer to each message: {said}");
    }

    /// Finds the run and its pull request in the dashboard.
    async fn looks_at(&self, run: &str) {
        let commands = Page::read("docs/src/how-to/dashboard.md").commands("## Sign in");
        let printed = self.debian.run(&format!("cd /root\n{commands}")).await;
        let link = printed.lines().find(|line| line.starts_with("http")).unwrap();
        let input = json!({ "origin": format!("http://{}", self.api), "link": link, "run": run });
        let cases = Cases::observed("first_hour", &input, &["signed_in"]).await;
        let seen = cases.of("signed_in");
        assert_shows(seen["who"].as_str().unwrap(), &["ann"]);
        assert_shows(seen["commits"].as_str().unwrap(), &["Write the answer down", "#1"]);
        assert_eq!((&seen["crashes"], &seen["violations"]), (&json!([]), &json!([])), "{seen:#}");
    }

    /// Removes everything by the page. The control: files were there.
    async fn uninstalls(&self) {
        let page = Page::read("docs/src/how-to/uninstall.md").with("acct-7", ACCOUNT);
        let said = self.debian.run(&page.commands("## Keep what has to be kept")).await;
        assert_shows(&said, &["rows of sqlite:///var/lib/sluicegate", "usage    fake     4 "]);
        let running = page.commands("## End what runs");
        self.debian.run(running.lines().next().unwrap()).await;
        self.debian.run("pkill --exact sluice").await;
        let processes = || self.debian.run("pgrep --list-name sluice || true");
        eventually("it has stopped", processes, String::is_empty).await;
        let control = self.debian.run(&changes("control")).await;
        assert_shows(
            &control,
            &[
                "/etc/sluicegate/upstream.key",
                "/usr/bin/sluice",
                "sluicegate/sandbox-runtime",
                "sluice-proxy:",
            ],
        );
        let row = page.text.lines().find(|line| line.starts_with("| Debian package")).unwrap();
        let purge = row.rsplit('`').nth(1).unwrap();
        self.debian.run(&format!("{purge} <<<y")).await;
        assert_eq!(self.debian.run(&changes("after")).await, "", "nothing is left");
        assert_shows(&self.debian.run("ls /var/backups").await, &["sluice.ndjson"]);
    }
}

/// Returns a script that writes down what a machine has: files, mounts, users, and all of Docker. What any package leaves is not
/// part of it.
fn traces(name: &str) -> String {
    format!(
        "{{ find /etc /usr /opt /run /var/lib /tmp -xdev \\( -path '/var/lib/dpkg*' -o -path '/var/lib/apt*' \
            -o -path '/run/docker*' -o -path '/run/containerd*' -o -path '/tmp/second-terminal' \
            -o -path '/root/traces*' \\) -prune -o -print
           cut -d ' ' -f 2 /proc/mounts | grep -v '^/var/lib/docker/' || true
           getent passwd; getent group
           docker ps --all --format '{{{{.Names}}}}'; docker volume ls --quiet
           docker images --format '{{{{.Repository}}}}:{{{{.Tag}}}}'; losetup --list --noheadings --output BACK-FILE | grep sluice || true
         }} | sort >/root/traces-{name}"
    )
}

/// Returns a script that shows what a machine has more or less than before the installation.
fn changes(name: &str) -> String {
    format!("{}\ndiff /root/traces-before /root/traces-{name} || true", traces(name))
}

fn assert_shows(said: &str, words: &[&str]) {
    for words in words {
        assert!(said.contains(words), "{words} is not shown:\n{said}");
    }
}

/// Each step has what a person sees of it.
#[tokio::test]
async fn a_person_gets_from_artifact_to_uninstall() {
    let person = Person::with_artifacts().await;
    person.installs().await;
    person.configures().await;
    person.starts().await;
    let run = person.orders_a_pull_request().await;
    person.chats().await;
    person.looks_at(&run).await;
    person.uninstalls().await;
}
