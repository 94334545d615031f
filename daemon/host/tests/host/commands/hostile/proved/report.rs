//! The result for each program and implementation, as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The lines of one program, run by one implementation.
#[derive(Clone, Debug, Default)]
pub(super) struct ProofCount {
    pub(super) ran: u64,
    pub(super) violated: u64,
}

/// By program with its subcommand, then by implementation with its version. A program that is not installed has none.
#[derive(Debug, Default)]
pub(super) struct ProofReport(pub(super) BTreeMap<String, BTreeMap<String, ProofCount>>);

impl ProofReport {
    pub(super) fn add(&mut self, program: &str, implementation: &str, violated: bool) {
        let programs = self.0.entry(program.to_owned()).or_default();
        let count = programs.entry(implementation.to_owned()).or_default();
        count.ran += 1;
        count.violated += u64::from(violated);
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (program, implementations) in other.0 {
            let programs = self.0.entry(program).or_default();
            for (implementation, count) in implementations {
                let sum = programs.entry(implementation).or_default();
                sum.ran += count.ran;
                sum.violated += count.violated;
            }
        }
    }

    pub(super) fn ran(&self) -> u64 {
        self.0.values().flat_map(BTreeMap::values).map(|count| count.ran).sum()
    }

    pub(super) fn shown(&self) -> String {
        let mut text = format!("{:24} {:44} {:>6}  result\n", "program", "implementation", "lines");
        for (program, implementations) in &self.0 {
            if implementations.is_empty() {
                let _ = writeln!(text, "{program:24} {:44} {:>6}  not proved", "not installed", 0);
            }
            for (implementation, count) in implementations {
                let implementation: String = implementation.chars().take(44).collect();
                let result = match (count.violated, count.ran) {
                    (_, 0) => "no line of it is free".to_owned(),
                    (0, _) => "proved".to_owned(),
                    (violated, _) => format!("VIOLATED by {violated}"),
                };
                let _ = writeln!(text, "{program:24} {implementation:44} {:>6}  {result}", count.ran);
            }
        }
        text
    }
}
