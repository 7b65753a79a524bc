//! Tests the settings as a file holds them.

use platform_core::{
    id::AgentId,
    limit::{ByteSize, Millis},
};

mod gateway_volumes;
mod limits;
mod listeners;
mod openclaw_agents;

use super::{Attribution, DEFAULT_AGENT, Execution, SectionName, Settings, Stream, Template, Volume};
use crate::config::{ConfigErrors, Environment, Sources};

fn parse(text: &str) -> Result<Settings, ConfigErrors> {
    Settings::read(&Sources { file: Some(("s.toml".into(), text.to_owned())), ..Sources::default() })
}

#[test]
fn the_agent_that_ships_is_there_without_a_file() {
    let settings = Settings::read(&Sources::default()).unwrap();
    let agent = &settings.agents[&AgentId::parse(DEFAULT_AGENT).unwrap()];
    assert_eq!((agent.run_timeout, agent.memory), (Millis::seconds(120), ByteSize::mib(512)));
    assert_eq!(agent.argv, ["node", "/agent/run.mjs"].map(Template::literal));
}

#[test]
fn openclaw_has_limits_that_fit_it() {
    let agent =
        |text: &str| parse(text).unwrap().agents[&AgentId::parse("sandbox:openclaw").unwrap()].clone();
    let shipped = agent("");
    assert_eq!((shipped.run_timeout, shipped.memory), (Millis::seconds(1800), ByteSize::mib(2048)));
    assert_eq!((shipped.name.as_str(), shipped.stream), ("OpenClaw", Stream::Progress));
    assert_eq!(shipped.image.as_str(), "sluicegate/sandbox-openclaw:latest");
    let changed = agent("[agents.'sandbox:openclaw']\nmemory = '3 GiB'\n");
    assert_eq!((changed.memory, changed.image), (ByteSize::mib(3072), shipped.image));
}

#[test]
fn an_agent_is_an_entry() {
    let settings =
        parse("[agents.'team:reviewer']\nimage = 'reviewer:1'\nargv = ['/bin/review', '--all']\n").unwrap();
    assert_eq!(settings.agents.len(), 3, "with the two that are built in");
    let argv = &settings.agents[&AgentId::parse("team:reviewer").unwrap()].argv;
    assert_eq!(*argv, ["/bin/review", "--all"].map(Template::literal));
    assert!(parse("[agents.reviewer]\n").unwrap_err().to_string().contains("is not an agent id"));
}

#[test]
fn an_agent_has_its_own_variables_and_volumes() {
    let settings = parse(
        "[agents.'team:a']\nargv = ['/bin/a', '--run={run_id}', '{{}}']\nenvironment = { GREETING = 'hello', OUT = '/out/{run_id}' }\n\
         image = 'a:1'\ndisk = '64 MiB'\nworkspace = 'conversation'\n\
         volumes = [{ volume = 'models-1', container_path = '/models' }]\n\
         [agents.'team:b']\nimage = 'b:1'\nargv = ['b']\n[[agents.'team:b'.volumes]]\nvolume = 'cache'\ncontainer_path = '/var/cache/b'\nread_only = false\n\
         [agents.'team:b'.environment]\nEMPTY = ''\n[agents.'team:c']\nmode = 'gateway'\ngateways = ['g']\n[gateways.g]\n",
    )
    .unwrap();
    let agent = |id| &settings.agents[&AgentId::parse(id).unwrap()];
    let a = agent("team:a");
    let b = agent("team:b");
    let template = |text: &str| text.parse::<Template>().unwrap();
    assert_eq!(a.argv[1..], [template("--run={run_id}"), Template::literal("{}")]);
    assert_eq!(a.environment["OUT"], template("/out/{run_id}"));
    assert_eq!((a.disk, agent("team:c").mode), (Some(ByteSize::mib(64)), Execution::Gateway));
    let volume = |volume: &str, container_path: &str, read_only| Volume {
        volume: volume.to_owned(),
        container_path: container_path.to_owned(),
        read_only,
    };
    assert_eq!(a.volumes, [volume("models-1", "/models", true)]);
    assert_eq!(b.volumes, [volume("cache", "/var/cache/b", false)]);
    assert_eq!(
        (b.environment["EMPTY"].to_string(), b.disk, b.mode),
        (String::new(), None, Execution::Ephemeral)
    );
}

