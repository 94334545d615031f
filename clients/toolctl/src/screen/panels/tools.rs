//! The tools of the registry.

use toold_proto::tool::Tool;

use crate::output;
use crate::screen::daemon_data::{DaemonData, MAX_TOOL_DURATIONS};
use crate::screen::details::{Details, field, heading, json_lines};
use crate::screen::panel::PanelRow;
use crate::screen::text::{PaneLine, text_lines};
use crate::views::{Column, FILL, Tone, ViewCell, column, tools};

pub(in crate::screen) const COLUMNS: &[Column] = &[
    column("TOOL", 8, 32, 0),
    column("SOURCE", 8, 24, 2),
    column("NEEDS", 6, 28, 3),
    column("RECENT", MAX_TOOL_DURATIONS as u16, MAX_TOOL_DURATIONS as u16, 4),
    column("DESCRIPTION", 16, FILL, 1),
];

const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(in crate::screen) fn find<'a>(data: &'a DaemonData, name: &str) -> Option<&'a Tool> {
    data.tools.iter().find(|tool| tool.name.as_str() == name)
}

pub(in crate::screen) fn rows(data: &DaemonData) -> Vec<PanelRow> {
    let row = |tool: &Tool| {
        let recent = data.tool_durations.get(tool.name.as_str());
        let last = recent.and_then(|recent| recent.back()).map_or(-1.0, |ms| *ms as f64);
        PanelRow {
            key: tool.name.as_str().to_owned(),
            cells: vec![
                tools::name(tool),
                ViewCell::plain(source(tool)),
                tools::needs(tool),
                ViewCell::plain(recent.map(sparkline).unwrap_or_default()).number(last),
                tools::description(tool, 300),
            ],
        }
    };
    data.tools.iter().map(row).collect()
}

fn source(tool: &Tool) -> String {
    format!("{} {}", tool.source.kind.as_str(), tool.source.name)
}

/// A bar for each duration, relative to the longest.
fn sparkline<'a>(durations: impl IntoIterator<Item = &'a u64> + Clone) -> String {
    let longest = durations.clone().into_iter().copied().max().unwrap_or(0).max(1);
    let spark = |ms: &u64| SPARKS[(*ms as f64 / longest as f64 * (SPARKS.len() - 1) as f64).round() as usize];
    durations.into_iter().map(spark).collect()
}

pub(in crate::screen) fn details(data: &DaemonData, name: &str) -> Option<Details> {
    let tool = find(data, name)?;
    let mut lines = text_lines(Tone::Plain, &tool.description);
    lines.push(PaneLine::empty());
    lines.push(field("source", &source(tool)));
    lines.extend(tool.source.path.as_deref().map(|path| field("file", path)));
    let needs = tools::needs(tool).text;
    lines.push(field("needs", if needs.is_empty() { "no permission" } else { &needs }));
    lines.extend(tool.version.as_deref().map(|version| field("version", version)));
    lines.extend(tool.timeout_ms.map(|ms| field("time limit", &output::duration(ms))));
    lines.push(field("cached", if tool.cacheable { "yes" } else { "no" }));
    lines.push(field("parallel", if tool.parallelizable { "yes" } else { "no" }));
    let latency = data.status.iter().flat_map(|status| &status.latency).find(|latency| latency.tool == name);
    if let Some(latency) = latency {
        let took = |us: u64| output::duration(us / 1000);
        lines.push(field("calls", &format!("{}, {} failed", latency.calls, latency.errors)));
        lines.push(field(
            "latency",
            &format!(
                "half take at most {}, 90 % {}, 99 % {}, the longest {}",
                took(latency.p50_us),
                took(latency.p90_us),
                took(latency.p99_us),
                took(latency.max_us)
            ),
        ));
    }
    if let Some(recent) = data.tool_durations.get(name) {
        let took: Vec<String> = recent.iter().map(|ms| output::duration(*ms)).collect();
        lines.push(field("last calls", &format!("{}  {}", sparkline(recent), took.join(", "))));
    }
    lines.push(heading("Arguments"));
    lines.extend(json_lines(&tool.input_schema));
    if let Some(schema) = &tool.output_schema {
        lines.push(heading("Result"));
        lines.extend(json_lines(schema));
    }
    Some(Details { title: name.to_owned(), lines, query: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_is_relative_to_the_longest_call() {
        assert_eq!(sparkline(&[0, 5, 10]), "▁▅█");
        assert_eq!(sparkline(&[0, 0]), "▁▁");
    }
}
