//! Reads the two forms in which browsers report, and leaves of each text what is short and plain.

use runner_store::CspReport;
use serde::Deserialize;
use serde_json::Number;
use utoipa::ToSchema;

use super::MAX_BODY;
use crate::{body::parse, error::Error};

/// Most reports of a body that are read.
const MAX_REPORTS: usize = 10;
/// Longest text that is kept of each field.
const MAX_TEXT: usize = 160;

/// Form of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportForm {
    /// A single report, as `report-uri` sends it.
    Single,
    /// List of reports of any kind, as `report-to` sends it.
    List,
}

/// Report of a browser, as `report-uri` sends it (CSP Level 3, section 5.3).
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CspReport)]
#[serde(rename_all = "kebab-case")]
pub(super) struct SingleBody {
    #[schema(inline)]
    csp_report: SingleReport,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct SingleReport {
    document_uri: Option<String>,
    effective_directive: Option<String>,
    violated_directive: Option<String>,
    blocked_uri: Option<String>,
    source_file: Option<String>,
    #[schema(value_type = Option<f64>)]
    line_number: Option<Number>,
}

/// Reports of a browser, as `report-to` sends them (Reporting API, section 3.5.1).
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CspReportList)]
pub(super) struct ListBody(#[schema(inline)] Vec<ListItem>);

#[derive(Debug, Deserialize, ToSchema)]
struct ListItem {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    #[schema(inline)]
    body: ListReport,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ListReport {
    #[serde(rename = "documentURL")]
    document_url: Option<String>,
    effective_directive: Option<String>,
    #[serde(rename = "blockedURL")]
    blocked_url: Option<String>,
    source_file: Option<String>,
    #[schema(value_type = Option<f64>)]
    line_number: Option<Number>,
}

impl ReportForm {
    pub(super) const ALL: [Self; 2] = [Self::Single, Self::List];

    /// Returns the content type of the form.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::Single => "application/csp-report",
            Self::List => "application/reports+json",
        }
    }

    /// Returns the form of a body with this content type.
    pub(super) fn of(media_type: &[u8]) -> Option<Self> {
        let essence = media_type.split(|byte| *byte == b';').next()?.trim_ascii();
        Self::ALL.into_iter().find(|form| essence.eq_ignore_ascii_case(form.media_type().as_bytes()))
    }
}

/// Returns the reports in a body, with cleaned texts.
pub(super) fn read_reports(form: ReportForm, body: &[u8]) -> Result<Vec<CspReport>, Error> {
    match form {
        ReportForm::Single => parse(body, MAX_BODY).map(|body: SingleBody| {
            let SingleReport {
                document_uri,
                effective_directive,
                violated_directive,
                blocked_uri,
                source_file,
                line_number,
            } = body.csp_report;
            let directive = effective_directive.or(violated_directive);
            vec![clean(directive, blocked_uri, place(source_file, line_number), document_uri)]
        }),
        ReportForm::List => parse(body, MAX_BODY).map(|ListBody(items)| {
            let violations = items.into_iter().filter(|item| item.kind == "csp-violation").take(MAX_REPORTS);
            let report = |ListItem { body, .. }: ListItem| {
                let source = place(body.source_file, body.line_number);
                clean(body.effective_directive, body.blocked_url, source, body.document_url)
            };
            violations.map(report).collect()
        }),
    }
}

/// Returns the place in a file from which something was blocked.
fn place(file: Option<String>, line: Option<Number>) -> String {
    let file = file.map(|file| plain(&file)).unwrap_or_default();
    match line {
        Some(line) if !file.is_empty() => format!("{file}:{line}"),
        _ => file,
    }
}

fn clean(
    directive: Option<String>,
    blocked: Option<String>,
    source: String,
    page: Option<String>,
) -> CspReport {
    let text = |text: Option<String>| text.map_or_else(|| "unknown".to_owned(), |text| plain(&text));
    CspReport { directive: text(directive), blocked: text(blocked), source, page: text(page) }
}

/// Returns the beginning of a text in printable ASCII. What follows `?` or `#` may be a secret, and is left out.
fn plain(text: &str) -> String {
    let shown = text.split(['?', '#']).next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_graphic() { c } else { '_' };
    shown.chars().take(MAX_TEXT).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let expected = CspReport {
            directive: "script-src-elem".to_owned(),
            blocked: "inline".to_owned(),
            source: "http://127.0.0.1:4180/sandbox:7".to_owned(),
            page: "http://127.0.0.1:4180/sandbox".to_owned(),
        };
        let single = r#"{"csp-report":{"document-uri":"http://127.0.0.1:4180/sandbox?a=b","effective-directive":"script-src-elem","violated-directive":"script-src-elem","blocked-uri":"inline","source-file":"http://127.0.0.1:4180/sandbox","line-number":7,"original-policy":"x","disposition":"enforce"}}"#;
        assert_eq!(
            read_reports(ReportForm::Single, single.as_bytes()).unwrap(),
            std::slice::from_ref(&expected)
        );
        let list = r#"[{"type":"deprecation","body":{}},{"type":"csp-violation","age":1,"body":{"documentURL":"http://127.0.0.1:4180/sandbox","effectiveDirective":"script-src-elem","blockedURL":"inline","sourceFile":"http://127.0.0.1:4180/sandbox","lineNumber":7}}]"#;
        assert_eq!(read_reports(ReportForm::List, list.as_bytes()).unwrap(), [expected]);
        for wrong in ["", "{}", "[]", "{\"csp-report\":[]}"] {
            assert!(read_reports(ReportForm::Single, wrong.as_bytes()).is_err(), "{wrong}");
        }
        let many = format!("[{}]", vec![r#"{"type":"csp-violation","body":{}}"#; 50].join(","));
        assert_eq!(read_reports(ReportForm::List, many.as_bytes()).unwrap().len(), MAX_REPORTS);
    }

    #[test]
    fn no_text_of_a_report_reaches_a_terminal() {
        let hostile = "{\"csp-report\":{\"blocked-uri\":\"\\u001b]52;c;x\\u0007\\u202e\",\"document-uri\":\"http://h/signin#code=secret\",\"source-file\":\"é\\n\"}}";
        let report = read_reports(ReportForm::Single, hostile.as_bytes()).unwrap().remove(0);
        assert_eq!(report.blocked, "_]52;c;x__");
        assert_eq!((report.page.as_str(), report.source.as_str()), ("http://h/signin", "__"));
        let long = format!("{{\"csp-report\":{{\"blocked-uri\":\"{}\"}}}}", "x".repeat(5000));
        assert_eq!(read_reports(ReportForm::Single, long.as_bytes()).unwrap()[0].blocked.len(), MAX_TEXT);
    }

    #[test]
    fn other_types_are_no_reports() {
        assert_eq!(ReportForm::of(b"application/csp-report; charset=utf-8"), Some(ReportForm::Single));
        assert_eq!(ReportForm::of(b"Application/Reports+JSON"), Some(ReportForm::List));
        for other in [&b"application/json"[..], b"text/plain", b""] {
            assert_eq!(ReportForm::of(other), None);
        }
    }
}