#[test]
fn all_mistakes_of_an_agent_are_reported() {
    let lines = [
        ("argv = ['{runid}']", "argv: `{runid}` is not a placeholder: there are `{run_id}` and `{model}`"),
        ("image = 'sha256:123'", "image: `sha256:123` is not an image"),
        ("disk = '1 MiB'", "disk: 1 MiB is out of range: expected 16 MiB to 1048576 GiB"),
        ("mode = 'daemon'", "mode: expected `ephemeral` or `gateway`"),
        ("workspace = 'git'", "workspace: expected `conversation`"),
        ("[agents.'team:a'.environment]", ""),
        ("API_KEY = 'canary_1'", "environment.API_KEY: its name says `KEY`"),
        ("HOOK = 'xoxb-canary-1234'", "environment.HOOK: its value looks like a key or token"),
        ("RUN_ID = 'x'", "environment.RUN_ID: is set by Sluicegate itself"),
        ("OUT = '{home}'", "environment.OUT: `{home}` is not a placeholder"),
        ("NUMBER = 1", "environment.NUMBER: expected a string, found an integer"),
    ];
    let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    let error = parse(&format!("[agents.'team:a']\n{text}")).unwrap_err().to_string();
    assert!(error.contains("has 10 errors") && !error.contains("canary"), "{error}");
    for (at, (_, expected)) in lines.iter().enumerate().filter(|(_, (_, expected))| !expected.is_empty()) {
        let expected = format!("s.toml:{}: agents.team:a.{expected}", at + 2);
        assert!(error.contains(&expected), "{expected} is not in {error}");
    }
}

#[test]
fn volumes_have_names_and_places_that_are_theirs() {
    for (volume, expected) in [
        ("'data:/data'", "expected a table such as"),
        ("{ volume = 'data' }", "container_path is missing"),
        ("{ container_path = '/data' }", "volume is missing"),
        ("{ volume = 'data', container_path = '/data', readonly = true }", "unknown key `readonly`"),
        ("{ volume = 'data', container_path = '/data', read_only = 'yes' }", "read_only: expected a boolean"),
        ("{ volume = '/etc', container_path = '/data' }", "`/etc` is not the name of a volume"),
        ("{ volume = 'data', container_path = 'data' }", "not an absolute path"),
        ("{ volume = 'data', container_path = '/' }", "not an absolute path"),
        ("{ volume = 'data', container_path = '/data/' }", "not an absolute path"),
        ("{ volume = 'data', container_path = '/data/../tmp' }", "not an absolute path"),
        ("{ volume = 'data', container_path = '/workspace/x' }", "/workspace is not for volumes"),
        ("{ volume = 'data', container_path = '/llm-sock' }", "/llm-sock is not for volumes"),
        ("{ volume = 'data', container_path = '/tmp' }", "/tmp is not for volumes"),
        (
            "{ volume = 'data', container_path = '/a' }, { volume = 'more', container_path = '/a' }",
            "/a cannot be both `data` and `more`",
        ),
        (
            "{ volume = 'data', container_path = '/a/b' }, { volume = 'more', container_path = '/a' }",
            "/a cannot be both `data` and `more`, nor one in the other",
        ),
        ("{ volume = 'data', container_path = '/usr/local/bin' }", "/usr is not for volumes"),
        ("{ volume = 'data', container_path = '/var/run/x' }", "/var/run is not for volumes"),
    ] {
        let error = parse(&format!("[agents.'team:a']\nvolumes = [{volume}]")).unwrap_err().to_string();
        assert!(
            error.contains("s.toml:2: agents.team:a.volumes: ") && error.contains(expected),
            "{volume}: {error}"
        );
    }
    assert!(
        parse("[agents.'team:a']\nvolumes = [{ volume = 'data', container_path = '/workspaces' }]\nimage = 'a'\nargv = ['a']").is_ok()
    );
}

