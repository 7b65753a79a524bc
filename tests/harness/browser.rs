//! Serves the page of `tests/sdk/browser_chat` as its users would, and uses it in Chromium. `scripts/browser.sh` installs what
//! that needs.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    agent::Agent,
    bridge::free_port,
    eventually::{eventually, eventually_within},
    process::{has_ended, processes},
    sdks::output_of,
};

/// Page that shows how nginx serves a page and the API at one origin.
const GUIDE: &str = "docs/src/how-to/chat-clients.md";

/// Longest that Chromium may take to start, and to end. It needs seconds of a whole core.
const CHROMIUM_TIMEOUT: Duration = Duration::from_secs(60);

/// Page in front of the API, and the same page at another origin. Killed and removed on drop.
#[derive(Debug)]
pub struct ServedPage {
    own: SocketAddr,
    other: SocketAddr,
    dir: TempDir,
    _nginx: Child,
}

impl ServedPage {
    /// Starts nginx for the API at `api`, as the documents configure it. The page's origin is at `own`; that of the same page
    /// at another port is not in `api.origins`.
    ///
    /// # Panics
    /// If nginx does not answer.
    pub async fn start(api: &str, own: SocketAddr) -> Self {
        let dir = tempfile::Builder::new().prefix("sw-page-").tempdir_in("/tmp").unwrap();
        let other = free_port();
        fs::create_dir(dir.path().join("site")).unwrap();
        let config = dir.path().join("nginx.conf");
        fs::write(&config, configuration(dir.path(), api, [own, other])).unwrap();
        let mut nginx = Command::new("/usr/sbin/nginx");
        nginx.args(["-e", "stderr", "-p"]).arg(dir.path()).arg("-c").arg(&config);
        let nginx = nginx.stdin(Stdio::null()).kill_on_drop(true).spawn();
        let nginx = nginx.expect("nginx serves the page: make setup-test installs it");
        let client = Agent::over_tcp(own);
        eventually("nginx answers", || async { client.connect().await.map(drop) }, Result::is_ok)
            .await
            .unwrap();
        Self { own, other, dir, _nginx: nginx }
    }

    /// Holds the conversations in Chromium, as the principal with this token. Returns what was shown, case by case.
    ///
    /// # Panics
    /// If the program fails, with its output.
    pub async fn chats(&self, token: &str) -> Vec<Value> {
        output_of(self.program(token)).await
    }

    /// Begins the conversations, and kills the program as soon as Chromium has drawn something.
    ///
    /// # Panics
    /// If Chromium does not start.
    pub async fn kill_chats(&self, token: &str) {
        let mut program = self.program(token).stdout(Stdio::null()).spawn().unwrap();
        // The scripts that start Chromium have its arguments, too, but no tab.
        let look = || async { self.chromiums("--type=renderer") };
        eventually_within(CHROMIUM_TIMEOUT, "Chromium has a tab", look, |pids| !pids.is_empty()).await;
        program.kill().await.unwrap();
    }

    /// Waits until no process of Chromium is left.
    ///
    /// # Panics
    /// If one does not end.
    pub async fn chromium_ended(&self) {
        let look = || async { self.chromiums("") };
        eventually_within(CHROMIUM_TIMEOUT, "Chromium has ended", look, Vec::is_empty).await;
    }

    /// Returns the processes of Chromium that have not ended and have `argument`.
    fn chromiums(&self, argument: &str) -> Vec<u32> {
        let profile = format!("--user-data-dir={}", self.dir.path().display());
        let mut pids = processes(|command| command.contains(&profile) && command.contains(argument));
        pids.retain(|pid| !has_ended(*pid));
        pids
    }

    /// Returns the requests of the API with the other `Origin`: method, path, status, relation to the page, and whether
    /// the session's cookie came with it.
    ///
    /// # Panics
    /// If nginx has not written its log.
    #[must_use]
    pub fn requests_of_other_origin(&self) -> Vec<String> {
        let log = fs::read_to_string(self.dir.path().join("requests")).unwrap();
        let origin = format!(" http://{}", self.other);
        let requests = log.lines().filter_map(|line| line.strip_suffix(&origin));
        requests.filter(|request| request.contains(" /api/")).map(ToOwned::to_owned).collect()
    }

    fn program(&self, token: &str) -> Command {
        let repository = repository();
        let mut command = Command::new(repository.join("scripts/browser.sh"));
        command.args(["node", "tests/sdk/browser_chat.mjs"]).arg(self.dir.path().join("site"));
        command.args([self.own, self.other].map(|address| format!("http://{address}")));
        // What Chromium writes is removed with the page.
        command.env("TOKEN", token).env("TMPDIR", self.dir.path()).env("XDG_CONFIG_HOME", self.dir.path());
        command.current_dir(repository).kill_on_drop(true);
        command
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns a configuration with the server of the guide at each of `addresses`. nginx runs as one process, so that a kill
/// leaves nothing.
fn configuration(dir: &Path, api: &str, addresses: [SocketAddr; 2]) -> String {
    let guide = fs::read_to_string(repository().join(GUIDE)).unwrap();
    let server = guide.split_once("\n```nginx\n").unwrap().1.split_once("\n```\n").unwrap().0;
    let dir = dir.display().to_string();
    let site = format!("{dir}/site");
    let servers = addresses.map(|address| {
        let replaced = [
            ("127.0.0.1:8080", address.to_string()),
            ("http://127.0.0.1:4180", api.to_owned()),
            ("/srv/chat", site.clone()),
        ];
        replaced.iter().fold(server.to_owned(), |server, (from, to)| {
            assert!(server.contains(from), "{GUIDE} does not say {from}");
            server.replace(from, to)
        })
    });
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|kind| format!("{kind}_temp_path {dir}/{kind};\n"));
    format!(
        r#"daemon off;
master_process off;
pid {dir}/pid;
events {{ worker_connections 64; }}
http {{
  include /etc/nginx/mime.types;
  map $cookie_sluice_session $has_cookie {{ "" -; default cookie; }}
  log_format requests "$request_method $uri $status $http_sec_fetch_site $has_cookie $http_origin";
  access_log {dir}/requests requests;
  {temporary}
  {servers}
}}
"#,
        temporary = temporary.concat(),
        servers = servers.join("\n")
    )
}
