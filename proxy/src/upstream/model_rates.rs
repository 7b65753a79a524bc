//! Reads the rates of a deployment, the members of its `model_info` that LiteLLM prices tokens by. Pure.
//!
//! A name says the kind of token, and at its end which calls have the rate: `input_cost_per_token`,
//! `input_cost_per_token_above_200k_tokens`, `input_cost_per_token_priority`. Rates of cheaper services are left out.
//! Anthropic's regions and its fast mode multiply all rates: `provider_specific_entry` has `{ "us": 1.1, "fast": 2 }`.

use std::collections::BTreeMap;

use platform_core::{
    json::{Raw, read_member},
    money::NanoDollars,
    tariff::{LongPromptPrice, PartialPrice, Tariff},
};
use serde::Deserialize;

const INPUT: &str = "input_cost_per_token";
const OUTPUT: &str = "output_cost_per_token";
/// Ends of names of rates for services that cost more.
const PREMIUM: [&str; 2] = ["_priority", "_ultrafast"];

/// Member that has multipliers, among much else.
const MULTIPLIERS: &str = "provider_specific_entry";
/// Multiplier of calls with `"speed": "fast"`. Those of regions have a name of two letters, as `inference_geo` has.
const FAST: &str = "fast";
/// Largest multiplier that is one, in thousandths. LiteLLM 1.106.2 has 1.1 and 2.
const MAX_PERMILLE: u64 = 100_000;

/// Members of a deployment's `model_info`.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct ModelRates<'a> {
    #[serde(borrow)]
    members: BTreeMap<String, Raw<'a>>,
}

/// Returns the place of a kind of token in a price.
type Kind = fn(&mut PartialPrice) -> &mut Option<NanoDollars>;

/// Kinds of tokens, by the beginnings of names. No entry is the beginning of a later one.
const KINDS: [(&str, Kind); 6] = [
    ("cache_creation_input_token_cost_above_1hr", |price| &mut price.cache_written_1h),
    ("cache_creation_input_token_cost", |price| &mut price.cache_written),
    ("cache_read_input_token_cost", |price| &mut price.cached),
    (INPUT, |price| &mut price.input),
    (OUTPUT, |price| &mut price.output),
    ("output_cost_per_reasoning_token", |price| &mut price.output),
];

/// Calls that have a rate.
enum Calls {
    Usual,
    /// Those with more tokens in their prompt.
    LongPrompt(u64),
    /// Those of a service that costs more, with a prompt of any length.
    Premium,
}

/// Rates that have been read.
#[derive(Default)]
struct Rates {
    usual: PartialPrice,
    above: Option<u64>,
    long_prompt: PartialPrice,
    premium: PartialPrice,
}

impl ModelRates<'_> {
    /// Returns the prices of the deployment, if it has them and all can be read. Of several for long prompts the dearest
    /// counts, from the lowest bound on.
    pub(super) fn tariff(&self) -> Option<Tariff> {
        let mut rates = Rates::default();
        for (name, value) in &self.members {
            if let Some((kind, calls)) = classify(name)
                && value.get() != "null"
            {
                let rate = NanoDollars::parse_price_of_million(value.get().trim_matches('"'))?;
                if rate > NanoDollars(0) || self.means_zero(name) {
                    rates.note(kind, &calls, rate);
                }
            }
        }
        let Rates { usual, above, long_prompt, premium } = rates;
        let usual = usual.price()?;
        let long_prompt = above.zip(long_prompt.or(&usual));
        let long_prompt = long_prompt.map(|(above, price)| LongPromptPrice { above, price });
        let premium = premium.or(&usual);
        let multiplied = self.permille().map(|permille| {
            // One of both may be asked for with a prompt of any length.
            let dearest = long_prompt.map_or(usual, |long| usual.or_dearer(&long.price));
            let dearest = premium.map_or(dearest, |premium| dearest.or_dearer(&premium));
            dearest.times_permille(permille)
        });
        Some(Tariff { usual, long_prompt, premium: multiplied.or(premium) })
    }

    /// Returns what the dearest call with a region and a speed costs, in thousandths of the usual; `None` if neither has
    /// a multiplier above 1.
    fn permille(&self) -> Option<u64> {
        let members: BTreeMap<String, Raw<'_>> = read_member(self.members.get(MULTIPLIERS).copied())?;
        let permille = |value: &Raw<'_>| {
            // Any decimal number; dollars have nine decimals.
            let NanoDollars(billionths) = NanoDollars::parse_dollars(value.get())?;
            Some(billionths.div_ceil(1_000_000)).filter(|permille| (1000..=MAX_PERMILLE).contains(permille))
        };
        let fast = members.get(FAST).and_then(permille).unwrap_or(1000);
        let regions = members.iter().filter(|(name, _)| name.len() == 2);
        let region = regions.filter_map(|(_, value)| permille(value)).max().unwrap_or(1000);
        Some((fast * region).div_ceil(1000)).filter(|permille| *permille > 1000)
    }

    /// Returns whether a zero of this name is a price.
    fn means_zero(&self, name: &str) -> bool {
        let member = |name| self.members.get(name).copied();
        let overrides: Vec<String> = read_member(member("pricing_overrides")).unwrap_or_default();
        let mode: Option<String> = read_member(member("mode"));
        overrides.iter().any(|told| told == name) || (name == OUTPUT && mode.as_deref() == Some("embedding"))
    }
}

