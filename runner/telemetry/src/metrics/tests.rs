//! Tests that only configured agents have series of their own, and that counts appear in the right series.

use std::time::Duration;

use platform_core::id::AgentId;
use runner_model::lifecycle::{Outcome, StartKind};
use runner_store::ResourceKind;

use super::{GcCounts, Metrics};

fn agent(id: &str) -> AgentId {
    AgentId::parse(id).unwrap()
}

#[tokio::test]
async fn unconfigured_agents_share_one_label() {
    let metrics = Metrics::default();
    metrics.register_agents([agent("team:one"), agent("team:two")].iter());
    let took = Duration::from_secs(3);
    metrics.ended(&agent("team:one"), Outcome::Succeeded, took);
    metrics.ended(&agent("team:one"), Outcome::TimedOut, took);
    metrics.ended(&agent("team:gone"), Outcome::Cancelled, took);
    metrics.register_agents([agent("team:one"), agent("team:gone")].iter());
    metrics.ended(&agent("team:gone"), Outcome::Cancelled, took);
    metrics.started(StartKind::Warm, Duration::from_millis(60));
    metrics.starting();
    metrics.starting_at_most(4);
    metrics.set_pool(&agent("team:two"), 3, 1);
    metrics.pool_claimed(&agent("team:two"));
    metrics.pool_expired(&agent("team:two"));
    let mut counts = GcCounts::default();
    counts.removed[ResourceKind::Container as usize] = 1;
    counts.failed[ResourceKind::Workspace as usize] = 1;
    metrics.reaped(counts);
    metrics.set_below_floor(2);
    metrics.api_answered(404, Duration::from_millis(3));
    metrics.api_answered(101, Duration::from_millis(3));
    let text = metrics.render().await;
    for line in [
        r#"sandbox_runs_total{agent="team:one",status="succeeded"} 1"#,
        r#"sandbox_runs_total{agent="team:one",status="timed_out"} 1"#,
        r#"sandbox_runs_total{agent="team:two",status="failed"} 0"#,
        r#"sandbox_runs_total{agent="team:gone",status="cancelled"} 1"#,
        r#"sandbox_runs_total{agent="other",status="cancelled"} 1"#,
        r#"sandbox_run_duration_seconds_bucket{agent="team:one",le="2.5"} 0"#,
        r#"sandbox_run_duration_seconds_bucket{agent="team:one",le="5"} 2"#,
        r#"sandbox_run_duration_seconds_sum{agent="team:one"} 6.000000"#,
        r#"sandbox_start_seconds_bucket{start="warm",le="0.1"} 1"#,
        r#"sandbox_start_seconds_count{start="cold"} 0"#,
        "sandbox_starts_in_progress 1",
        "sandbox_starts_limit 4",
        r#"sandbox_pool_containers{agent="team:two",state="ready"} 3"#,
        r#"sandbox_pool_containers{agent="team:two",state="filling"} 1"#,
        r#"sandbox_pool_claimed_total{agent="team:two"} 1"#,
        r#"sandbox_pool_expired_total{agent="team:two"} 1"#,
        "sluice_gc_passes_total 1",
        r#"sluice_gc_removed_total{kind="container"} 1"#,
        r#"sluice_gc_remaining{kind="workspace",reason="failed"} 1"#,
        r#"sluice_gc_incomplete{part="docker"} 0"#,
        "sluice_accounts_below_floor 2",
        r#"sluice_api_request_seconds_bucket{status="4xx",le="0.001"} 0"#,
        r#"sluice_api_request_seconds_bucket{status="4xx",le="0.005"} 1"#,
        r#"sluice_api_request_seconds_count{status="5xx"} 1"#,
        "sluice_store_up 0",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("sandbox_queue_length"), "the store was not asked");
}

#[tokio::test]
async fn there_are_as_many_series_as_the_module_says() {
    let metrics = Metrics::default();
    let series = async || metrics.render().await.lines().filter(|line| !line.starts_with('#')).count();
    let before = series().await;
    metrics.register_agents([agent("team:one")].iter());
    metrics.ended(&agent("team:one"), Outcome::Succeeded, Duration::ZERO);
    let after = series().await;
    assert!(after - before <= 40, "{} for an agent", after - before);
    assert!((100..=180).contains(&before), "{before} besides");
}
