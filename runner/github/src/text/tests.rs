//! Composes pull requests from hostile texts. Each vector is seen by the detector before it is disarmed.

use platform_core::id::{AccountId, AgentId, ExternalId, ProposalId, RunId};
use proptest::{collection::vec, prelude::*, sample::select};
use runner_git::{SecretScan, TextKind, disarm};

use super::{
    AgentText, CommentText, HoldsSecret, MAX_BODY, MAX_SOURCE, MAX_TITLE, ProposalText, PullRequestText,
    RunFooter, markdown,
    triggers::{
        Trigger::{
            self, Alert, Closing, Command, Footnote, FrontMatter, Html, Image, Mention, Reference,
            SkippedChecks, Unseen,
        },
        triggers,
    },
};

#[test]
fn a_proposal_says_what_it_does_and_no_more() {
    let [principal, id] = ["ann@`@octocat", "ap-00000000000000a1"];
    let (principal, id) = (ExternalId::parse(principal).unwrap(), ProposalId::parse(id).unwrap());
    let proposal = ProposalText {
        kind: "skill",
        name: "greet",
        path: "skills/greet/SKILL.md",
        principal: &principal,
        id: &id,
        text: "# Greet\n\nAsk @octocat, fixes #1.\n```\n",
    };
    let text = PullRequestText::of_proposal(&proposal, &SecretScan::default()).unwrap();
    assert_eq!(text.title(), "Add skill greet");
    assert!(triggers(text.body()).is_empty(), "{}", text.body());
    for words in ["> ", "`skills/greet/SKILL.md`", "`ap-00000000000000a1`", "`sluice reload`"] {
        assert!(text.body().contains(words), "{words}: {}", text.body());
    }
    let token = ["gh", "p_"].concat() + &"a1B2".repeat(9);
    let refused =
        PullRequestText::of_proposal(&ProposalText { text: &token, ..proposal }, &SecretScan::default());
    assert!(refused.is_err());
}

/// Texts that have an effect at GitHub, and the effect.
const VECTORS: [(Trigger, &str); 67] = [
    (Mention, "@octocat"),
    (Mention, "ask @octo-org/team please"),
    (Mention, "(@octocat)"),
    (Mention, "**@octocat**"),
    (Mention, "\\@octocat"),
    (Mention, "&#64;octocat"),
    (Mention, "&#x40;octocat"),
    (Mention, "&commat;octocat"),
    (Mention, "@&#111;ctocat"),
    (Mention, "@\u{200b}octocat"),
    (Mention, "_@octocat_"),
    (Mention, "é@octocat"),
    (Mention, "`code`@octocat"),
    (Mention, "me@example.org@octocat"),
    (Mention, "```\n@octocat\n```"),
    (Mention, "[@octocat](https://example.org)"),
    (Closing, "fixes #1"),
    (Closing, "Fixes: #1"),
    (Closing, "FIX #1"),
    (Closing, "closes octo/hello#1"),
    (Closing, "Closed octo/hello#1"),
    (Closing, "resolves https://github.com/o/r/issues/1"),
    (Closing, "RESOLVED: HTTPS://GITHUB.COM/o/r/ISSUES/1"),
    (Closing, "resolve https://github.com/o/r/pull/1"),
    (Closing, "closes GH-1"),
    (Closing, "close \\#1"),
    (Closing, "fix &#35;1"),
    (Closing, "fix #&#49;"),
    (Closing, "fi\u{ad}xes #1"),
    (Closing, "fixes\n#1"),
    (Closing, "fixes `#1`"),
    (Reference, "#1"),
    (Reference, "see #1, #2"),
    (Reference, "octo/hello#1"),
    (Reference, "octo#1"),
    (Reference, "gh-1"),
    (Reference, "GH\\-1"),
    (Reference, "https://github.com/o/r/issues/1#issuecomment-1"),
    (Reference, "https://github.com/o/r/issues//1"),
    (Reference, "https://github.com/o/r/issues\\/1"),
    (Reference, "[here](https://github.com/o/r/discussions/1)"),
    (Reference, "http://www.github.com/o/r/pulls/%31"),
    (Html, "<!-- hidden -->"),
    (Html, "<img src=https://example.org/pixel>"),
    (Html, "<details open><summary>x</summary>"),
    (Html, "</details>"),
    (Html, "<?php ?>"),
    (Html, "\\\\<b>"),
    (Html, "<https://example.org>"),
    (Image, "![pixel](https://example.org/p.png)"),
    (Image, "[![badge](https://example.org/b.svg)](https://example.org)"),
    (Command, "/merge"),
    (Command, "text\n  /lgtm cancel"),
    (Command, "text\r/approve"),
    (Command, "> /hold"),
    (Unseen, "a\u{202e}b"),
    (Unseen, "a\u{200b}b\u{feff}"),
    (Unseen, "\u{1b}[2Ja\u{7}"),
    (FrontMatter, "---\ntitle: x\n---\ntext"),
    (FrontMatter, "\n+++\nx = 1\n+++\n"),
    (SkippedChecks, "docs [skip ci]"),
    (SkippedChecks, "docs [CI Skip]"),
    (SkippedChecks, "[skip ci\\]"),
    (Reference, "https://github.com/o/r/issues/\\%31"),
    (Alert, "[!CAUTION]\nmerge this now"),
    (Footnote, "text[^1]\n\n[^1]: below everything"),
    (Footnote, "[^note]: below everything"),
];

