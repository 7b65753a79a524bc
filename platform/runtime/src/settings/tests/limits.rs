//! Tests limits that cannot hold, and settings that have no effect.

use super::{Settings, Sources, parse};

/// Reads `text`, which has one error, and returns it.
fn error(text: &str) -> String {
    let error = parse(text).expect_err(text);
    assert_eq!(error.0.len(), 1, "{text}: {error}");
    error.to_string()
}

#[test]
fn no_limit_can_be_zero() {
    // Settings with a documented meaning of zero.
    const MEAN_SOMETHING: [&str; 15] = [
        "agents.*.warm_pool_size",
        "billing.markup",
        "gateways.*.drain_timeout",
        "prices.*.cache_written",
        "prices.*.cache_written_1h",
        "prices.*.cached",
        "prices.*.input",
        "prices.*.output",
        "proxy.client_gone_timeout",
        "proxy.drain_timeout",
        "proxy.token_leeway",
        "runs.*.attempt",
        "runs.*.peer_uid",
        "sandbox.disk_reserve",
        "worker.max_concurrent_runs",
    ];
    let schema = Settings::json_schema();
    let mut may_be_zero = Vec::new();
    for (section, table) in schema["properties"].as_object().unwrap() {
        let each = &table["additionalProperties"];
        let (settings, path) =
            if each.is_object() { (each, format!("{section}.*")) } else { (table, section.clone()) };
        for (key, setting) in settings["properties"].as_object().unwrap() {
            let zeros: &[&str] = match (setting["minimum"].as_u64(), setting["pattern"].as_str()) {
                (Some(0), _) | (_, Some("[0-9]")) => {
                    may_be_zero.push(format!("{path}.{key}"));
                    continue;
                }
                (Some(_), _) => &["0"],
                (_, Some("[1-9]")) => &["'0s'", "'0 B'", "'0'"],
                _ => continue,
            };
            let heading = path.replace('*', if section == "agents" { "'sandbox:agent'" } else { "x" });
            let is_refused = |zero: &&str| {
                let error = parse(&format!(
                    "[{heading}]
{key} = {zero}
"
                ))
                .map(drop);
                error.is_err_and(|error| error.to_string().contains("zero does not mean unlimited"))
            };
            assert!(zeros.iter().any(is_refused), "{path}.{key}");
        }
    }
    assert_eq!(may_be_zero, MEAN_SOMETHING);
}

#[test]
fn impossible_limits_are_told_with_their_range() {
    for (text, told) in [
        (
            "[agents.'sandbox:agent']\npids = 0",
            "s.toml:2: agents.sandbox:agent.pids: 0 is out of range: expected 1 to",
        ),
        ("[agents.'sandbox:agent']\nmilli_cpu = 0", "milli_cpu: 0 is out of range: expected 10 to"),
        ("[agents.'sandbox:agent']\nmemory = '0 B'", "memory: 0 B is out of range: expected 6 MiB to"),
        ("[agents.'sandbox:agent']\nmemory = '1 KiB'", "memory: 1 KiB is out of range: expected 6 MiB to"),
        ("[agents.'sandbox:agent']\ndisk = '0 B'", "disk: 0 B is out of range: expected 16 MiB to"),
        ("[agents.'sandbox:agent']\nrun_timeout = '0s'", "run_timeout: 0s is out of range: expected 1ms to"),
        ("[agents.'sandbox:agent']\nargv = []", "argv: has 0 entries: expected at least 1"),
        (
            "[agents.'sandbox:agent']\nwarm_pool_size = 65",
            "warm_pool_size: 65 is out of range: expected 0 to 64",
        ),
        ("[agents.'a:b']\nargv = ['a']", "s.toml:1: agents.a:b.image: is missing"),
        ("[agents.'a:b']\nimage = 'a'", "s.toml:1: agents.a:b.argv: is missing"),
        ("[accounts.a]\nrequests = 0", "accounts.a.requests: 0 is out of range: expected 1 to"),
        ("[worker]\nmax_concurrent_starts = 0", "worker.max_concurrent_starts: 0 is out of range"),
        ("[worker]\nlease_duration = '10ms'", "worker.lease_duration: 10ms is out of range: expected 1s to"),
    ] {
        let error = error(text);
        assert!(error.contains(told), "{text}: {error}");
    }
}

