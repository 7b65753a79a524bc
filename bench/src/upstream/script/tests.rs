//! Tests of model names: the scripts they stand for, or the reason why they are none.

use super::*;

fn ms(milliseconds: u64) -> Option<Duration> {
    Some(Duration::from_millis(milliseconds))
}

#[test]
fn each_directive_sets_only_its_own_part() {
    let usual = Script::default;
    let status = |code| Fate::Status(StatusCode::from_u16(code).unwrap());
    let table = [
        ("fake", usual()),
        ("fake-words50", Script { content: Content::Words(50), ..usual() }),
        ("fake-words0", Script { content: Content::Words(0), ..usual() }),
        ("fake-big200k", Script { content: Content::Filler(204_800), ..usual() }),
        ("fake-big2m", Script { content: Content::Filler(2_097_152), ..usual() }),
        ("fake-big7", Script { content: Content::Filler(7), ..usual() }),
        ("fake-echo", Script { content: Content::Echo, ..usual() }),
        ("fake-tools", Script { content: Content::ToolCall, ..usual() }),
        ("fake-steps", Script { content: Content::Steps, ..usual() }),
        ("fake-firstbyte500ms", Script { first_byte: ms(500), ..usual() }),
        ("fake-gap100ms", Script { gap: ms(100), ..usual() }),
        ("fake-status429", Script { fate: status(429), ..usual() }),
        ("fake-status599", Script { fate: status(599), ..usual() }),
        ("fake-toolong", Script { fate: Fate::TooLong, ..usual() }),
        ("fake-hang", Script { fate: Fate::Hang, ..usual() }),
        ("fake-stall3", Script { fate: Fate::Stall(3), ..usual() }),
        ("fake-cut0", Script { fate: Fate::Cut(0), ..usual() }),
        ("fake-errmid3", Script { fate: Fate::ErrorMid(3), ..usual() }),
        ("fake-cutat2k", Script { fate: Fate::CutAt(2048), ..usual() }),
        (
            "fake-usage300x6000",
            Script { figures: Some(Figures { prompt: 300, completion: 6000 }), ..usual() },
        ),
        ("fake-nousage", Script { tells_usage: false, ..usual() }),
        ("fake-cost", Script { cost: Cost::OfTokens, ..usual() }),
        ("fake-free", Script { cost: Cost::Free, ..usual() }),
    ];
    for (model, script) in table {
        assert_eq!(model.parse(), Ok(script), "{model}");
    }
}

#[test]
fn directives_combine_in_any_order() {
    let script = Script {
        content: Content::Words(7),
        fate: Fate::Cut(2),
        first_byte: ms(1),
        gap: ms(20),
        tells_usage: false,
        figures: None,
        cost: Cost::OfTokens,
    };
    for model in [
        "fake-words7-cut2-firstbyte1ms-gap20ms-nousage-cost",
        "fake-cost-nousage-gap20ms-firstbyte1ms-cut2-words7",
    ] {
        assert_eq!(model.parse().as_ref(), Ok(&script), "{model}");
    }
}

#[test]
fn every_directive_of_the_list_is_understood() {
    for directive in &DIRECTIVES {
        let script: Result<Script, _> = directive.example.parse();
        assert_ne!(script, Ok(Script::default()), "{} does nothing", directive.form);
        assert!(script.is_ok(), "{script:?}");
    }
}

#[test]
fn values_must_fit() {
    let misfits = [
        "fake-words",
        "fake-words5x",
        "fake-words100001",
        "fake-big",
        "fake-big5g",
        "fake-big65m",
        "fake-gap5",
        "fake-gap5s",
        "fake-gap3600001ms",
        "fake-status",
        "fake-status199",
        "fake-status600",
        "fake-status70000",
        "fake-stall",
        "fake-cut99999999999999999999",
        "fake-usage300",
        "fake-usage300x",
        "fake-echo1",
        "fake-cost1",
    ];
    for model in misfits {
        let refused = model.parse::<Script>();
        assert!(matches!(refused, Err(ScriptError::BadValue { .. })), "{model}: {refused:?}");
    }
}

#[test]
fn an_unknown_directive_is_told_the_known_ones() {
    for model in ["fake-gpt", "fake-", "fake-gapms", "fake-words5-", "fake-Echo", "fake-words-5"] {
        let Err(refused) = model.parse::<Script>() else { panic!("{model} was taken") };
        assert!(
            matches!(refused, ScriptError::UnknownDirective(_) | ScriptError::BadValue { .. }),
            "{model}: {refused:?}"
        );
    }
    let message = "fake-gpt".parse::<Script>().unwrap_err().to_string();
    for directive in &DIRECTIVES {
        assert!(message.contains(directive.form), "{message} does not name {}", directive.form);
    }
}

#[test]
fn contradictions_are_refused() {
    for model in [
        "fake-stall3-cut5",
        "fake-echo-tools",
        "fake-words5-words5",
        "fake-gap1ms-gap1ms",
        "fake-hang-hang",
        "fake-firstbyte1ms-firstbyte2ms",
        "fake-nousage-nousage",
        "fake-usage1x1-usage1x1",
        "fake-cost-free",
    ] {
        let refused = model.parse::<Script>();
        assert!(matches!(refused, Err(ScriptError::Contradiction(_))), "{model}: {refused:?}");
    }
}

#[test]
fn other_models_do_not_exist() {
    for model in ["", "gpt-5", "fakery", "openai/fake", "Fake"] {
        assert_eq!(model.parse::<Script>(), Err(ScriptError::UnknownModel(model.to_owned())));
    }
}
