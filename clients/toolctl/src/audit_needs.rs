//! The permissions of a call in the audit log, as one text.

use toold_proto::audit::AuditEntry;

use crate::output::{one_line, shorten};

/// The permissions that a call needed, on one line.
pub(crate) fn needs(entry: &AuditEntry) -> String {
    // A file that is judged again before it is written is named once.
    let mut needs: Vec<String> = Vec::new();
    for need in &entry.decisions {
        let need = format!("{} {}", need.category, need.target);
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    shorten(&one_line(&needs.join("; ")), 200)
}