#[test]
fn an_agent_has_its_own_behaviour_and_limits() {
    let entry =
        "[agents.'team:a']\nimage = 'a'\nargv = ['a']\nprompt = 'Be brief.'\nbehaviour_dir = '/etc/a'\n";
    let models = "[models.big]\ncontext_window = 1000000\nmax_output_tokens = 64000\n[models.small]\ncontext_window = 8192\n";
    let settings = parse(&format!("{entry}{models}")).unwrap();
    let agent = &settings.agents[&AgentId::parse("team:a").unwrap()];
    assert_eq!(agent.prompt.as_deref(), Some("Be brief."));
    assert_eq!(agent.behaviour_dir.as_deref(), Some("/etc/a".as_ref()));
    let limits = |model: &str| settings.models.get(model).map(|it| (it.context_window, it.max_output_tokens));
    assert_eq!(limits("big"), Some((Some(1_000_000), Some(64_000))));
    assert_eq!((limits("small"), limits("other")), (Some((Some(8192), None)), None));
    for (text, expected) in [
        (
            "[agents.'a:b']\nbehaviour_dir = 'a'",
            "s.toml:2: agents.a:b.behaviour_dir: expected an absolute path",
        ),
        (
            "[agents.'a:b']\nmode = 'gateway'\nprompt = 'Hi'",
            "s.toml:3: agents.a:b.prompt: has no effect with `mode = \"gateway\"`",
        ),
        (
            "[models.m]\ncontext_window = 1\nmax_output_tokens = 2",
            "s.toml:3: models.m.max_output_tokens: 2 do not fit into the `context_window` of 1 tokens",
        ),
        ("[models.m]\ncontext_window = 0", "s.toml:2: models.m.context_window: "),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected} is not in {error}");
    }
}

#[test]
fn streams_are_answers_where_the_entry_says_so() {
    let settings =
        parse("[agents.'team:a']\nimage = 'a'\nargv = ['a']\n[agents.'team:b']\nimage = 'b'\nargv = ['b']\nstream = 'answer'\n[agents.'sandbox:agent']").unwrap();
    let stream = |id| settings.agents[&AgentId::parse(id).unwrap()].stream;
    assert_eq!(
        ["team:a", "team:b", DEFAULT_AGENT].map(stream),
        [Stream::Progress, Stream::Answer, Stream::Answer]
    );
    let error = parse("[agents.'team:a']\nstream = 'both'").unwrap_err().to_string();
    assert!(error.contains("s.toml:2: agents.team:a.stream: expected `answer` or `progress`"), "{error}");
}

#[test]
fn base_urls_are_checked_where_they_are_written() {
    for (url, authority) in [
        ("http://litellm:4000", "litellm:4000"),
        ("http://10.0.0.1/", "10.0.0.1:80"),
        ("http://[::1]:4000", "[::1]:4000"),
        ("https://[::1]", "[::1]:443"),
        ("https://models.example", "models.example:443"),
        ("https://models.example:8443/", "models.example:8443"),
        ("https://models.example/openai/v1", "models.example:443"),
    ] {
        let environment = Environment::from([("LITELLM_BASE_URL", url)]);
        assert_eq!(
            Settings::read(&Sources { environment, ..Sources::default() })
                .unwrap()
                .upstream
                .url()
                .unwrap()
                .base
                .authority(),
            authority
        );
    }
    for url in [
        "https://",
        "ftp://x",
        "litellm:4000",
        "http://::1",
        "http://[a]:1",
        "http://",
        "http://a/../v1",
        "http://a/v1?key=x",
        "http://a:b",
        "http://user@host",
        "https://sk-canary/key@host",
        "https://user:sk-canary/key@host",
        "http://host/v1?key=sk-canary",
        "http://a:99999",
    ] {
        let error = parse(&format!("\n[upstream]\nbase_url = '{url}'\n")).unwrap_err().to_string();
        assert!(error.contains("s.toml:3: upstream.base_url: "), "{url}: {error}");
        assert!(!error.contains("sk-canary"), "a secret of {url}: {error}");
    }
}