/// Pieces that make effects together.
const PIECES: [&str; 50] = [
    "@",
    "#",
    "GH",
    "gh",
    "-",
    "1",
    "42",
    "a",
    "octo",
    "/",
    "\\",
    "&",
    "&#64;",
    "&#35;",
    "&commat;",
    ";",
    "<",
    "!",
    "[",
    "]",
    "(",
    ")",
    "`",
    "```",
    " ",
    "\n",
    "\r",
    "\u{200b}",
    "\u{202e}",
    "\u{ad}",
    "issues",
    "/issues/",
    "pull",
    "^",
    "[^1]:",
    "fixes",
    "Closes:",
    "skip ci",
    "[skip ci]",
    "---",
    "+++",
    "<!--",
    "%31",
    "\u{ff20}",
    "\u{1b}[1m",
    ">",
    "_",
    "é",
    "merge",
    "https://github.com/o/r",
];

fn compose(file: Option<&str>, answer: &str) -> PullRequestText {
    let run = RunId::parse("run-1").unwrap();
    let agent = AgentId::parse("sandbox:agent").unwrap();
    let account = AccountId::parse("team@octo.org").unwrap();
    let footer = RunFooter { run: &run, agent: &agent, account: Some(&account) };
    PullRequestText::compose(AgentText { file, answer }, &footer, &SecretScan::default()).unwrap()
}

/// Asserts that all of a text above the relay's own words is a quotation.
fn assert_quoted(body: &str) {
    let (quoted, _) = body.split_once("\n\n---\n\n").expect("the footer is there");
    assert!(quoted.lines().all(|line| line.starts_with('>')), "{body}");
    assert_eq!(body.matches("\n\n").count(), 2, "no line of the agent ends the quotation: {body}");
}

#[test]
fn hostile_texts_have_no_effect() {
    for (trigger, text) in VECTORS {
        assert!(triggers(text).contains(&trigger), "the control: {text:?} has {:?}", triggers(text));
        let disarmed = markdown(text);
        assert_eq!(triggers(&disarmed), [].into(), "{text:?} became {disarmed:?}");
        for composed in
            [compose(Some(text), ""), compose(None, text), compose(Some(&format!("T\n\n{text}")), "")]
        {
            assert_eq!(triggers(composed.title()), [].into(), "{text:?} became {:?}", composed.title());
            assert_eq!(triggers(composed.body()), [].into(), "{text:?} became {:?}", composed.body());
        }
    }
}

#[test]
fn harmless_texts_stay_as_they_are() {
    for text in [
        "Plain words, `code`, **bold** and [a link](https://example.org/a/b?c=d#e).",
        "- [x] done\n- [ ] open\n\n1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "```rust\nfn main() { let a = b && c; if a < b { x #y } }\n```",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8, 100 % of a/b and \u{e9}\u{4e2d}",
        "# Heading\n\nA & B; a@ b; high-1; /usr is fine in a line, and so is fixes the bug",
    ] {
        assert_eq!(markdown(text), text);
    }
}

#[test]
fn words_stay_readable() {
    for (text, expected) in [
        ("@octocat fixes #12", "@ octocat fixes # 12"),
        ("#12 is done", "\\# 12 is done"),
        ("/merge", "\\/merge"),
        ("<b>bold</b>", "< b>bold< /b>"),
        ("![a](b)", "! [a](b)"),
        ("GH-3 o/r#4", "GH- 3 o/r# 4"),
        ("https://github.com/o/r/issues/5", "https://github.com/o/r/issues/ 5"),
    ] {
        assert_eq!(markdown(text), expected);
    }
}

#[test]
fn the_first_line_of_the_file_is_the_title() {
    let text = compose(Some("# Add   a parser\r\n\r\nIt reads.\r\n\r\nAll of it.\r\n"), "answer");
    assert_eq!(text.title(), "Add a parser");
    let quoted = "> It reads.\n>\n> All of it.";
    let footer = "Made by agent `sandbox:agent` in run `run-1` for account `team@ octo.org`. The quoted text is the agent's.";
    assert_eq!(text.body(), format!("{quoted}\n\n---\n\n{footer}"));
}

#[test]
fn an_answer_stands_in_for_a_file() {
    for file in [None, Some(""), Some(" \n")] {
        let text = compose(file, "\nDid it.\nAll of it.");
        assert_eq!(text.title(), "Did it.");
        assert!(text.body().starts_with("> Did it.\n> All of it.\n\n---"), "{}", text.body());
    }
    let empty = compose(None, "");
    assert_eq!(empty.title(), "Changes of run run-1");
    assert!(empty.body().starts_with("The agent wrote no description.\n\n---"), "{}", empty.body());
    assert_eq!(compose(Some("---\nx: 1\n---\ntext"), "").title(), "Changes of run run-1");
}

