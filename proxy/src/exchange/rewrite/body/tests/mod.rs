//! Attacks the body by tables: each row is refused for the named reason, and passes with one change.

mod accepted;
mod edited;
mod fields;
mod groups;
mod media;
mod oracle;
mod properties;
mod reach;
mod reasons;
mod ungranted;

use platform_core::{
    capability::{Capabilities, Capability},
    grant::UngrantedTools,
    route::Route,
};

use super::{check, sizes::Count};
use crate::policy::{Label, Policy, Reason, Rejection};

/// Returns the policy of a run without capabilities, with one model and one user.
fn policy() -> Policy {
    Policy {
        models: Some(["m".into(), "m2".into()].into()),
        user: Some("\"acct-1\"".into()),
        anthropic_metadata: Some(r#"{"user_id":"acct-1"}"#.into()),
        ..Policy::default()
    }
}

fn granting(capability: Capability) -> Policy {
    Policy { granted: Capabilities::from_iter([capability]), ..policy() }
}

fn verdict(route: Route, body: &str, policy: &Policy) -> Result<(), Rejection> {
    check(route, body.as_bytes(), policy).map(drop).map_err(|rejections| rejections.first)
}

fn passes(route: Route, body: &str, policy: &Policy) {
    if let Err(rejection) = verdict(route, body, policy) {
        panic!("{body}\n{rejection}");
    }
}

fn plain(label: &Label) -> String {
    label.to_string().trim_matches('"').to_owned()
}

fn is_syntax(rejection: &Rejection) -> bool {
    matches!(rejection.reason, Reason::Syntax(_))
}

/// Returns a short word for a reason, for tables.
fn word(rejection: &Rejection) -> String {
    match &rejection.reason {
        Reason::Syntax(_) => "syntax".into(),
        Reason::Duplicate(_) => "duplicate".into(),
        Reason::Crowded => "crowded".into(),
        Reason::UnknownField(name) => format!("field {}", plain(name)),
        Reason::WrongType { what, .. } => format!("type {}", plain(what)),
        Reason::NotGranted { capability, .. } => capability.name().into(),
        Reason::ModelMissing | Reason::ModelMalformed | Reason::ModelNotGranted(_) => "model".into(),
        Reason::ToolNotGranted(name) => format!("tool {}", plain(name)),
        Reason::ToolUnnamed => "tool -".into(),
        Reason::NoRoute => "route".into(),
    }
}

/// Row of a table: a refused body, the reason, and the same body with one change, which passes. With the missing grant
/// the refused one passes too.
type Row<'a> = (&'a str, &'a str, &'a str);

/// Asserts that each row holds. The part of a body in a row follows `"model":"m"`.
fn assert_rows(route: Route, rows: &[Row<'_>]) {
    for (bad, why, good) in rows {
        let whole = |part: &str| format!(r#"{{"model":"m",{part}}}"#);
        let rejection = verdict(route, &whole(bad), &policy()).expect_err(bad);
        assert_eq!(word(&rejection), *why, "{bad}");
        passes(route, &whole(good), &policy());
        if let Reason::NotGranted { capability, .. } = rejection.reason {
            passes(route, &whole(bad), &granting(capability));
        }
    }
}

/// Asserts the same for parts of a user message's content, on chat.
fn assert_part_rows(rows: &[Row<'_>]) {
    let whole = |part: &str| format!(r#""messages":[{{"role":"user","content":[{part}]}}]"#);
    for (bad, why, good) in rows {
        assert_rows(Route::ChatCompletions, &[(&whole(bad), why, &whole(good))]);
    }
}