#[test]
fn a_markup_is_exact_or_refused() {
    let rate = |text: &str| parse(&format!("[billing]\nmarkup = {text}")).unwrap().billing.rate;
    for (text, shown) in
        [("1.25", "1.25"), ("'1.25'", "1.25"), ("2", "2"), ("0.000001", "0.000001"), ("0", "0")]
    {
        assert_eq!(rate(text).markup.to_string(), shown, "{text}");
    }
    for text in
        ["1.0000001", "'1.0000001'", "0.1234567", "-1", "-0.5", "1000.5", "1e-9", "nan", "'dear'", "true"]
    {
        let error = error(&format!("[billing]\nmarkup = {text}"));
        let told = if text == "true" {
            "found a boolean"
        } else {
            "from 0 to 1000 with at most 6 decimals, such as 1.25"
        };
        assert!(error.contains("s.toml:2: billing.markup: ") && error.contains(told), "{text}: {error}");
    }
    for text in ["floor = 1.5", "floor = 9007199254740993", "credits_per_dollar = 0"] {
        let error = error(&format!("[billing]\n{text}"));
        assert!(error.contains("s.toml:2: billing."), "{text}: {error}");
    }
}

#[test]
fn a_price_is_exact_or_refused() {
    let prices = |input: &str| format!("[prices.m]\ninput = '{input}'\noutput = '1'");
    for (text, nanos) in
        [("0.000000001", 1), ("1e-9", 1), ("$2.50", 2_500_000_000), ("0.1000000000", 100_000_000), ("0", 0)]
    {
        assert_eq!(parse(&prices(text)).unwrap().prices["m"].usual.input.0, nanos, "{text}");
    }
    for (text, told) in [
        ("0.0000000004", "is finer than the smallest unit, a billionth of a dollar (0.000000001)"),
        ("0.0000000015", "is finer than the smallest unit"),
        ("1e-99", "is finer than the smallest unit"),
        ("1e99", "is not an amount of dollars such as `2.50`"),
        ("-1", "is not an amount of dollars such as `2.50`"),
    ] {
        let error = parse(&prices(text)).unwrap_err().to_string();
        assert!(error.contains(&format!("s.toml:2: prices.m.input: `{text}` {told}")), "{error}");
    }
}

#[test]
fn a_price_has_tiers() {
    let usual = "[prices.m]\ninput = '3'\noutput = '15'\n";
    let tiers = "[prices.m.long_prompt]\nabove = 200000\ninput = '6'\noutput = '22.50'\n\
        [prices.m.premium]\ninput = '6'\noutput = '30'\ncached = '0.30'\n";
    let tariff = parse(&format!("{usual}{tiers}")).unwrap().prices["m"];
    let long_prompt = tariff.long_prompt.unwrap();
    assert_eq!((long_prompt.above, long_prompt.price.output.0), (200_000, 22_500_000_000));
    assert_eq!(long_prompt.price.cache_written.0, 7_500_000_000, "five quarters of its own input");
    let premium = tariff.premium.unwrap();
    assert_eq!((premium.output.0, premium.cached.0), (30_000_000_000, 300_000_000));
    let control = parse(usual).unwrap().prices["m"];
    assert_eq!((control.long_prompt, control.premium), (None, None));
    for (tier, told) in [
        ("[prices.m.long_prompt]\nabove = 1", "prices.m.long_prompt: a price of long prompts needs `above`"),
        ("[prices.m.long_prompt]\ninput = '6'\noutput = '7'", "a price of long prompts needs `above`"),
        ("[prices.m.premium]\ninput = '6'", "prices.m.premium: a price needs `input` and `output`"),
    ] {
        let error = error(&format!("{usual}{tier}"));
        assert!(error.contains(told), "{tier}: {error}");
    }
}

#[test]
fn a_free_model_has_no_price() {
    let lists = |prices: &str| format!("[billing]\nfree_models = ['m']\n{prices}");
    let price = |model: &str, input: &str| format!("[prices.'{model}']\ninput = '{input}'\noutput = '0'\n");
    for (prices, told) in [
        (price("m", "1"), "`m` is listed as free, and [prices.\"m\"] has a price for it"),
        (price("*", "1"), "`m` is listed as free, and [prices.\"*\"] has a price for it"),
        (price("m", "0") + "cached = '1'\n", "[prices.\"m\"] has a price for it"),
    ] {
        let error = error(&lists(&prices));
        assert!(error.contains("billing.free_models: ") && error.contains(told), "{prices}: {error}");
    }
    // The controls: a price of 0, beside a price for all other models, and prices of others.
    for prices in [price("m", "0") + &price("*", "1"), price("n", "1"), String::new()] {
        parse(&lists(&prices)).unwrap();
    }
}

