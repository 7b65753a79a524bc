//! Takes reports of browsers that the policy of the dashboard's pages has blocked something, and keeps a few.
//!
//! A browser sends them by itself, without a credential. So may any program that reaches the API. A report is a hint for
//! operators. Its texts are bounded and cleaned before they are stored.

mod report;

use std::time::Instant;

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, StatusCode,
        header::{CONTENT_TYPE, ORIGIN},
    },
};
use platform_runtime::report as log_report;
use runner_telemetry::metrics::CspReportFate;

use self::report::{ListBody, ReportForm, SingleBody, read_reports};
use crate::{
    body::read_bytes,
    context::ApiContext,
    error::Error,
    operation::{AnswerSpec, Operation},
    origins::Origins,
    own_page::FETCH_SITE,
    problem::Problem,
};

/// Largest body.
const MAX_BODY: usize = 32 << 10;

/// Stores what a browser reports.
pub(crate) async fn take(State(context): State<ApiContext>, request: Request) -> Result<StatusCode, Error> {
    check_sender(request.headers(), &context.origins)?;
    let form = request.headers().get(CONTENT_TYPE).and_then(|value| ReportForm::of(value.as_bytes()));
    let form = form.ok_or_else(other_type)?;
    if let Err(wait) = context.csp_reports.take(Instant::now()) {
        context.observer.metrics.csp_reported(CspReportFate::Dropped);
        return Err(Error::TooManyAttempts { wait });
    }
    let body = read_bytes(request, MAX_BODY).await?;
    let reports = read_reports(form, &body)?;
    let store = &context.opened().await?.store;
    for report in reports {
        let stored = store.record_csp_report(&report).await;
        let fate = if stored.is_ok() { CspReportFate::Kept } else { CspReportFate::Dropped };
        context.observer.metrics.csp_reported(fate);
        if let Err(error) = stored {
            tracing::warn!(error = log_report::chain(&error), "a browser's report was not stored");
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

fn other_type() -> Error {
    let expected = ReportForm::ALL.map(ReportForm::media_type).join(" or ");
    Error::Invalid(format!("the content type is not that of a report: {expected}"))
}

/// Refuses what a browser sends for another site's page. For a page without referrers, browsers send `null` as the
/// origin of its reports; what they say of the site decides then.
fn check_sender(headers: &HeaderMap, origins: &Origins) -> Result<(), Error> {
    let mut relations = headers.get_all(FETCH_SITE).iter().peekable();
    let is_own = match relations.peek() {
        Some(_) => relations.all(|site| site == "same-origin"),
        None => headers.get_all(ORIGIN).iter().all(|origin| origins.contain(origin)),
    };
    if is_own { Ok(()) } else { Err(Error::Site) }
}

pub(crate) fn take_operation() -> Operation {
    let taken = AnswerSpec::empty(StatusCode::NO_CONTENT, "The reports were taken.");
    Operation::new("reportCsp", "Takes reports of browsers about the dashboard's pages.", taken)
        .described(
            "Browsers send them by themselves, as `application/csp-report` or `application/reports+json`, if the policy \
             of a page blocks something. `sluice doctor` shows the last ones.",
        )
        .body_in::<SingleBody>(ReportForm::Single.media_type())
        .body_in::<ListBody>(ReportForm::List.media_type())
        .refuses([
            Problem::INVALID_REQUEST,
            Problem::TOO_LARGE,
            Problem::BODY_TIMEOUT,
            Problem::TOO_MANY_ATTEMPTS,
            Problem::STARTING,
        ])
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;
    use crate::origins::tests::origins;

    #[test]
    fn reports_of_other_sites_are_refused() {
        let own = origins("127.0.0.1:4180", "");
        for (sent, accepted) in [
            (&[][..], true),
            (&[("origin", "http://127.0.0.1:4180")], true),
            (&[("origin", "null"), ("sec-fetch-site", "same-origin")], true),
            (&[("origin", "null")], false),
            (&[("origin", "null"), ("sec-fetch-site", "cross-site")], false),
            (&[("origin", "http://127.0.0.1:3000")], false),
            (&[("origin", "http://127.0.0.1:3000"), ("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
            }
            assert_eq!(check_sender(&headers, &own).is_ok(), accepted, "{sent:?}");
        }
    }
}
