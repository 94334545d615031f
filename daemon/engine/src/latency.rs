//! How long tools take: spread over the last minutes for people, counted since the start for programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use toold_proto::daemon::ToolLatency;
use toold_proto::event::Outcome;
use toold_proto::tool::ToolName;

/// A slice of the window; the oldest is dropped when a new one begins.
const SLICE: Duration = Duration::from_secs(60);
const SLICES: usize = 6;
/// The least time that [`Latencies::recent`] covers; at most a slice more.
pub const WINDOW: Duration = Duration::from_secs(SLICE.as_secs() * (SLICES as u64 - 1));

/// Upper bounds, in seconds, of the counters since the start. Longer runs are counted in one bucket
/// above the last.
pub const BOUNDS: [f64; 18] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0,
];

/// Tools that have numbers of their own. Further tools share one entry, since plugins and servers
/// can invent ever new names.
const MAX_TOOLS: usize = 512;
/// The name of that entry. No tool can have it.
pub const OTHERS: &str = "(others)";

/// The numbers of all tools. Counting takes a look-up and a short lock.
pub struct Latencies {
    began: Instant,
    tools: DashMap<ToolName, Arc<ToolTimings>>,
    others: Arc<ToolTimings>,
}

#[derive(Default)]
struct ToolTimings {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    times: Mutex<TimingWindow>,
}

#[derive(Default)]
struct TimingWindow {
    slices: [Slice; SLICES],
    total: Total,
}

/// One minute. Empty until something is counted in it.
#[derive(Default)]
struct Slice {
    /// Its minute since the start.
    number: u64,
    calls: u64,
    errors: u64,
    max: Duration,
    /// Microseconds of its runs; allocated at the first.
    spread: Option<Spread>,
}

/// Runs by how long they took. One significant digit tells a time to one part in sixteen and grows with the longest run
/// to at most 4 KiB (2 KiB for runs of an hour), so a tool takes less than 24 KiB and all of them some megabytes.
type Spread = Histogram<u32>;

/// Runs since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Total {
    /// By [`BOUNDS`]; the last counts those above. Not cumulative.
    pub buckets: [u64; BOUNDS.len() + 1],
    pub runs: u64,
    pub took: Duration,
}

/// A tool's numbers since the start.
pub struct ToolTotal {
    pub tool: String,
    pub outcomes: Vec<(Outcome, u64)>,
    pub total: Total,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { began: Instant::now(), tools: DashMap::new(), others: Arc::default() }
    }
}

impl Latencies {
    /// Counts a call that ended. `ran` is how long its tool ran; `None` when it never did, such as one that was denied.
    pub fn record(&self, tool: &ToolName, outcome: Outcome, ran: Option<Duration>) {
        self.record_at(self.began.elapsed(), tool, outcome, ran);
    }

    fn record_at(&self, at: Duration, tool: &ToolName, outcome: Outcome, ran: Option<Duration>) {
        if let Some(known) = self.tools.get(tool) {
            return known.count(at, outcome, ran);
        }
        let place = match self.tools.len() < MAX_TOOLS {
            true => self.tools.entry(tool.clone()).or_default().clone(),
            false => self.others.clone(),
        };
        place.count(at, outcome, ran);
    }

    /// The tools that were called within the [`WINDOW`], by name.
    pub fn recent(&self) -> Vec<ToolLatency> {
        self.recent_at(self.began.elapsed())
    }

    fn recent_at(&self, at: Duration) -> Vec<ToolLatency> {
        self.all().iter().filter_map(|(name, tool)| tool.times.lock().recent(name, number(at))).collect()
    }

    /// How often a tool was called since the start; 0 for one that shares its numbers with others.
    pub fn calls(&self, tool: &ToolName) -> u64 {
        self.tools.get(tool).map_or(0, |known| known.outcomes.iter().map(|n| n.load(Ordering::Relaxed)).sum())
    }

    /// All tools that were ever called, by name.
    pub fn totals(&self) -> Vec<ToolTotal> {
        let total = |(name, tool): (String, Arc<ToolTimings>)| {
            let counted =
                Outcome::ALL.iter().zip(&tool.outcomes).map(|(outcome, n)| (*outcome, n.load(Ordering::Relaxed)));
            let outcomes: Vec<_> = counted.filter(|(_, n)| *n > 0).collect();
            let total = tool.times.lock().total.clone();
            (!outcomes.is_empty()).then_some(ToolTotal { tool: name, outcomes, total })
        };
        self.all().into_iter().filter_map(total).collect()
    }

    fn all(&self) -> Vec<(String, Arc<ToolTimings>)> {
        let mut all: Vec<_> = self.tools.iter().map(|entry| (entry.key().to_string(), entry.value().clone())).collect();
        all.push((OTHERS.to_owned(), self.others.clone()));
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}

impl ToolTimings {
    fn count(&self, at: Duration, outcome: Outcome, ran: Option<Duration>) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
        let mut times = self.times.lock();
        if let Some(ran) = ran {
            times.total.count(ran);
        }
        times.slice(number(at)).count(outcome, ran);
    }
}