#[test]
fn long_texts_are_cut() {
    let long_title = compose(Some(&"wörd ".repeat(100)), "");
    assert_eq!(long_title.title().chars().count(), MAX_TITLE);
    assert!(long_title.title().ends_with('…'));
    for text in
        ["x\n".repeat(MAX_SOURCE), "é".repeat(MAX_SOURCE), "@a".repeat(MAX_SOURCE), "\n@a".repeat(21_000)]
    {
        let body = compose(Some(&format!("T\n{text}")), "").body().to_owned();
        assert!(body.len() <= MAX_BODY && body.len() > MAX_BODY / 2, "{}", body.len());
        assert!(body.contains("the rest is cut off") && body.ends_with("The quoted text is the agent's."));
        assert!(body.lines().next().is_some_and(|line| line.starts_with("> ")));
    }
}

#[test]
fn an_open_code_block_ends_with_the_quotation() {
    let body = compose(Some("T\n```\nnever closed\n\n- a\n  ~~~~"), "").body().to_owned();
    assert_quoted(&body);
}

#[test]
fn a_text_with_a_secret_is_refused() {
    let run = RunId::parse("run-1").unwrap();
    let agent = AgentId::parse("sandbox:agent").unwrap();
    let footer = RunFooter { run: &run, agent: &agent, account: None };
    let scan = SecretScan::default();
    let token = ["gh", "p_"].concat() + &"a1B2".repeat(9);
    let held = HoldsSecret { secret: "GitHub token" };
    let split = [&token[..9], &token[9..]].join("\u{200b}");
    let styled = [&token[..9], &token[9..]].join("\u{1b}[0m");
    for text in [format!("{token}\n\nText"), format!("T\n\nUse {token}."), format!("T\n\n{split}"), styled] {
        let composed = |file, answer| PullRequestText::compose(AgentText { file, answer }, &footer, &scan);
        assert_eq!(composed(Some(&text), ""), Err(held), "{text:?}");
        assert_eq!(composed(None, &text), Err(held), "{text:?}");
        assert!(composed(Some("T"), &text).is_ok(), "control: the answer is not used");
        assert_eq!(CommentText::compose(&text, &footer, &scan), Err(held), "{text:?}");
    }
    let short = &token[..20];
    assert!(CommentText::compose(short, &footer, &scan).is_ok(), "control");
    let without = PullRequestText::without(held, &footer);
    assert_eq!(without.title(), "Changes of run run-1");
    assert!(without.body().starts_with("The agent's text is left out: the text holds a GitHub token."));
}

#[test]
fn messages_of_commits_have_no_effect() {
    let acts = |trigger: &Trigger| matches!(trigger, Mention | Closing | Reference | SkippedChecks | Unseen);
    for (trigger, text) in VECTORS.into_iter().filter(|(trigger, _)| acts(trigger)) {
        let left = triggers(&disarm(text, TextKind::Commit));
        let left: Vec<_> = left.into_iter().filter(acts).collect();
        // An entity is not a character here, and a name behind an address of mail is not a mention.
        assert!(
            left.is_empty() || text.contains("&") || text.starts_with("me@"),
            "{trigger:?} {text:?} {left:?}"
        );
    }
    let trailers = "Add a parser (<b>, ![x], /usr)\n\nCo-authored-by: A <a.b@example.org>\n";
    assert_eq!(disarm(trailers, TextKind::Commit), trailers, "trailers stay");
    for (text, expected) in [
        ("Fix #1, thanks @everyone", "Fix # 1, thanks @ everyone"),
        ("docs [skip ci]\n\n\nskip-checks: true", "docs [ skip ci]\n\n\nskip- checks: true"),
        ("#12 is done", "# 12 is done"),
        ("mail me@example.org@octocat", "mail me@example.org@octocat"),
    ] {
        assert_eq!(disarm(text, TextKind::Commit), expected);
    }
}

proptest! {
    #[test]
    fn no_mixture_has_an_effect(pieces in vec(select(&PIECES[..]), 0..24)) {
        let text = pieces.concat();
        let disarmed = markdown(&text);
        prop_assert_eq!(triggers(&disarmed), [].into(), "{:?} became {:?}", text, disarmed);
        prop_assert_eq!(&markdown(&disarmed), &disarmed, "a second time");
        let composed = compose(Some(&text), &text);
        prop_assert_eq!(triggers(composed.body()), [].into());
        prop_assert_eq!(triggers(composed.title()), [].into());
        prop_assert!(composed.title().chars().count() <= MAX_TITLE && !composed.title().contains('\n'));
        prop_assert!(!composed.title().trim().is_empty());
    }

    #[test]
    fn any_text_is_composed_within_bounds(text in any::<String>(), answer in any::<String>()) {
        let composed = compose(Some(&text), &answer);
        prop_assert!(composed.body().len() <= MAX_BODY);
        prop_assert_eq!(triggers(composed.body()), [].into());
    }
}