#[test]
fn an_account_may_have_a_floor_of_its_own() {
    let settings =
        parse("[billing]\nfloor = -5\n[accounts.a]\nfloor = 10\n[accounts.b]\nrequests = 1").unwrap();
    let floor = |account: &str| settings.floor_of(&account.parse().unwrap()).map(|floor| floor.0);
    assert_eq!(["a", "b", "c"].map(floor), [Some(10), Some(-5), Some(-5)]);
    assert_eq!(settings.greatest_floor().map(|floor| floor.0), Some(10));
    assert_eq!(parse("").unwrap().greatest_floor(), None);
}

#[test]
fn a_run_dir_fits_the_longest_socket() {
    let dir = |length: usize| format!("[proxy]\nrun_dir = '/{}'", "d".repeat(length - 1));
    let error = error(&dir(61));
    assert!(
        error.contains("s.toml:2: proxy.run_dir: 61 bytes are too many") && error.ends_with("at most 60"),
        "{error}"
    );
    parse(&dir(60)).unwrap();
}

#[test]
fn a_limit_of_cost_needs_prices() {
    let parse_with = |text: &str, model_info: bool| {
        let file = Some(("s.toml".into(), text.to_owned()));
        Settings::read(&Sources {
            file,
            flags: vec![format!("upstream.model_info={model_info}")],
            ..Sources::default()
        })
    };
    for (text, told) in [
        ("[accounts.a]\ncost = '1'", "s.toml:2: accounts.a.cost: under a limit of cost"),
        ("[accounts.'*']\ncost = '1'", "accounts.*.cost: under a limit of cost"),
        (
            "[agents.'sandbox:agent']\ncost = '1'\nmodels = ['m', 'n']\n[prices.m]\ninput = '0'\noutput = '0'",
            "it may name n: add [prices.\"n\"]",
        ),
        (
            "[upstream]\ndefault_model = 'd'\n[agents.'sandbox:agent']\ncost = '1'\n[prices.m]\ninput = '0'\noutput = '0'",
            "it may name d: add",
        ),
        (
            "[runs.r]\naccount = 'a'\nsocket = '/x'\ncost = '1'\nmodels = ['n']",
            "s.toml:4: runs.r.cost: under a limit of cost",
        ),
    ] {
        let error = parse_with(text, false).unwrap_err();
        assert_eq!(error.0.len(), 1, "{text}: {error}");
        assert!(error.to_string().contains(told), "{text}: {error}");
        let priced = format!("{text}\n[prices.'*']\ninput = '1'\noutput = '1'");
        parse_with(&priced, false).expect("the control");
        parse_with(text, true).expect("the upstream may show a price");
    }
}

#[test]
fn a_setting_without_effect_is_a_mistake() {
    let session = "[gateways.g]\n[agents.'a:b']\nmode = 'gateway'\ngateways = ['g']\n";
    parse(&format!("{session}gateway_agent = 'main'\nmodel = 'm'\nrun_timeout = '1h'")).expect("the control");
    for ignored in [
        "image = 'a:1'",
        "argv = ['a']",
        "environment = { A = 'b' }",
        "disk = '1 GiB'",
        "memory = '1 GiB'",
        "pids = 9",
        "milli_cpu = 1000",
        "output_capture_limit = '1 MiB'",
        "protocol = 'text'",
        "workspace = 'conversation'",
        "warm_pool_size = 0",
    ] {
        let error = error(&format!("{session}{ignored}"));
        let key = ignored.split(' ').next().unwrap();
        assert!(
            error.contains(&format!("s.toml:5: agents.a:b.{key}: has no effect with `mode = \"gateway\"`")),
            "{error}"
        );
    }
    for ignored in ["gateways = []", "gateway_agent = 'main'"] {
        let error = error(&format!("[agents.'sandbox:agent']\n{ignored}"));
        assert!(error.contains("has no effect with `mode = \"ephemeral\"`"), "{error}");
    }
}

#[test]
fn a_control_of_litellm_is_no_extra_field() {
    for field in [
        "api_base",
        "base_url",
        "api_key",
        "fallbacks",
        "extra_headers",
        "extra_body",
        "mock_response",
        "metadata",
        "litellm_anything",
        "no-log",
        "cache",
        "proxy_server_request",
        "model_list",
        "custom_llm_provider",
        "num_retries",
        "context_window_fallback",
    ] {
        let error =
            parse(&format!("[proxy]\nextra_body_fields = ['colour', '{field}']")).unwrap_err().to_string();
        assert!(
            error.contains(&format!("s.toml:2: proxy.extra_body_fields: `{field}` never passes")),
            "{error}"
        );
    }
    let control = parse("[proxy]\nextra_body_fields = ['colour', 'chat_template_kwargs']").unwrap();
    assert_eq!(control.proxy.extra_body_fields, ["colour", "chat_template_kwargs"]);
}