/// Minutes since the start, from 1, so that a slice that was never used is none of them.
fn number(at: Duration) -> u64 {
    at.as_secs() / SLICE.as_secs() + 1
}

impl TimingWindow {
    fn slice(&mut self, number: u64) -> &mut Slice {
        let slice = &mut self.slices[(number % SLICES as u64) as usize];
        if slice.number != number {
            let mut spread = slice.spread.take();
            spread.iter_mut().for_each(Spread::clear);
            *slice = Slice { number, spread, ..Slice::default() };
        }
        slice
    }

    fn recent(&self, name: &str, now: u64) -> Option<ToolLatency> {
        let mut spread = new_spread();
        let mut sum = ToolLatency { tool: name.to_owned(), ..ToolLatency::default() };
        for slice in self.slices.iter().filter(|slice| slice.number > 0 && slice.number + SLICES as u64 > now) {
            sum.calls += slice.calls;
            sum.errors += slice.errors;
            sum.max_us = sum.max_us.max(micros(slice.max));
            if let Some(of_slice) = &slice.spread {
                spread.add(of_slice).expect("a histogram that grows takes any other");
            }
        }
        sum.runs = spread.len();
        let at = |quantile| spread.median_equivalent(spread.value_at_quantile(quantile)).min(sum.max_us);
        (sum.p50_us, sum.p90_us, sum.p99_us) = (at(0.5), at(0.9), at(0.99));
        (sum.calls > 0).then_some(sum)
    }
}

impl Slice {
    fn count(&mut self, outcome: Outcome, ran: Option<Duration>) {
        self.calls += 1;
        self.errors += u64::from(outcome != Outcome::Ok);
        let Some(ran) = ran else { return };
        self.max = self.max.max(ran);
        let spread = self.spread.get_or_insert_with(new_spread);
        spread.record(micros(ran)).expect("a histogram that grows takes any number");
    }
}

impl Total {
    fn count(&mut self, ran: Duration) {
        let seconds = ran.as_secs_f64();
        self.buckets[BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
        self.runs += 1;
        self.took += ran;
    }
}

fn new_spread() -> Spread {
    Spread::new(1).expect("histograms have one to five significant digits")
}

fn micros(time: Duration) -> u64 {
    // Rounded up: every run took some time.
    time.as_nanos().div_ceil(1_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ToolName {
        ToolName::parse(text).unwrap()
    }

    fn minutes(n: u64) -> Duration {
        SLICE * n as u32
    }

    #[test]
    fn percentiles_count_only_runs() {
        let latencies = Latencies::default();
        for ms in 1..=100 {
            latencies.record(&name("read"), Outcome::Ok, Some(Duration::from_millis(ms)));
        }
        latencies.record(&name("read"), Outcome::Denied, None);
        let recent = &latencies.recent()[0];
        assert_eq!((recent.tool.as_str(), recent.calls, recent.errors, recent.runs), ("read", 101, 1, 100));
        for (shown, expected) in [(recent.p50_us, 50_000), (recent.p90_us, 90_000), (recent.p99_us, 99_000)] {
            assert!(shown.abs_diff(expected) * 15 <= expected, "{shown} for {expected}");
        }
        assert_eq!(recent.max_us, 100_000);
        let total = &latencies.totals()[0];
        assert_eq!((total.total.runs, total.total.buckets.iter().sum::<u64>()), (100, 100));
        assert_eq!(total.total.took, Duration::from_millis(5050));
        assert_eq!(total.total.buckets[9], 50, "those over 50 ms, up to 100 ms");
        assert_eq!(total.outcomes, [(Outcome::Ok, 100), (Outcome::Denied, 1)]);
    }

    #[test]
    fn old_runs_are_left_out() {
        let latencies = Latencies::default();
        let took = Some(Duration::from_millis(3));
        latencies.record_at(minutes(0), &name("read"), Outcome::Ok, took);
        latencies.record_at(minutes(3), &name("read"), Outcome::Ok, took);
        assert_eq!(latencies.recent_at(minutes(5))[0].calls, 2);
        assert_eq!(latencies.recent_at(minutes(6))[0].calls, 1);
        assert_eq!(latencies.recent_at(minutes(9)), []);
        // The slot of an old minute is reused for a new one.
        latencies.record_at(minutes(9), &name("read"), Outcome::Failed, None);
        let recent = &latencies.recent_at(minutes(9))[0];
        assert_eq!((recent.calls, recent.errors, recent.runs, recent.p99_us), (1, 1, 0, 0));
        assert_eq!(latencies.totals()[0].total.runs, 2);
    }

    #[test]
    fn ever_new_names_share_a_place() {
        let latencies = Latencies::default();
        for n in 0..MAX_TOOLS + 9 {
            latencies.record(&name(&format!("tool_{n}")), Outcome::Ok, Some(Duration::ZERO));
        }
        let recent = latencies.recent();
        assert_eq!(recent.len(), MAX_TOOLS + 1);
        assert_eq!((recent[0].tool.as_str(), recent[0].calls), (OTHERS, 9));
    }
}
