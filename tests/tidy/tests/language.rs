//! language tests words and forms: every figure of `ratchet.toml` holds, and falls with what it counts.

use std::collections::BTreeSet;

use tidy::{
    Offender,
    comments::{self, Kind},
    commits,
    figures::{FIGURES, Figure},
    file::SourceFile,
    habits, language, names,
    ratchet::Ratchet,
    sleeps,
    sources::Repository,
};

/// Compares figures with the ratchet and shows all that do not hold at once.
fn hold(keys: &[&str]) {
    let repository = Repository::open().expect("the repository is read");
    let ratchet = Ratchet::read(&repository).expect("the ratchet is read");
    // The newest offender is most likely in what was changed last, and the list that a failure shows is short.
    let changed = commits::changed(repository.root());
    let judge = |key: &&str| {
        let figure = Figure::named(key).expect("the figure is defined");
        let mut offenders = figure.offenders(&repository).expect("every file parses");
        offenders.sort_by_key(|offender| !changed.contains(&offender.path));
        ratchet.fault(key, &offenders).map(|error| format!("{error}\nThe rule: {}.", figure.rule))
    };
    let broken: Vec<String> = keys.iter().filter_map(judge).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

#[test]
fn retired_words_do_not_return() {
    hold(&["retired_words_shipped", "retired_words_tools", "retired_words_documents", "retired_words_code"]);
}

#[test]
fn heavy_phrases_become_fewer() {
    hold(&["heavy_phrases_shipped", "heavy_phrases_tools"]);
}

#[test]
fn documentation_opens_with_verb_or_noun() {
    hold(&["doc_openings_shipped", "doc_openings_tools"]);
}

#[test]
fn module_sentences_stay_short() {
    hold(&["long_sentences_shipped", "long_sentences_tools"]);
}

#[test]
fn type_names_have_few_meanings() {
    hold(&["overused_type_names"]);
}

#[test]
fn test_names_stay_short() {
    hold(&["long_test_names"]);
}

#[test]
fn logged_errors_have_their_causes() {
    hold(&["bare_errors", "text_errors_shipped", "text_errors_tools"]);
}

#[test]
fn tuples_and_vague_constants_do_not_spread() {
    hold(&["vague_constants", "unnamed_durations", "paired_lets", "tuple_parameters"]);
}

#[test]
fn tests_wait_for_conditions() {
    hold(&["fixed_sleeps_shipped", "fixed_sleeps_tools", "fixed_sleeps_scripts"]);
}

#[test]
fn loops_of_files_do_not_spread() {
    hold(&["file_loops"]);
}

#[test]
fn commit_subjects_stay_short() {
    hold(&["long_commit_subjects"]);
}

#[test]
fn ratchet_holds_every_figure() {
    let repository = Repository::open().expect("the repository is read");
    let ratchet = Ratchet::read(&repository).expect("the ratchet is read");
    let figures: BTreeSet<String> = FIGURES.iter().map(|figure| figure.key.to_owned()).collect();
    assert_eq!(ratchet.keys(), figures, "figures in ratchet.toml, and those that are counted");
    assert!(
        !ratchet.base_commit().is_empty(),
        "ratchet.toml names the commit from which subjects are judged"
    );
}

#[test]
fn ratchet_fails_above_and_below() {
    let ratchet = Ratchet::parse("[figures]\nsome = 1\n".to_owned()).expect("this is TOML");
    let one = Offender { path: "a.rs".to_owned(), line: 3, what: "it".to_owned() };
    assert_eq!(ratchet.fault("some", std::slice::from_ref(&one)), None);
    let above = ratchet.fault("some", &[one.clone(), one]).expect("two are too many");
    assert!(above.contains("a.rs:3 it"), "{above}");
    let below = ratchet.fault("some", &[]).expect("none is fewer");
    assert!(below.contains("lower the figure in ratchet.toml to 0"), "{below}");
    assert_eq!(ratchet.with("some", 0), "[figures]\nsome = 0\n");
}

#[test]
fn comments_are_told_from_strings() {
    let source = "//! Whoever.\nfn f() { let _ = (\"// no\", '\"', b'\\'', r#\"\" // no\"#, 'a: &str); } // plain\n\
                  /// One.\n/// Two: https://x.\n#[doc = \"// no\"]\n/* a /* b */ c\n d */ struct S;\n";
    let found: Vec<_> =
        comments::lines(source).into_iter().map(|line| (line.number, line.kind, line.text)).collect();
    let expected = [
        (1, Kind::Module, "Whoever."),
        (2, Kind::Plain, "plain"),
        (3, Kind::Item, "One."),
        (4, Kind::Item, "Two: https://x."),
        (6, Kind::Plain, "a /* b */ c"),
        (7, Kind::Plain, "d "),
    ];
    assert_eq!(found, expected.map(|(line, kind, text)| (line, kind, text.to_owned())));
    assert_eq!(comments::documentation(source).len(), 2);
}

#[test]
fn language_rules_see_their_offenders() {
    let long = "word ".repeat(26);
    let source = format!(
        "//! Reads. {long}end.\n//! Short one, e.g. this.\n\n/// What it is, to nobody's surprise: this is none.\nstruct Nobody; // is nothing\n"
    );
    let file = SourceFile::new("proxy/src/sample.rs", &source);
    assert_eq!(language::long_sentences(&file).len(), 1);
    assert_eq!(language::bad_openings(&file).len(), 1);
    assert_eq!(language::retired_in_comments(&file).len(), 1);
    assert_eq!(language::heavy_in_comments(&file).len(), 1);
    assert_eq!(names::retired(&file).expect("it parses").len(), 1);
    assert_eq!(language::opening("Whatever comes"), None);
    assert_eq!(commits::too_long(&format!("abc\tfix(x): {}", "y".repeat(64))), None);
    assert!(commits::too_long(&format!("abc\tfix(x): {}", "y".repeat(65))).is_some());
}

#[test]
fn habit_rules_see_their_offenders() {
    let source = "
        const PAUSE: Duration = Duration::from_secs(1);
        const POLL_INTERVAL: Duration = Duration::from_secs(1);
        fn f((a, b): (u8, u8), c: &(u8, u8), unit: ()) { let (d, e): (u8, u8) = (a, b); let (g, h) = c; }
        fn logs() {
            tokio::select! { () = x => tracing::warn!(%error, \"bad\"), () = y => warn!(error = %cause, \"bad\") }
            tracing::error!(error = &error as &dyn Error, \"{}\", a % e);
        }
        struct Parts { read: Result<Vec<u8>, String> }
        #[cfg(test)]
        mod tests { fn read() -> Result<u8, String> { Ok(1) } const PATIENCE: Duration = SECOND; fn f(a: (u8, u8)) { let (a, b) = (1, 2); } }
    ";
    let file = SourceFile::new("proxy/src/sample.rs", source);
    let found = habits::find(&file).expect("it parses");
    let counts =
        [&found.vague_constants, &found.unnamed_durations, &found.paired_lets, &found.tuple_parameters];
    assert_eq!(counts.map(Vec::len), [1, 1, 1, 1]);
    assert_eq!(habits::bare_errors(&file).expect("it parses").len(), 2);
    assert_eq!(habits::text_errors(&file).expect("it parses").len(), 2);
}

#[test]
fn sleeps_of_tests_are_seen() {
    let source = "
        async fn waits() { sleep(SECOND).await; tokio::select! { () = time::sleep(SECOND) => {} } }
        impl A { #[cfg(test)] fn waits(&self) { thread::sleep(SECOND); } }
        #[cfg(test)]
        mod tests {
            #[tokio::test] async fn f() { tokio::join!(a, async { sleep_until(b).await; clock.sleep(b).await }); clock.sleep(c); }
        }
    ";
    let seen = |path| {
        let found = sleeps::find(&SourceFile::new(path, source)).expect("it parses");
        found.into_iter().map(|offender| offender.line).collect::<Vec<_>>()
    };
    assert_eq!(seen("proxy/src/sample.rs"), [3, 6], "the product may sleep");
    assert_eq!(seen("bench/src/sample.rs"), [3, 6]);
    for path in [
        "proxy/src/tests.rs",
        "bench/tests/sample.rs",
        "tests/processes/sample.rs",
        "tests/harness/sample.rs",
    ] {
        assert_eq!(seen(path), [2, 2, 3, 6], "{path}");
    }
    assert_eq!(seen("tests/harness/pace.rs"), [0; 0], "it names them");
    let script = SourceFile::new("tests/sdk/a.mjs", "await idle(page);\nawait page.waitForTimeout(250);\n");
    let lines: Vec<_> = sleeps::find_in_script(&script).into_iter().map(|offender| offender.line).collect();
    assert_eq!(lines, [2]);
}

#[test]
fn name_rules_see_types_and_tests() {
    let source = "
        struct Place; mod a { enum Place {} } mod b { type Place = u8; } struct Error;
        #[cfg(test)] mod tests { struct Place; #[test] fn short() {} }
        #[tokio::test(flavor = \"current_thread\")] async fn waits() { let f: fn() = x; }
        proptest! { #[test] fn holds(a in 0..9u8) {} }
        crate::on_both!(listed, other; restored: single);
        fn listed(place: Place) { helper!(helper, listed); }
        fn single(place: Place) {}
        fn helper() {}
    ";
    let file = SourceFile::new("proxy/src/sample.rs", source);
    let types = names::types([&file].into_iter()).expect("it parses");
    assert_eq!(types["Place"].len(), 3);
    assert_eq!(names::overused(&types).len(), 1);
    let tests: Vec<_> = names::tests(&file).expect("it parses").into_iter().map(|test| test.what).collect();
    assert_eq!(tests, ["short", "waits", "holds", "listed", "single"]);
}
