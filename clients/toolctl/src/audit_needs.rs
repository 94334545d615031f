//! The permissions of a call in the audit log, as one text.

use toold_proto::audit::AuditEntry;

use crate::output::{one_line, shorten};

/// The permissions that a call needed, on one line.
pub(crate) fn needs(entry: &AuditEntry) -> String {
    let needs: Vec<String> = entry.decisions.iter().map(|need| format!("{} {}", need.category, need.target)).collect();
    shorten(&one_line(&needs.join("; ")), 200)
}
