//! Walks the OpenAPI document that `sluice up` serves, and tests what holds for every route in it.
//!
//! A new route is tested without a change here, unless its path has a placeholder that [`Samples`] does not know.

use std::{collections::BTreeMap, fs};

use harness::{Agent, Answer, private_file, served::Served};
use http::{Method, StatusCode};
use platform_core::id::WorkspaceId;
use serde_json::{Value, json};

use super::{
    orders::{ended, order_text},
    sessions::sign_in,
};

/// Roles by the rights that they give, the smallest first.
const ROLES: [&str; 4] = ["viewer", "member", "operator", "admin"];

/// Account of the owner.
const ACCOUNT: &str = "acct-7";
/// Repository that no server has.
const REPOSITORY: &str = "walked";
/// Thread of the owner.
const THREAD: &str = "walked-thread";

/// Routes that answer callers of all accounts alike, each with the status. Keys of threads are the
/// accounts' own: the same key is another thread, in which no run is active. Agents, as models, belong to no account, and
/// neither do repositories: that of the samples cannot be fetched.
const OF_EACH_ACCOUNT: [(&str, u16); 4] = [
    ("/api/v1/ai/chat/{thread}/stream", 204),
    ("/api/v1/ai/chat/{thread}/stop", 200),
    ("/v1/models/{model}", 200),
    ("/api/v1/repos/{repository}/refresh", 502),
];

/// Name of the sample for `{agent}` below a gateway.
const GATEWAY_AGENT: &str = "agent of a gateway";
/// Gateway of the owner, which cannot be started, and a repository for proposals that no server has.
const GATEWAY: &str = "\n[gateways.walked]\naccount = 'acct-7'\nimage = 'nowhere:1'\n\
    [agents_repository]\nurl = 'http://127.0.0.1:9/walked.git'\nskills = 'skills'\n";

/// Route of the document.
struct Documented {
    method: Method,
    path: String,
    operation: Value,
}

/// Objects of one account, for the placeholders in paths.
struct Samples(BTreeMap<&'static str, String>);

impl Samples {
    /// Returns objects of the account of `owner`. The runs have ended, so that their streams end.
    async fn of(there: &Served, owner: &Agent) -> Self {
        let dir = there.world.path().join("project");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a.txt"), "text\n").unwrap();
        let dir = dir.to_str().unwrap();
        let run = [
            "run",
            "--agent",
            "test:sh",
            "--run-id",
            "walked",
            "--account",
            ACCOUNT,
            "--workspace",
            dir,
            "q",
        ];
        let outcome = there.world.sluice().run(&run).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let mut order: Value = serde_json::from_str(&order_text("test:sh")).unwrap();
        order["stateKey"] = THREAD.into();
        let turn = owner.request(Method::PUT, "/api/v1/runs/turn", order.to_string().into()).await.unwrap();
        assert_eq!(turn.status, 201, "{}", turn.text());
        ended(owner, "turn").await;
        let unreachable = ["repo", "add", REPOSITORY, "http://127.0.0.1:9/walked.git"];
        let added = there.world.sluice().run(&unreachable).await;
        assert_eq!(added.code, Some(69), "{added:?}");
        let connection = connection(there).await;
        let bot = ["gateway", "agents", "add", "walked", "Walked Bot"];
        let made = there.world.sluice().run(&bot).await;
        assert_eq!(made.code, Some(0), "{made:?}");
        let proposal = proposal(there).await;
        // As the gateway would leave it.
        let disk = there.world.path().join("gateways/walked/disk").join(WorkspaceId::from_random(0).as_str());
        let own = disk.join("tree/state/agents/walked-bot");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("a.txt"), "of the bot").unwrap();
        let samples = [
            ("repository", REPOSITORY),
            ("connection", connection.as_str()),
            ("run", "walked"),
            ("path", "a.txt"),
            ("call", "call-1"),
            ("thread", THREAD),
            ("account", ACCOUNT),
            ("model", "test:sh"),
            ("gateway", "walked"),
            ("agent", "test:sh"),
            (GATEWAY_AGENT, "walked-bot"),
            ("file", "AGENTS.md"),
            ("proposal", proposal.as_str()),
        ];
        Self(samples.map(|(name, sample)| (name, sample.to_owned())).into())
    }

    /// Returns the path of a route, with an object for each placeholder.
    fn path(&self, template: &str) -> String {
        let mut path = template.to_owned();
        for name in placeholders(template) {
            let is_of_gateway = name == "agent" && template.starts_with("/api/v1/gateways/");
            let sample = self.0.get(if is_of_gateway { GATEWAY_AGENT } else { name }).unwrap_or_else(|| {
                panic!("{template}: add an object for `{{{name}}}` to `Samples::of` in {}", file!())
            });
            path = path.replace(&format!("{{{name}}}"), sample);
        }
        path
    }
}

