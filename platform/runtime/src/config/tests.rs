//! Tests the configuration reader: sources, messages and schema.

use std::path::PathBuf;

use platform_core::limit::{ByteSize, Millis};
use serde_json::json;

use super::{ConfigErrors, Environment, Section, Sources, explain, json_schema, read};

#[derive(Debug, PartialEq, Eq)]
struct Sample {
    threads: u32,
    drain: Millis,
    url: String,
    colours: Vec<String>,
    pets: Vec<(String, u32)>,
    spare: u32,
    size: ByteSize,
}

fn sample(root: &Section<'_>) -> Sample {
    root.section("proxy", "The proxy.", |proxy| Sample {
        threads: proxy.field("threads", "How many.").or(2),
        drain: proxy.field("drain", "How long.").or(Millis::seconds(20)),
        url: proxy.field("url", "Where.").variable("PUBLIC_URL").or("http://default".to_owned()),
        colours: proxy.field("colours", "Which.").list_or(vec!["red".to_owned()]),
        spare: proxy.field("spare", "How many wait.").may_be_zero().at_most(&9u32).or(0),
        size: proxy.field("size", "How large.").at_least(&ByteSize::mib(6)).or(ByteSize::mib(8)),
        pets: root.each("pets", "Any of them.", |name, pet| {
            (name.to_owned(), pet.field("legs", "How many.").or(4))
        }),
    })
}

fn with(text: &str, environment: Environment, flags: &[&str]) -> Result<Sample, ConfigErrors> {
    let file = Some((PathBuf::from("s.toml"), text.to_owned()));
    let flags = flags.iter().map(ToString::to_string).collect();
    read(&Sources { file, environment, flags }, sample, |_| Ok(())).map(|(sample, _values, ())| sample)
}

#[test]
fn nothing_set_means_all_defaults() {
    let read = with("", Environment::default(), &[]).unwrap();
    assert_eq!(
        (read.threads, read.drain, read.colours, read.pets, read.spare),
        (2, Millis::seconds(20), vec!["red".to_owned()], vec![], 0)
    );
}

#[test]
fn flags_override_environment_and_file() {
    let text = "[proxy]\nthreads = 3\nurl = 'http://file'\ndrain = '1s'\n[pets.\"a:b\"]\nlegs = 8\n";
    let environment = Environment::from([
        ("SLUICE_PROXY_DRAIN", "2s"),
        ("PUBLIC_URL", "http://env"),
        ("SLUICE_PROXY_THREADS", "4"),
    ]);
    let read = with(text, environment, &["proxy.threads=5"]).unwrap();
    assert_eq!((read.threads, read.drain, read.url.as_str()), (5, Millis::seconds(2), "http://env"));
    assert_eq!(read.pets, [("a:b".to_owned(), 8)]);
}

