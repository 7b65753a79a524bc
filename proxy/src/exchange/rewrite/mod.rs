//! Decides which parts of a request are forwarded, and adds Sluicegate's own.

mod body;
mod decode;
mod headers;
mod receive;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request};
use platform_core::{
    id::CallId, record::Tokens, refusal::Refusal, route::Route, trace::Step, untrusted::JournalText,
};

pub(super) use self::body::Checked;
#[cfg(feature = "internals")]
pub(super) use self::body::check;
pub(super) use self::receive::{BodyLimit, discard, is_plain, read_plain_body};
use super::call::Exchange;
use crate::{
    budget::{Granted, QuotaError, ReservationRequest},
    pieces::Pieces,
    policy::{Identification, Label},
    refusal::{self, Refused},
    usage::{PromptEstimate, UsageEventFor, estimate},
};

/// Time after which a call may be tried again that came before the prices of the upstream.
const UNPRICED_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Builds the request for the upstream.
pub(super) fn build_request(
    exchange: &mut Exchange,
    from: &HeaderMap,
    body: &Bytes,
) -> Result<Request<Pieces>, Refused> {
    let run = Arc::clone(exchange.run());
    let route = exchange.route();
    let mut checked = body::check(route, body, &run.policy.load()).inspect_err(|rejections| {
        // The record has the first rule only.
        let rules = refusal::rules(rejections);
        tracing::debug!(call = %exchange.call_id(), run = %run.grant.run_id, rules, "a body was refused");
    })?;
    exchange.body_checked(&checked)?;
    if !checked.tools_left_out.is_empty() {
        let tools = Label::list(&checked.tools_left_out);
        tracing::debug!(call = %exchange.call_id(), run = %run.grant.run_id, tools, "hosted tools left out of a call");
    }
    if route.costs_tokens() {
        let output = checked.sizes.most_output(route, run.grant.limits.output_tokens);
        let input = estimate::most_input(body, checked.media, checked.letters);
        let price = exchange.context().snapshot.load().prices.of(&checked.model);
        let price = price.map(|price| price.of_service(checked.service));
        if let Some(builder) = &mut exchange.builder {
            builder.price = price;
        }
        let granted = exchange.reserve(&ReservationRequest {
            input,
            output,
            least_output: if route == Route::Compact { output } else { 1 },
            answers: checked.sizes.answers(route),
            price: price.map(|price| price.tariff().of_prompt(input)),
        })?;
        let asked = checked.sizes.output().unwrap_or(run.grant.limits.output_tokens);
        exchange.output_limit = Some(granted.output_each).filter(|granted| *granted < asked);
        if let Some(builder) = &mut exchange.builder {
            builder.prompt = PromptEstimate::of(body, checked.media);
        }
        checked.limit_output(route, granted.output_each);
    }
    let path = exchange.route().upstream_path().ok_or(Refusal::RouteUnknown)?;
    let mut request = Request::new(Pieces::from(checked.edits.pieces(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static(path);
    let snapshot = exchange.context().snapshot.load();
    let headers = headers(&run.identification, snapshot.authorization.as_ref(), from, exchange.call_id());
    *request.headers_mut() = headers.map_err(|_error| Refusal::BodyInvalid)?;
    Ok(request)
}

/// Returns the client's headers that pass, and Sluicegate's own.
pub(super) fn headers(
    identification: &Identification,
    authorization: Option<&HeaderValue>,
    from: &HeaderMap,
    call: CallId,
) -> Result<HeaderMap, http::Error> {
    let mut headers = headers::passed(from);
    identification.add_to(&mut headers, authorization, call)?;
    Ok(headers)
}

impl Exchange {
    /// Notes the model and the form of the answer that the body requests. Refuses the call if an operator has frozen
    /// its model, or if the balance of its account is too low for it.
    fn body_checked(&mut self, checked: &Checked<'_>) -> Result<(), Refused> {
        let reports_usage = matches!(self.route, Route::ChatCompletions | Route::Completions);
        if reports_usage && checked.stream && !checked.usage_asked {
            self.usage = UsageEventFor::Sluicegate;
        }
        self.note(|record| {
            record.model_asked = Some(JournalText::of(&checked.model));
            record.stream = checked.stream;
        });
        let bytes = self.builder.as_ref().map_or(0, |builder| builder.record.request_bytes);
        self.trace(|| Step::BodyRead {
            bytes,
            model: JournalText::of(&checked.model),
            stream: checked.stream,
        });
        // The model is set first, so that a freeze in between finds it.
        self.connection_state.set_model(&checked.model);
        self.check_freezes(Some(&checked.model))?;
        self.check_balance(&checked.model)
    }

    /// Reserves the amounts that the call may need, and returns them.
    fn reserve(&mut self, request: &ReservationRequest) -> Result<Granted, Refused> {
        let reservation = self.reservation.as_mut().ok_or(Refusal::RunClosed)?;
        let granted = match reservation.grow(request) {
            // The price may come yet: this refusal is not final.
            Err(QuotaError::Unpriced(_)) if self.context.snapshot.load().prices.shown().is_none() => {
                return Err(Refused::until(Refusal::UpstreamUnavailable, UNPRICED_RETRY_DELAY));
            }
            granted => granted?,
        };
        if let Some(builder) = &mut self.builder {
            builder.granted = granted.tokens;
            builder.answers = request.answers;
        }
        self.trace(|| {
            let Tokens { input: input_tokens, output: output_tokens, .. } = granted.tokens;
            let cost_nanodollars = request.price.map(|price| price.most(input_tokens, output_tokens));
            Step::Reserved { input_tokens, output_tokens, cost_nanodollars }
        });
        Ok(granted)
    }
}
