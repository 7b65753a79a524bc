//! Tests every way to tamper with a journal, and the fault that each yields.

use super::*;

/// Returns a journal of `count` records of the calls c1, c2, …. Journals with different `salt` differ in every line.
fn journal(count: u64, salt: &str) -> Vec<String> {
    let mut prev = hash_text(&NO_LINE);
    (1..=count)
        .map(|seq| {
            let line = format!(r#"{{"seq":{seq},"x":"{salt}","litellm_call_id":"c{seq}","prev":"{prev}"}}"#);
            prev = hash(line.as_bytes());
            line
        })
        .collect()
}

fn cursor(lines: &[String], seq: usize) -> HeldCursor {
    let cursor = Cursor { journal: "j".to_owned(), seq: seq as u64, hash: hash(lines[seq - 1].as_bytes()) };
    HeldCursor { who: "consumer billing".to_owned(), cursor }
}

fn verify(lines: &[String], held: Vec<HeldCursor>) -> Verification {
    let mut verifier = Verifier::new("j".to_owned(), held);
    lines.iter().for_each(|line| verifier.line(line.as_bytes()));
    verifier.finish(None)
}

#[track_caller]
fn assert_fault(lines: &[String], held: Vec<HeldCursor>, (kind, seq): (FaultKind, u64), words: &str) {
    let result = verify(lines, held);
    let fault = result.fault.unwrap();
    assert_eq!((fault.kind, fault.seq), (kind, seq), "{}", fault.message);
    assert!(fault.message.contains(words), "{}", fault.message);
    assert_eq!(result.cursor, None);
}

#[test]
fn an_untouched_journal_is_whole() {
    let lines = journal(6, "");
    let result = verify(&lines, vec![cursor(&lines, 3)]);
    assert_eq!((&result.fault, result.records, result.first), (&None, 6, Some(1)));
    assert_eq!(result.cursor, Some(cursor(&lines, 6).cursor));
    assert_eq!(result.agrees, ["consumer billing (record 3)"]);
    let nothing = verify(&[], Vec::new());
    assert_eq!((nothing.fault, nothing.cursor.unwrap().seq), (None, 0));
}

#[test]
fn a_journal_whose_beginning_was_let_go_is_whole() {
    let lines = journal(6, "");
    let rest = &lines[3..];
    assert_eq!(verify(rest, vec![cursor(&lines, 3)]).fault, None, "the cursor is just before");
    assert_eq!(verify(rest, vec![cursor(&lines, 5)]).fault, None);
    assert_fault(rest, vec![cursor(&lines, 2)], (FaultKind::Unknown, 2), "begins with record 4 (call c4)");
    let other = HeldCursor {
        cursor: Cursor { hash: hash_text(&NO_LINE), ..cursor(&lines, 3).cursor },
        ..cursor(&lines, 3)
    };
    assert_fault(rest, vec![other], (FaultKind::Rewritten, 4), "does not follow the record 3");
}

#[test]
fn a_changed_byte_names_its_record() {
    for seq in 1..=4_u64 {
        let mut lines = journal(6, "");
        let at = usize::try_from(seq).unwrap() - 1;
        lines[at] = lines[at].replace(r#""x":"""#, r#""x":"!""#);
        assert_fault(
            &lines,
            Vec::new(),
            (FaultKind::Changed, seq),
            &format!("record {seq} (call c{seq}) was changed"),
        );
    }
    let mut lines = journal(6, "");
    lines[4] = lines[4].replace(r#""x":"""#, r#""x":"!""#);
    assert_fault(
        &lines,
        Vec::new(),
        (FaultKind::Changed, 5),
        "record 5 (call c5) or record 6 (call c6) was changed",
    );
    let mut lines = journal(6, "");
    let held = cursor(&lines, 6);
    lines[5] = lines[5].replace(r#""x":"""#, r#""x":"!""#);
    assert_eq!(verify(&lines, Vec::new()).fault, None, "nothing in the journal knows its last record");
    assert_fault(
        &lines,
        vec![held],
        (FaultKind::Rewritten, 6),
        "record 6 (call c6) is not the one that consumer billing knows",
    );
}

#[test]
fn a_changed_hash_is_told_from_a_changed_record() {
    let mut lines = journal(6, "");
    let (from, to) = (hash(lines[1].as_bytes()), hash(b"other"));
    lines[2] = lines[2].replace(&from, &to);
    assert_fault(&lines, Vec::new(), (FaultKind::Changed, 3), "record 3 (call c3) was changed: neither");
}

#[test]
fn missing_doubled_and_moved_lines_are_named() {
    let mut lines = journal(6, "");
    lines.remove(2);
    assert_fault(
        &lines,
        Vec::new(),
        (FaultKind::Missing, 3),
        "record 3 is missing: after record 2 (call c2) comes record 4 (call c4)",
    );
    lines.remove(2);
    assert_fault(&lines, Vec::new(), (FaultKind::Missing, 3), "records 3 to 4 are missing");

    let mut lines = journal(6, "");
    lines.swap(2, 3);
    assert_fault(
        &lines,
        Vec::new(),
        (FaultKind::OutOfOrder, 3),
        "record 3 (call c3) stands after record 4 (call c4)",
    );

    let mut lines = journal(6, "");
    lines.insert(3, lines[2].clone());
    assert_fault(&lines, Vec::new(), (FaultKind::Doubled, 3), "record 3 (call c3) is there twice");

    let mut lines = journal(6, "");
    lines[2] = "{\"seq\":3}".to_owned();
    assert_fault(
        &lines,
        Vec::new(),
        (FaultKind::Broken, 3),
        "the line after record 2 (call c2) is not a record",
    );
}

#[test]
fn a_known_cursor_reveals_a_cut_or_new_journal() {
    let lines = journal(6, "");
    assert_eq!(verify(&lines[..4], vec![cursor(&lines, 4)]).fault, None);
    assert_fault(
        &lines[..4],
        vec![cursor(&lines, 6)],
        (FaultKind::Truncated, 5),
        "records 5 to 6 are missing at the end",
    );
    assert_fault(&[], vec![cursor(&lines, 1)], (FaultKind::Truncated, 1), "record 1 is missing at the end");
    let rewritten = journal(6, "rewritten");
    assert_eq!(verify(&rewritten, Vec::new()).fault, None, "by itself it is a good journal");
    assert_fault(&rewritten, vec![cursor(&lines, 3)], (FaultKind::Rewritten, 3), "the journal was rewritten");
    let mut verifier = Verifier::new("j".to_owned(), Vec::new());
    lines[..4].iter().for_each(|line| verifier.line(line.as_bytes()));
    assert_eq!(verifier.finish(Some(6)).fault.unwrap().kind, FaultKind::Truncated, "the proxy knows its end");
}

#[test]
fn a_foreign_cursor_is_not_compared() {
    let lines = journal(3, "");
    let held = cursor(&lines, 2);
    let other = HeldCursor { cursor: Cursor { journal: "other".to_owned(), ..held.cursor.clone() }, ..held };
    assert_fault(&lines, vec![other], (FaultKind::Unknown, 2), "consumer billing knows journal other");
}

/// A fault names the loss that the proxy reported, wherever the records were missing.
#[test]
fn records_known_as_lost_are_explained() {
    let with_loss_report = |mut lines: Vec<String>, gone: std::ops::Range<usize>, (from, to): (u64, u64)| {
        let lost = format!(r#""lost":[{{"from":{from},"to":{to}}}],"prev""#);
        // No later record holds the hash of the last one.
        let last = lines.pop().unwrap().replacen("\"prev\"", &lost, 1);
        lines.drain(gone);
        lines.push(last);
        lines
    };
    let explanation = "The proxy noticed when it started that";
    assert_fault(
        &with_loss_report(journal(6, ""), 2..4, (3, 4)),
        Vec::new(),
        (FaultKind::Missing, 3),
        explanation,
    );
    assert_fault(
        &with_loss_report(journal(6, ""), 0..3, (1, 3)),
        Vec::new(),
        (FaultKind::Missing, 1),
        explanation,
    );
    let all = journal(6, "");
    assert_fault(
        &with_loss_report(all.clone(), 0..5, (1, 5)),
        vec![cursor(&all, 2)],
        (FaultKind::Unknown, 2),
        explanation,
    );
    assert_eq!(
        verify(&with_loss_report(journal(6, ""), 0..0, (2, 3)), Vec::new()).fault,
        None,
        "they are back"
    );
    let other = verify(&with_loss_report(journal(6, ""), 1..2, (4, 5)), Vec::new()).fault.unwrap();
    assert!(!other.message.contains(explanation), "{}", other.message);
}
