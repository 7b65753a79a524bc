//! Serves pages of the upstream's ledger, one at a time: a page may be large.

use http::Uri;
use platform_core::spend::{MAX_SPEND_PAGE, SpendPage};

use super::{
    Control,
    answer::Error,
    request::{names, number},
};
use crate::upstream::SpendQuery;

/// Parameters of a query. The upstream gets no other.
const PARAMETERS: [&str; 4] = ["from", "until", "page", "page_size"];
/// Last second of the year 9999, the last one that has a date of four digits.
const LAST_SECOND: u64 = 253_402_300_799;

/// Serves `GET /v1/upstream/spend?from=S&until=S[&page=N][&page_size=N]`.
pub(super) async fn spend(control: &Control, uri: &Uri) -> Result<SpendPage, Error> {
    let query = query(uri)?;
    let _one_at_a_time = control.reading_spend.lock().await;
    let authorization = control.snapshot.load().authorization.clone();
    Ok(control.upstream.spend(query, authorization.as_ref()).await?)
}

fn query(uri: &Uri) -> Result<SpendQuery, Error> {
    if let Some(unknown) = names(uri).find(|name| !PARAMETERS.contains(name)) {
        let known = PARAMETERS.join(", ");
        return Err(Error::Invalid(format!(
            "{unknown} is not a parameter of this request, only {known} are"
        )));
    }
    let second = |name: &str| match number(uri, name)? {
        Some(second) if second <= LAST_SECOND => Ok(second),
        _ => Err(Error::Invalid(format!("{name} is needed, in seconds since the epoch"))),
    };
    let from = second("from")?;
    let until = second("until")?;
    if until <= from {
        return Err(Error::Invalid(format!("until is {until}, and has to be after from, {from}")));
    }
    let page = number(uri, "page")?.unwrap_or(1);
    let page_size = number(uri, "page_size")?.unwrap_or(MAX_SPEND_PAGE.into());
    let page_size = u16::try_from(page_size).unwrap_or(u16::MAX);
    if page == 0 || !(1..=MAX_SPEND_PAGE).contains(&page_size) {
        return Err(Error::Invalid(format!("pages count from 1, and have 1 to {MAX_SPEND_PAGE} rows")));
    }
    Ok(SpendQuery { from, until, page, page_size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_numbers_or_refused() {
        let parse = |text: &str| query(&format!("/v1/upstream/spend?{text}").parse().unwrap());
        let good = parse("from=1&until=3&page=2&page_size=10").unwrap();
        assert_eq!(good, SpendQuery { from: 1, until: 3, page: 2, page_size: 10 });
        assert_eq!(parse("from=1&until=3").unwrap().page_size, MAX_SPEND_PAGE);
        for bad in [
            "",
            "from=1",
            "until=1",
            "from=3&until=3",
            "from=-1&until=3",
            "from=1&until=253402300800",
            "from=1&until=3&page=0",
            "from=1&until=3&page_size=0",
            "from=1&until=3&page_size=501",
            "from=1&until=3&end_user=x",
            "from=1&until=3&api_key=x",
            "from=1&until=3%20",
        ] {
            assert!(matches!(parse(bad), Err(Error::Invalid(_))), "{bad:?} was accepted");
        }
    }
}
