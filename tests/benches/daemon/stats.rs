//! Medians, and the table.

use std::time::Duration;

pub(crate) fn percentile(samples: &mut [Duration], part: f64) -> Duration {
    samples.sort_unstable();
    samples[((samples.len() - 1) as f64 * part) as usize]
}

pub(crate) fn median(mut samples: Vec<Duration>) -> Duration {
    percentile(&mut samples, 0.5)
}

pub(crate) fn median_rate(mut rates: Vec<f64>) -> f64 {
    rates.sort_unstable_by(f64::total_cmp);
    rates[rates.len() / 2]
}

pub(crate) fn ratio(value: Duration, floor: Duration) -> f64 {
    value.as_secs_f64() / floor.as_secs_f64()
}

pub(crate) fn row(name: &str, value: Duration, floor: Duration) {
    println!("{name:<44} {:>10.1} us   {:>6.2} x", value.as_secs_f64() * 1e6, ratio(value, floor));
}

/// The rate per second, and that of the floor.
pub(crate) fn rate_row(name: &str, rate: f64, floor: f64) {
    println!("{name:<44} {rate:>10.0} /s   {:>6.2} x", rate / floor);
}

/// The demand of a goal, in the unit of its figure.
#[derive(Clone, Copy)]
pub(crate) enum Demand {
    AtMost(f64),
    AtLeast(f64),
}

/// One line for `tests/benches/figures.py`, which makes the table of goals of such lines.
pub(crate) fn goal(number: u8, what: &str, value: f64, unit: &str, demand: Demand) {
    let (demand, held) = match demand {
        Demand::AtMost(most) => (format!("at most {}", short(most)), value <= most),
        Demand::AtLeast(least) => (format!("at least {}", short(least)), value >= least),
    };
    println!("goal G{number} | {what} | {value:.3} | {unit} | {demand} | {}", if held { "held" } else { "missed" });
}

/// With no more digits than are of use.
fn short(number: f64) -> String {
    format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
