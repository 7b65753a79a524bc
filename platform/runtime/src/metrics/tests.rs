//! Tests that values reach their buckets and that the text has the format Prometheus reads.

use super::{Distribution, Exposition, Histograms, Kind, dollars, seconds};

#[test]
fn a_duration_counts_in_its_first_bucket() {
    let histograms = Histograms::new(2, &[(10, "0.00001"), (20, "0.00002")]);
    [0, 10, 11, 20, 21, 1000].iter().for_each(|us| histograms.observe(1, *us));
    let expected = Distribution { buckets: vec![("0.00001", 2), ("0.00002", 4)], count: 6, sum_us: 1062 };
    assert_eq!(histograms.read(1), expected);
    assert_eq!(histograms.read(0).count, 0, "the neighbour");
}

#[test]
fn the_text_is_written_as_the_format_wants_it() {
    let mut text = Exposition::default();
    text.family(Kind::Counter, "a_total", "All of a.").sample(&[("of", "a\\b\"c\nd"), ("e", "")], 1);
    text.single(Kind::Gauge, "b", seconds(1_000_001), "One.");
    let distribution = Distribution { buckets: vec![("1", 1)], count: 2, sum_us: 3 };
    text.family(Kind::Histogram, "c_seconds", "Some.").histogram(&[("f", "g")], &distribution);
    assert_eq!(
        text.finish(),
        r##"# HELP a_total All of a.
# TYPE a_total counter
a_total{of="a\\b\"c\nd",e=""} 1
# HELP b One.
# TYPE b gauge
b 1.000001
# HELP c_seconds Some.
# TYPE c_seconds histogram
c_seconds_bucket{f="g",le="1"} 1
c_seconds_bucket{f="g",le="+Inf"} 2
c_seconds_sum{f="g"} 0.000003
c_seconds_count{f="g"} 2
"##
    );
    assert_eq!(dollars(12_000_000_345).to_string(), "12.000000345");
}
