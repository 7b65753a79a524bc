//! Settings as a file holds them.

use platform_core::{
    id::AgentId,
    limit::{ByteSize, Millis},
};

use super::{DEFAULT_AGENT, Settings, Stream};
use crate::config::{Environment, Mistakes, Sources};

fn parse(text: &str) -> Result<Settings, Mistakes> {
    Settings::read(&Sources { file: Some(("s.toml".into(), text.to_owned())), ..Sources::default() })
}

#[test]
fn the_agent_that_ships_is_there_without_a_file() {
    let settings = Settings::read(&Sources::default()).unwrap();
    let agent = &settings.agents[&AgentId::parse(DEFAULT_AGENT).unwrap()];
    assert_eq!((agent.runtime, agent.memory), (Millis::seconds(120), ByteSize::mib(512)));
    assert_eq!(agent.argv, ["node", "/agent/run.mjs"]);
}

#[test]
fn an_agent_is_an_entry() {
    let settings =
        parse("[agents.'team:reviewer']\nimage = 'reviewer:1'\nargv = ['/bin/review', '--all']\n").unwrap();
    assert_eq!(settings.agents.len(), 2);
    assert_eq!(settings.agents[&AgentId::parse("team:reviewer").unwrap()].argv, ["/bin/review", "--all"]);
    assert!(parse("[agents.reviewer]\n").unwrap_err().to_string().contains("is not an agent id"));
}

#[test]
fn what_is_streamed_is_an_answer_where_the_entry_or_the_agent_that_ships_says_so() {
    let settings =
        parse("[agents.'team:a']\n[agents.'team:b']\nstream = 'answer'\n[agents.'sandbox:agent']").unwrap();
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
    ] {
        let environment = Environment::from([("LITELLM_BASE_URL", url)]);
        assert_eq!(
            Settings::read(&Sources { environment, ..Sources::default() }).unwrap().upstream.authority(),
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
        "http://a/v1",
        "http://a:b",
        "http://user@host",
        "http://a:99999",
    ] {
        let error = parse(&format!("\n[upstream]\nbase_url = '{url}'\n")).unwrap_err().to_string();
        assert!(error.contains("s.toml:3: upstream.base_url: "), "{url}: {error}");
    }
}

#[test]
fn a_workspace_has_room_for_the_files_that_may_be_in_it() {
    let settings = parse("[sandbox]\nworkspace_size = '2 GiB'").unwrap();
    assert_eq!(settings.sandbox.workspace_files, 262_144);
    for (text, key) in [
        ("workspace_size = '1 KiB'", "workspace_size"),
        ("workspace_size = '16 MiB'\nworkspace_files = 100000", "workspace_files"),
        ("workspace_files = 1", "workspace_files"),
        ("workspaces = 'zfs'", "workspaces"),
    ] {
        let error = parse(&format!("[sandbox]\n{text}")).unwrap_err().to_string();
        assert!(error.contains(&format!("sandbox.{key}: ")), "{text}: {error}");
    }
}

#[test]
fn a_password_in_the_stores_url_is_refused_and_not_repeated() {
    for url in
        ["postgres://u:canary@h/d", "postgres://h/d?password=canary", "mysql://canary@h", "sqlite://canary"]
    {
        let error = parse(&format!("\n[store]\nurl = '{url}'\n")).unwrap_err().to_string();
        assert!(error.contains("s.toml:3: store.url: ") && !error.contains("canary"), "{url}: {error}");
    }
    let environment = Environment::from([("SLUICE_STORE_PASSWORD", "canary")]);
    let settings = Settings::read(&Sources { environment, ..Sources::default() }).unwrap();
    assert!(!format!("{settings:?}").contains("canary"), "it is no setting");
}
