//! The findings of a check of this machine, each with what to do.

use std::io::{self, Write};

use serde::Serialize;

use crate::output::{BAD, DIM, GOOD, HINT, WARN, one_line, plain};

/// The result of one check.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) about: &'static str,
    pub(crate) health: Severity,
    pub(crate) message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    Good,
    Warning,
    Bad,
}

pub(crate) fn good(about: &'static str, message: impl Into<String>) -> Finding {
    Finding { about, health: Severity::Good, message: message.into(), advice: None }
}

pub(crate) fn warning(about: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { health: Severity::Warning, ..bad(about, message, advice) }
}

pub(crate) fn bad(about: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { about, health: Severity::Bad, message: message.into(), advice: Some(advice.into()) }
}

pub(crate) fn any_bad(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.health == Severity::Bad)
}

pub(crate) fn show(findings: &[Finding], out: &mut impl Write) -> io::Result<()> {
    for finding in findings {
        let (style, word) = match finding.health {
            Severity::Good => (GOOD, "ok  "),
            Severity::Warning => (WARN, "warn"),
            Severity::Bad => (BAD, "bad "),
        };
        writeln!(out, "{style}{word}{style:#} {DIM}{:<11}{DIM:#} {}", finding.about, one_line(&finding.message))?;
        if let Some(advice) = &finding.advice {
            writeln!(out, "                 {HINT}>{HINT:#} {}", plain(advice))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_comes_with_advice() {
        let findings = [good("program", "/bin/toold"), bad("socket", "is accessible to other users", "chmod 700 /x")];
        let mut out = Vec::new();
        show(&findings, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
        ok   program     /bin/toold
        bad  socket      is accessible to other users
                         > chmod 700 /x
        ");
    }
}
