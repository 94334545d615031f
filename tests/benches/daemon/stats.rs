//! Medians, and the table.

use std::time::Duration;

pub(crate) fn percentile(samples: &mut [Duration], part: f64) -> Duration {
    samples.sort_unstable();
    samples[((samples.len() - 1) as f64 * part) as usize]
}

pub(crate) fn median(mut samples: Vec<Duration>) -> Duration {
    percentile(&mut samples, 0.5)
}

pub(crate) fn row(name: &str, value: Duration, floor: Duration, goal: &str) {
    let ratio = value.as_secs_f64() / floor.as_secs_f64();
    println!("{name:<44} {:>10.1} us   {ratio:>6.2} x   {goal}", value.as_secs_f64() * 1e6);
}