/// Adds a connection of the owner; returns its id.
async fn connection(there: &Served) -> String {
    let keys = there.world.path().join("connections.key");
    let key = there.world.sluice().run(&["connections", "keygen"]).await;
    private_file(&keys, key.stdout.trim());
    let secret = there.world.path().join("connection-token");
    private_file(&secret, "walked-token");
    let key_file = format!("connections.key_file={}", keys.display());
    let add = ["--set", &key_file, "connections", "add", "--account", ACCOUNT, "--provider", "walked"];
    let added = there.world.sluice().run(&[&add[..], &["--file", secret.to_str().unwrap()]].concat()).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    added.stdout.trim().to_owned()
}

/// Proposes a skill of the owner; returns the proposal's id.
async fn proposal(there: &Served) -> String {
    let text = there.world.path().join("SKILL.md");
    fs::write(&text, "# Walked\n").unwrap();
    let propose = ["agents", "propose", "--account", ACCOUNT, "skill", "walked", text.to_str().unwrap()];
    let proposed = there.world.sluice().run(&propose).await;
    assert_eq!(proposed.code, Some(0), "{proposed:?}");
    proposed.stdout.trim().to_owned()
}

fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).map(|rest| rest.split_once('}').unwrap().0)
}

impl Documented {
    /// Returns every route of the document that the API serves. Those that delete come last, the deepest first.
    async fn read(api: &Agent) -> Vec<Self> {
        let document = api.get("/api/v1/openapi.json").await.json();
        let mut routes = Vec::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
                routes.push(Self { method, path: path.clone(), operation: operation.clone() });
            }
        }
        routes.sort_by_key(|route| match route.method {
            Method::DELETE => usize::MAX - route.path.split('/').count(),
            _ => 0,
        });
        assert!(routes.len() > 10, "the document has the routes: {document}");
        routes
    }

    /// Returns the role that the route demands; `None` if it is open.
    fn role(&self) -> Option<&str> {
        self.operation["x-role"].as_str()
    }

    /// Returns the path and the body of the request as the document describes it, with its examples.
    fn request(&self, samples: &Samples) -> (String, String) {
        let mut path = samples.path(&self.path);
        let parameters = self.operation["parameters"].as_array().into_iter().flatten();
        for parameter in parameters.filter(|it| it["in"] == "query" && it["required"] == true) {
            let name = parameter["name"].as_str().unwrap();
            let example = parameter["example"].as_str();
            let example = example.unwrap_or_else(|| panic!("{self}: the parameter {name} needs an example"));
            path += &format!("{}{name}={example}", if path.contains('?') { '&' } else { '?' });
        }
        let body = &self.operation["requestBody"]["content"]["application/json"]["example"];
        (path, if body.is_null() { String::new() } else { body.to_string() })
    }

    /// Sends the request, and reads the whole answer.
    async fn send(&self, caller: &Agent, samples: &Samples) -> Answer {
        let (path, body) = self.request(samples);
        caller.request(self.method.clone(), &path, body.into()).await.unwrap()
    }

    /// Sends the request; returns the status of the answer, which may be a stream without an end.
    async fn status(&self, caller: &Agent, samples: &Samples) -> StatusCode {
        let (path, body) = self.request(samples);
        caller.send(self.method.clone(), &path, body.into()).await.unwrap().status
    }

    /// Returns whether the route makes the object that its path names.
    fn makes_its_object(&self) -> bool {
        self.method == Method::PUT && self.operation["responses"].get("201").is_some()
    }

    /// Checks that the document has the answer.
    fn check(&self, answer: &Answer) {
        let documented = &self.operation["responses"][answer.status.as_str()];
        assert!(documented.is_object(), "{self} does not document {}: {}", answer.status, answer.text());
        if !answer.status.is_success() {
            let code = code(answer);
            let mut cases = documented["x-problems"].as_array().unwrap().iter();
            assert!(cases.any(|case| case["code"] == code), "{self} does not document {code}");
        }
    }
}

/// Returns whether the route takes what pages, browsers and clients of gateways alone send.
fn is_of_pages(route: &Documented) -> bool {
    ["/api/v1/session/link", "/api/v1/csp-reports", "/api/v1/gateways/{gateway}/ws"]
        .contains(&route.path.as_str())
}

/// Returns the code of a problem, which problem details and OpenAI's errors have in different places.
fn code(answer: &Answer) -> Value {
    let problem = answer.json();
    let code = [&problem["code"], &problem["error"]["code"]].into_iter().find(|code| code.is_string());
    code.unwrap_or_else(|| panic!("a problem has a code: {problem}")).clone()
}

