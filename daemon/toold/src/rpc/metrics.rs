//! The daemon's metrics, as text for Prometheus: the OpenMetrics format, generated on demand.

use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use toold_engine::latency::{BOUNDS, ToolTotal};
use toold_proto::cache::CacheStats;
use toold_proto::daemon::DaemonStatus;

use crate::lifecycle::process_statistics;
use crate::rpc::Services;
use crate::rpc::daemon::status;

/// The content type of [`text`](text()).
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics with their current values.
///
/// # Errors
/// Never in fact: writing to a string cannot fail.
pub async fn text(services: &Arc<Services>) -> anyhow::Result<String> {
    let scraped = Scraped {
        status: status(services),
        tools: services.engine.latencies.totals(),
        cache: services.engine.cache.stats(),
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(scraped));
    let mut text = String::new();
    text::encode(&mut text, &registry).context("the metrics cannot be written")?;
    Ok(text)
}

struct Scraped {
    status: DaemonStatus,
    tools: Vec<ToolTotal>,
    cache: CacheStats,
}

impl fmt::Debug for Scraped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scraped").finish_non_exhaustive()
    }
}

impl Collector for Scraped {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut out = MetricsEncoder(encoder);
        self.calls(&mut out)?;
        self.waits(&mut out)?;
        self.daemon(&mut out)?;
        of_process(&self.status, &mut out)
    }
}

impl Scraped {
    fn calls(&self, out: &mut MetricsEncoder) -> fmt::Result {
        let help = "Calls that ended, by tool and outcome; of (others) when there are more than 512 tools";
        let mut family = out.0.encode_descriptor("toold_calls", help, None, MetricType::Counter)?;
        for tool in &self.tools {
            for (outcome, count) in &tool.outcomes {
                let labels = [("tool", tool.tool.as_str()), ("outcome", outcome.as_str())];
                family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
            }
        }
        let help = "How long tools ran, without the time waiting for permission or a turn";
        let unit = Some(&Unit::Seconds);
        let mut family = out.0.encode_descriptor("toold_call_duration", help, unit, MetricType::Histogram)?;
        for ToolTotal { tool, total, .. } in &self.tools {
            let bounds = BOUNDS.iter().copied().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(total.buckets).collect();
            let labels = [("tool", tool.as_str())];
            let mut histogram = family.encode_family(&labels)?;
            histogram.encode_histogram::<NoLabelSet>(total.took.as_secs_f64(), total.runs, &buckets, None)?;
        }
        Ok(())
    }

    fn waits(&self, out: &mut MetricsEncoder) -> fmt::Result {
        let queues = &self.status.queues;
        out.gauge("toold_calls_in_flight", "Calls that have begun and not ended", self.status.calls.in_flight)?;
        out.gauge("toold_calls_running", "Calls whose tools run", queues.running)?;
        let waiting = [
            ("lane", queues.waiting_for_lane),
            ("place", queues.waiting_for_place),
            ("person", queues.waiting_for_person),
        ];
        out.gauges("toold_calls_waiting", "Waiting calls, by what they wait for", "for", &waiting)?;
        let (outboxes, events) = (&queues.outboxes, &queues.events);
        out.gauge("toold_outbox_messages", "Notifications that clients have not read yet", outboxes.messages)?;
        out.gauge("toold_outboxes_full", "Connections with no room for more notifications", outboxes.full)?;
        out.counter("toold_events", "Events", events.emitted)?;
        out.gauge("toold_events_lag", "Events that the slowest subscriber is behind", events.lag)?;
        out.counter("toold_events_lost", "Events that slow subscribers lost", events.lost)
    }

    fn daemon(&self, out: &mut MetricsEncoder) -> fmt::Result {
        let status = &self.status;
        let mut build = out.0.encode_descriptor("toold_build", "What runs", None, MetricType::Info)?;
        build.encode_info(&[("version", status.version.as_str())])?;
        out.gauge("toold_connections", "Open connections", status.connections)?;
        out.gauge("toold_sessions", "Open sessions", status.sessions)?;
        out.gauge("toold_tools", "Tools that all sessions see", status.tools)?;
        let plugins = &status.plugins;
        let plugins = [("loaded", plugins.loaded), ("failed", plugins.failed), ("other", plugins.other)];
        out.gauges("toold_plugins", "Plugins, by status", "status", &plugins)?;
        out.gauge("toold_problems", "Problems that daemon.status reports", status.problems.len() as u64)?;
        out.gauge("toold_lua_machines", "Lua states", status.lua.machines)?;
        out.bytes("toold_lua_memory", "Memory that scripts have allocated", Some(status.lua.memory_bytes))?;
        let cache = &self.cache;
        out.counter("toold_cache_hits", "Results that were served again", cache.hits)?;
        out.counter("toold_cache_misses", "Cacheable calls that ran", cache.misses)?;
        out.counter("toold_cache_shared", "Calls that were given the result of one in flight", cache.shared)?;
        out.counter(
            "toold_cache_saved_milliseconds",
            "Time of the calls whose results were served again",
            cache.saved_ms,
        )?;
        out.counter("toold_cache_evictions", "Results that had to make room", cache.evictions)?;
        out.bytes("toold_cache", "Memory of cached results", Some(cache.size))
    }
}

/// The standard process metrics, by the names that client libraries use.
fn of_process(status: &DaemonStatus, out: &mut MetricsEncoder) -> fmt::Result {
    out.bytes("process_resident_memory", "Resident memory", status.memory_bytes)?;
    out.some("process_open_fds", "Open file descriptors", status.open_files)?;
    out.some("process_max_fds", "How many there may be", status.open_files_limit)?;
    let Some(process) = process_statistics::statistics() else { return Ok(()) };
    out.bytes("process_virtual_memory", "Virtual memory", Some(process.virtual_bytes))?;
    out.gauge("process_threads", "Threads", process.threads)?;
    let seconds = Some(&Unit::Seconds);
    let help = "Processor time of user and system";
    let mut cpu = out.0.encode_descriptor("process_cpu", help, seconds, MetricType::Counter)?;
    cpu.encode_counter::<NoLabelSet, _, u64>(&process.cpu_seconds, None)?;
    let help = "When the process began, since 1970";
    let mut start = out.0.encode_descriptor("process_start_time", help, seconds, MetricType::Gauge)?;
    start.encode_gauge(&process.start_seconds)
}

/// Writes metrics of the common kinds.
struct MetricsEncoder<'e>(DescriptorEncoder<'e>);

impl MetricsEncoder<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn some(&mut self, name: &str, help: &str, value: Option<u64>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.gauge(name, help, value))
    }

    fn bytes(&mut self, name: &str, help: &str, value: Option<u64>) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        self.0.encode_descriptor(name, help, Some(&Unit::Bytes), MetricType::Gauge)?.encode_gauge(&value)
    }

    fn gauges(&mut self, name: &str, help: &str, label: &str, values: &[(&str, u64)]) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (which, value) in values {
            family.encode_family(&[(label, *which)])?.encode_gauge(value)?;
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }
}