#[test]
fn an_upstream_may_be_below_a_path() {
    for (url, path) in [
        ("https://models.example", ""),
        ("https://models.example/v1/", ""),
        ("https://models.example/openai/v1", "/openai"),
        ("https://models.example/models/", "/models"),
    ] {
        let settings = parse(&format!("[upstream]\nbase_url = '{url}'")).unwrap();
        assert_eq!(settings.upstream.url().unwrap().path, path, "{url}");
    }
}

#[test]
fn a_workspace_is_large_enough_for_its_files() {
    let settings = parse("[sandbox]\nworkspace_size = '2 GiB'").unwrap();
    assert_eq!(settings.sandbox.workspace_bounds(None).files, 262_144);
    let files_of = |size| settings.sandbox.workspace_bounds(size).files;
    assert_eq!(files_of(None), 262_144);
    assert_eq!(files_of(Some(ByteSize::mib(8 << 10))), 4 * 262_144, "in proportion to the size");
    assert_eq!(files_of(Some(ByteSize(1))), 64, "no fewer");
    for (text, key) in [
        ("workspace_size = '1 KiB'", "workspace_size"),
        ("workspace_size = '16 MiB'\nmax_workspace_files = 100000", "max_workspace_files"),
        ("max_workspace_files = 1", "max_workspace_files"),
        ("workspaces = 'zfs'", "workspaces"),
    ] {
        let error = parse(&format!("[sandbox]\n{text}")).unwrap_err().to_string();
        assert!(error.contains(&format!("sandbox.{key}: ")), "{text}: {error}");
    }
}

#[test]
fn a_password_in_the_store_url_is_refused() {
    for url in
        ["postgres://u:canary@h/d", "postgres://h/d?password=canary", "mysql://canary@h", "sqlite://canary"]
    {
        let error = parse(&format!("\n[store]\nurl = '{url}'\n")).unwrap_err().to_string();
        assert!(error.contains("s.toml:3: store.url: ") && !error.contains("canary"), "{url}: {error}");
    }
    let environment = Environment::from([("SLUICE_STORE_PASSWORD", "canary")]);
    let settings = Settings::read(&Sources { environment, ..Sources::default() }).unwrap();
    assert!(!format!("{settings:?}").contains("canary"), "it is not a setting");
}

#[test]
fn a_gateway_runs_here_or_says_where_it_is() {
    let settings = parse("[gateways.here]\n[gateways.there]\nurl = 'ws://gateway:18789'\ntoken_file = '/t'\nattribution = 'slot'\nslots_file = '/s'\naccount = 'acct-1'\n[proxy]\nlisten = '127.0.0.1:4100'\n").unwrap();
    let gateway = |id: &str| &settings.gateways[&id.parse().unwrap()];
    assert!(gateway("here").is_managed() && !gateway("there").is_managed());
    assert_eq!(
        (gateway("here").attribution, gateway("there").attribution),
        (Attribution::Trace, Attribution::Slot)
    );
    let serves = |id, account: &str| gateway(id).serves(&account.parse().unwrap());
    assert_eq!(
        [serves("here", "acct-2"), serves("there", "acct-1"), serves("there", "acct-2")],
        [true, true, false]
    );
}