impl Rates {
    /// Notes a rate. The dearer one counts if there are two.
    fn note(&mut self, kind: Kind, calls: &Calls, rate: NanoDollars) {
        let price = match calls {
            Calls::Usual => &mut self.usual,
            Calls::LongPrompt(above) => {
                self.above = Some(self.above.map_or(*above, |known| known.min(*above)));
                &mut self.long_prompt
            }
            Calls::Premium => &mut self.premium,
        };
        let known = kind(price);
        *known = Some(rate).max(*known);
    }
}

/// Returns what the name of a rate says; `None` if it is another name, or of a rate that is left out.
fn classify(name: &str) -> Option<(Kind, Calls)> {
    let (kind, end) = KINDS.iter().find_map(|(begin, kind)| Some((*kind, name.strip_prefix(begin)?)))?;
    let premium = PREMIUM.iter().find_map(|premium| end.strip_suffix(premium));
    let calls = match (premium.unwrap_or(end), premium) {
        ("", None) => Calls::Usual,
        ("", Some(_)) => Calls::Premium,
        (bound, premium) => {
            let above = bound_of(bound)?;
            if premium.is_some() { Calls::Premium } else { Calls::LongPrompt(above) }
        }
    };
    Some((kind, calls))
}

/// Reads `_above_200k_tokens`.
fn bound_of(end: &str) -> Option<u64> {
    let count = end.strip_prefix("_above_")?.strip_suffix("_tokens")?;
    let (digits, unit) = count.strip_suffix('k').map_or((count, 1), |digits| (digits, 1000));
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use platform_core::{budget::Price, json};
    use serde_json::{Value, json};

    use super::*;

    fn tariff(members: &Value) -> Option<Tariff> {
        let text = members.to_string();
        let rates: ModelRates<'_> = json::from_str(&text, json::Bounds::of(4096)).unwrap();
        rates.tariff()
    }

    /// Returns the members of a model with the usual prices, and `more`.
    fn with(more: &Value) -> Value {
        let mut members = json!({ "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05 });
        members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        members
    }

    fn dollars(cents: u64) -> NanoDollars {
        NanoDollars(cents * 10_000_000)
    }

    fn usual() -> Price {
        Price {
            input: dollars(300),
            output: dollars(1500),
            cached: dollars(30),
            cache_written: dollars(375),
            cache_written_1h: dollars(600),
        }
    }

    /// Anthropic's Claude Sonnet 4.5 and OpenAI's GPT-5.4, as LiteLLM 1.106.2 shows them.
    #[test]
    fn rates_are_read_as_litellm_shows_them() {
        let sonnet = with(&json!({
            "cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06,
            "cache_read_input_token_cost": 3e-07, "input_cost_per_token_batches": 1.5e-06,
            "input_cost_per_token_above_200k_tokens": 6e-06, "output_cost_per_token_above_200k_tokens": 2.25e-05,
            "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 1.2e-05,
            "input_cost_per_token_priority": null, "search_context_cost_per_query": { "size": 0.01 },
        }));
        let long =
            Price { input: dollars(600), output: dollars(2250), cache_written_1h: dollars(1200), ..usual() };
        let expected = Tariff {
            usual: usual(),
            long_prompt: Some(LongPromptPrice { above: 200_000, price: long }),
            premium: None,
        };
        assert_eq!(tariff(&sonnet), Some(expected));
        let gpt = with(&json!({
            "cache_read_input_token_cost": 3e-07, "input_cost_per_token_priority": 6e-06,
            "input_cost_per_token_flex": 1e-06, "output_cost_per_token_priority": 3e-05,
            "input_cost_per_token_above_272k_tokens_priority": 9e-06,
            "input_cost_per_token_above_272k_tokens_flex": 1e-06,
        }));
        let tariff = tariff(&gpt).unwrap();
        let premium = Price { input: dollars(900), output: dollars(3000), ..usual() };
        assert_eq!((tariff.usual, tariff.long_prompt, tariff.premium), (usual(), None, Some(premium)));
    }

    /// Claude Opus 4.8 as LiteLLM 1.106.2 shows it; the other entries are those of other providers.
    #[test]
    fn regions_and_speeds_multiply_all_rates() {
        let premium =
            |entry: Value| tariff(&with(&json!({ "provider_specific_entry": entry }))).unwrap().premium;
        let both = premium(json!({ "us": 1.1, "fast": 2.0 })).unwrap();
        assert_eq!((both.input, both.output, both.cached), (dollars(660), dollars(3300), dollars(660)));
        assert_eq!(premium(json!({ "us": 1.1 })).unwrap().input, dollars(330));
        assert_eq!(premium(json!({ "fast": 2, "eu": "dear" })).unwrap().input, dollars(600));
        for none in [
            json!(null),
            json!({ "us": 1 }),
            json!({ "us": 0.9, "fast": 1e9 }),
            json!({ "minimax_free_input_images": 5 }),
            json!({ "dashscope_video_reference_input": "first_frame" }),
            json!("us"),
        ] {
            assert_eq!(premium(none.clone()), None, "{none}");
        }
        let long = with(&json!({
            "input_cost_per_token_above_200k_tokens": 6e-06, "provider_specific_entry": { "us": 1.1 },
        }));
        assert_eq!(tariff(&long).unwrap().premium.unwrap().input, dollars(660), "a prompt of any length");
    }

    #[test]
    fn the_dearest_of_several_bounds_counts() {
        let several = with(&json!({
            "input_cost_per_token_above_128k_tokens": 6e-06, "input_cost_per_token_above_512k_tokens": 9e-06,
            "output_cost_per_reasoning_token": 2e-05,
        }));
        let tariff = tariff(&several).unwrap();
        let long = tariff.long_prompt.unwrap();
        assert_eq!((long.above, long.price.input), (128_000, dollars(900)));
        assert_eq!(tariff.usual.output, dollars(2000), "reasoning is a part of the answer");
    }

    #[test]
    fn only_a_told_zero_is_a_price() {
        let zeros = |more: Value| {
            let mut members = json!({ "input_cost_per_token": 0, "output_cost_per_token": 0.0 });
            members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            tariff(&members)
        };
        let both = json!(["input_cost_per_token", "output_cost_per_token"]);
        assert!(zeros(json!({ "pricing_overrides": both })).unwrap().is_zero());
        for unknown in [
            json!({}),
            json!({ "pricing_overrides": [] }),
            json!({ "pricing_overrides": ["input_cost_per_token"] }),
            json!({ "pricing_overrides": null, "mode": "chat" }),
            json!({ "input_cost_per_token": 1e-06 }),
            json!({ "input_cost_per_token": 1e-06, "mode": "chat" }),
            json!({ "mode": "embedding" }),
        ] {
            assert_eq!(zeros(unknown.clone()), None, "{unknown}");
        }
        let embedding = zeros(json!({ "input_cost_per_token": 1e-06, "mode": "embedding" })).unwrap();
        assert_eq!(embedding.usual.output, dollars(0));
        let cached = tariff(&with(&json!({ "cache_read_input_token_cost": 0 }))).unwrap();
        assert_eq!(cached.usual.cached, cached.usual.input, "a zero that is filled in is not a price");
    }

    #[test]
    fn a_rate_that_cannot_be_read_is_no_price() {
        assert!(tariff(&with(&json!({ "cache_read_input_token_cost": "3e-07" }))).is_some(), "the control");
        for bad in [json!(-1), json!("free"), json!({}), json!(true), json!(1e30)] {
            assert_eq!(tariff(&with(&json!({ "cache_read_input_token_cost": bad }))), None, "{bad}");
            assert!(tariff(&with(&json!({ "input_cost_per_character": bad }))).is_some(), "{bad}");
        }
    }
}