#[test]
fn every_mistake_is_reported_with_its_origin() {
    let text = "[proxy]\nthreads = 'two'\ndrian = '1s'\nurl = 7\ncolours = ['red', 1]\n[prxy]\n[pets.cat]\nlgs = 4\nlegs = -1\n";
    let environment = Environment::from([
        ("SLUICE_PROXY_DRAIN", "soon"),
        ("SLUICE_PROXY_NOTHING", "1"),
        ("SLUICE_LOG", "info"),
    ]);
    let errors = with(text, environment, &["proxy.none=1", "bare"]).unwrap_err();
    let expected = [
        "s.toml:2: proxy.threads: expected a decimal whole number, found a string",
        "s.toml:3: proxy.drian: unknown key; known here: colours, drain, size, spare, threads, url",
        "s.toml:4: proxy.url: expected a string, found an integer",
        "s.toml:5: proxy.colours: expected a string, found an integer",
        "s.toml:6: prxy: unknown key; known here: pets, proxy",
        "s.toml:8: pets.cat.lgs: unknown key; known here: legs",
        "s.toml:9: pets.cat.legs: expected a whole number from 0 to 4294967295, found `-1`",
        "environment variable SLUICE_PROXY_DRAIN: proxy.drain: `soon` is not a duration such as `1500ms`, `90s` or `2m 30s`",
        "environment variable SLUICE_PROXY_NOTHING: overrides no setting",
        "--set bare: expected section.key=value",
        "--set proxy.none=1: proxy.none: no such setting; `sluice config schema` lists all",
    ];
    assert_eq!(errors.0.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn invalid_toml_is_reported_by_line() {
    let errors = with("[proxy]\nthreads = \ndrain = 'soon'\n", Environment::default(), &[]).unwrap_err();
    let lines: Vec<_> = errors.0.iter().map(ToString::to_string).collect();
    assert!(lines.iter().any(|line| line.starts_with("s.toml:2: ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("s.toml:3: proxy.drain: `soon`")), "{lines:?}");
}

#[test]
fn a_duplicate_key_is_named() {
    for text in ["[proxy]\nthreads = 1\nthreads = 2\n", "threads.a = 1\n\nthreads.a = 2\n"] {
        let errors = with(text, Environment::default(), &[]).unwrap_err();
        let named =
            |error: &String| error.starts_with("s.toml:3: duplicate key `") && error.contains("remove one");
        assert!(errors.0.iter().map(ToString::to_string).any(|error| named(&error)), "{errors}");
    }
}

#[test]
fn a_bare_number_is_shown_as_text() {
    let texts = |root: &Section<'_>| {
        let _listen = root.field("listen", "Where.").optional::<std::net::SocketAddr>();
        let _drain = root.field("drain", "How long.").optional::<Millis>();
        let _size = root.field("size", "How large.").optional::<ByteSize>();
        let _cost = root.field("cost", "How much.").optional::<platform_core::money::NanoDollars>();
    };
    let text = "listen = 'localhost'\ndrain = 20\nsize = 512\ncost = 25\n".to_owned();
    let sources = Sources { file: Some((PathBuf::from("s.toml"), text)), ..Sources::default() };
    let errors = read(&sources, texts, |_| Ok(())).unwrap_err();
    let expected = [
        "s.toml:1: listen: expected an address and a port such as `127.0.0.1:8080`, found `localhost`",
        "s.toml:2: drain: expected a string such as \"20s\", found an integer",
        "s.toml:3: size: expected a string such as \"512 MiB\", found an integer",
        "s.toml:4: cost: expected a string such as \"25\", found an integer",
    ];
    assert_eq!(errors.0.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn a_missing_file_is_named_without_a_line() {
    let missing = Sources::locate(Some("/nowhere/s.toml".into()), Environment::default(), Vec::new());
    let error = missing.unwrap_err().to_string();
    assert!(error.contains("\n  /nowhere/s.toml: cannot be read: "), "{error}");
}

#[test]
fn the_schema_lists_all_fields_and_no_others() {
    let schema = json_schema("sample", sample);
    assert_eq!(schema["properties"]["proxy"]["properties"]["threads"]["default"], json!(2));
    assert_eq!(schema["properties"]["proxy"]["additionalProperties"], json!(false));
    let pet = &schema["properties"]["pets"]["additionalProperties"];
    assert_eq!(pet["properties"]["legs"]["description"], json!("How many."));
    assert_eq!(pet["additionalProperties"], json!(false));
    assert_eq!(schema["additionalProperties"], json!(false));
}

#[test]
fn zero_is_out_of_range_unless_declared() {
    let text = "[proxy]\nthreads = 0\ndrain = '0s'\nspare = 10\nsize = '1 KiB'\n";
    let errors = with(text, Environment::default(), &["pets.cat.legs=0"]).unwrap_err();
    let expected = [
        "s.toml:2: proxy.threads: 0 is out of range: expected 1 to 4294967295; zero does not mean unlimited",
        "s.toml:3: proxy.drain: 0s is out of range: expected 1ms to 36500days; zero does not mean unlimited",
        "s.toml:4: proxy.spare: 10 is out of range: expected 0 to 9",
        "s.toml:5: proxy.size: 1 KiB is out of range: expected 6 MiB to 1048576 GiB",
        "--set pets.cat.legs=0: pets.cat.legs: no such setting; `sluice config schema` lists all",
    ];
    assert_eq!(errors.0.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    let read = with("[proxy]\nspare = 0\n", Environment::from([("SLUICE_PROXY_SIZE", "6MiB")]), &[]).unwrap();
    assert_eq!((read.spare, read.size), (0, ByteSize::mib(6)), "the control");
    let by_variable =
        with("", Environment::from([("SLUICE_PROXY_THREADS", "0")]), &[]).unwrap_err().to_string();
    assert!(by_variable.contains("0 is out of range"), "{by_variable}");

    let schema = &json_schema("sample", sample)["properties"]["proxy"]["properties"];
    assert_eq!((&schema["threads"]["minimum"], &schema["spare"]["minimum"]), (&json!(1), &json!(0)));
    assert_eq!(schema["drain"]["pattern"], json!("[1-9]"));
    assert_eq!(schema["size"]["description"], json!("How large. At least 6 MiB."));
}

#[test]
fn each_effective_value_has_its_source() {
    let text = "[proxy]\nthreads = 3\ndrain = '1s'\ncolours = []\n[pets.cat]\nlegs = 3\n";
    let sources = Sources {
        file: Some(("s.toml".into(), text.to_owned())),
        environment: Environment::from([("SLUICE_PROXY_DRAIN", "2s"), ("PUBLIC_URL", "http://env")]),
        flags: vec!["proxy.spare=1".to_owned()],
    };
    let settings =
        explain(&sources, |root| (sample(root), root.field("name", "Its name.").optional::<String>()));
    let line = |setting: &super::EffectiveSetting| {
        let value = setting.value.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        let source = setting.origin.as_ref().map_or_else(|| "default".to_owned(), ToString::to_string);
        format!("{} {value} {source}", setting.key)
    };
    let expected = [
        "proxy.threads 3 s.toml:2",
        "proxy.drain \"2s\" environment variable SLUICE_PROXY_DRAIN",
        "proxy.url \"http://env\" environment variable PUBLIC_URL",
        "proxy.colours [] s.toml:4",
        "proxy.spare 1 --set proxy.spare=1",
        "proxy.size \"8 MiB\" default",
        "pets.cat.legs 3 s.toml:6",
        "name - default",
    ];
    assert_eq!(settings.iter().map(line).collect::<Vec<_>>(), expected);
}