impl std::fmt::Display for Documented {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

async fn end(there: Served) {
    let removed = there.world.sluice().run(&["repo", "rm", REPOSITORY]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let outcome = there.world.sluice().run(&["runs", "gc", "--kept"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    there.end().await;
}

#[tokio::test]
async fn every_guarded_route_demands_its_role() {
    let there = Served::with(GATEWAY).await;
    let owner = there.principal(&["owner", "--account", "acct-7"]).await;
    let samples = Samples::of(&there, &owner).await;
    let mut callers = BTreeMap::new();
    for role in ROLES {
        let account = ["--account", "acct-7", "--role", role];
        callers.insert(role, there.principal(&[&[role][..], &account].concat()).await);
    }
    let wrong = there.api.clone().with_header("authorization", "Bearer sk-wrong");
    let mut refused = 0;
    for route in Documented::read(&there.api).await {
        let Some(role) = route.role() else {
            assert!(route.operation.get("security").is_none(), "{route}");
            let answer = route.send(&there.api, &samples).await;
            // Without its setting, a route for another program does not exist.
            let is_absent = answer.status == 404 && route.to_string().contains("/internal/");
            assert!(
                is_absent || is_of_pages(&route) || answer.status.is_success(),
                "{route} is open: {}",
                answer.text()
            );
            route.check(&answer);
            continue;
        };
        assert_eq!(route.operation["security"][0], json!({ "bearer": [] }), "{route}");
        for caller in [&there.api, &wrong] {
            let answer = route.send(caller, &samples).await;
            assert_eq!((answer.status.as_u16(), code(&answer)), (401, json!("unauthenticated")), "{route}");
            route.check(&answer);
        }
        let rank = ROLES.iter().position(|known| *known == role).unwrap();
        for smaller in &ROLES[..rank] {
            let answer = route.send(&callers[smaller], &samples).await;
            assert_eq!((answer.status.as_u16(), code(&answer)), (403, json!("forbidden")), "{route}");
            route.check(&answer);
            refused += 1;
        }
    }
    assert!(refused > 2, "control: some roles are too small");
    end(there).await;
}

/// A page has to know where its session holds. Only beginning one takes a token.
#[tokio::test]
async fn sessions_hold_where_the_document_says() {
    let there = Served::with(GATEWAY).await;
    let owner = there.principal(&["owner", "--account", "acct-7"]).await;
    let samples = Samples::of(&there, &owner).await;
    let viewer = there.of_role("viewer", ACCOUNT, "viewer").await;
    let page = sign_in(&viewer).await.1;
    let page = there.api.clone().with_header("cookie", &page).with_header("origin", &there.url());
    let document = there.api.get("/api/v1/openapi.json").await.json();
    let scheme = &document["components"]["securitySchemes"]["session"];
    assert_eq!((&scheme["in"], &scheme["name"]), (&json!("cookie"), &json!("sluice_session")), "{scheme}");
    let mut refusing = Vec::new();
    for route in Documented::read(&there.api).await {
        if route.role().is_none() {
            continue;
        }
        let status = route.status(&page, &samples).await;
        let schemes = route.operation["security"].as_array().unwrap();
        let is_documented = schemes.contains(&json!({ "session": [] }));
        assert_eq!(status != 401, is_documented, "{route}: {status}");
        if !is_documented {
            refusing.push(route.to_string());
        }
    }
    assert_eq!(refusing, ["POST /api/v1/session"]);
    end(there).await;
}

#[tokio::test]
async fn no_route_has_an_object_of_others() {
    let there = Served::with(GATEWAY).await;
    let owner = there.principal(&["owner", "--account", "acct-7"]).await;
    let stranger = there.principal(&["stranger", "--account", "acct-8"]).await;
    let samples = Samples::of(&there, &owner).await;
    let mut walked = 0;
    for route in Documented::read(&there.api).await {
        // Operators see the objects of every account.
        let is_of_accounts = matches!(route.role(), Some("viewer" | "member"));
        if !is_of_accounts || placeholders(&route.path).next().is_none() {
            continue;
        }
        let foreign = route.send(&stranger, &samples).await;
        // An id that another account has chosen cannot be had twice. The answer says no more than that.
        let expected = match OF_EACH_ACCOUNT.iter().find(|(path, _)| *path == route.path) {
            Some((_, status)) => *status,
            None if route.makes_its_object() => 409,
            None => 404,
        };
        let said = foreign.text();
        assert_eq!(foreign.status.as_u16(), expected, "{route}: {said}");
        assert!(!said.contains(ACCOUNT), "{route}: {said}");
        route.check(&foreign);
        let own = route.send(&owner, &samples).await;
        assert_ne!(own.status, 404, "control: {route} has it for its owner: {}", own.text());
        assert_ne!(own.status, 400, "control: {route} takes the example: {}", own.text());
        route.check(&own);
        walked += 1;
    }
    assert!(walked >= 15, "routes with an object were walked");
    end(there).await;
}