#[test]
fn what_a_gateway_lacks_is_named() {
    for (text, problem) in [
        ("[gateways.g]\nurl = 'ws://h:1'\ntoken_file = '/t'", "there is no `proxy.listen`"),
        ("[proxy]\nlisten = '127.0.0.1:1'\n[gateways.g]\nurl = 'ws://h:1'", "needs a `token_file`"),
        (
            "[proxy]\nlisten = '127.0.0.1:1'\n[gateways.g]\nurl = 'ws://h:1'\ntoken_file = '/t'\nattribution = 'slot'",
            "needs a `slots_file`",
        ),
        (
            "[proxy]\nlisten = '127.0.0.1:1'\nlisten_serves = 'clients'\n[gateways.g]\nurl = 'ws://h:1'\ntoken_file = '/t'",
            "lets no gateway call models",
        ),
        (
            "[gateways.g]\n[agents.'a:g']\nmode = 'gateway'\ngateways = ['g']\ngateway_agent = 'other'",
            "has no agent `other`",
        ),
        ("[gateways.G]\n", "is not a gateway's id"),
        ("[gateways.g]\nagents = ['Main']", "is not the id of a gateway's agent: expected 1 to 64"),
        ("[gateways.g]\nagents = []", "expected at least 1"),
        ("[gateways.g]\nattribution = 'guess'", "expected `trace` or `slot` or"),
        ("[agents.'a:g']\nmode = 'gateway'\ngateways = ['none']", "there is no [gateways.none]"),
        ("[agents.'a:g']\nmode = 'gateway'", "it names none: `gateways"),
        ("[agents.'a:g']\ngateway_agent = 'a b'", "is not the id of a gateway's agent"),
        (
            "[gateways.g]\nattribution = 'plugin'",
            "the first secret in `proxy.token_secrets_file`: there is none",
        ),
        (
            "[gateways.g]\nattribution = 'headers'",
            "the first secret in `proxy.token_secrets_file`: there is none",
        ),
    ] {
        let errors = parse(text).unwrap_err().to_string();
        assert!(errors.contains(problem), "{text}: {errors}");
    }
}

#[test]
fn all_mistakes_of_a_gateway_are_reported() {
    let text = "[gateways.g]\nurl = 'ws://h:1'\nattribution = 'slot'\nmemory = '1 GiB'\ndrain_timeout = '1s'\n\
                [gateways.tokens]\nurl = 'ws://h:2'\nattribution = 'plugin'\nagents = ['main']\n";
    let errors = parse(text).unwrap_err().to_string();
    for problem in [
        "gateways.g.memory: it is of a gateway that runs here",
        "gateways.g.drain_timeout: ",
        "gateways.tokens.agents: ",
    ] {
        assert!(errors.contains(problem), "{problem}: {errors}");
    }
    let text =
        text.replace("memory = '1 GiB'\ndrain_timeout = '1s'\n", "").replace("agents = ['main']\n", "");
    let errors = parse(&text).unwrap_err().to_string();
    for problem in
        ["no `proxy.listen`", "needs a `token_file`", "needs a `slots_file`", "`proxy.token_secrets_file`"]
    {
        assert!(errors.contains(problem), "{problem}: {errors}");
    }
    // The control: each of them is valid for a managed gateway.
    parse("[gateways.g]\nattribution = 'slot'\nmemory = '1 GiB'\ndrain_timeout = '1s'\nagents = ['main']\ndisk = '1 GiB'\n").unwrap();
}

#[test]
fn a_provider_is_matched_by_name_and_slot() {
    let settings = parse("[gateways.g]\nprovider = 'cogni'\n").unwrap();
    let gateway = &settings.gateways[&"g".parse().unwrap()];
    for (provider, is_its) in [
        ("cogni", true),
        ("cogni-s0", true),
        ("cogni-s", false),
        ("cogni-s1x", false),
        ("cogni2", false),
        ("openai", false),
    ] {
        assert_eq!(gateway.has_provider(provider), is_its, "{provider}");
    }
    assert!(gateway.has_provider(&gateway.slot_provider(12)));
}

#[test]
fn every_section_of_the_schema_has_an_owner() {
    let schema = Settings::json_schema();
    let sections: Vec<_> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let mut names = SectionName::ALL.map(SectionName::name);
    names.sort_unstable();
    assert_eq!(sections, names);
    assert_eq!(
        (SectionName::of("api"), SectionName::of("api.listen"), SectionName::of("apis.x")),
        (Some(SectionName::Api), Some(SectionName::Api), None)
    );
}
