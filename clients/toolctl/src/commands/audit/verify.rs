//! `toolctl audit verify`: whether rows of the audit log were removed or changed.

use toold_client::Client;
use toold_proto::audit::{AuditBreak, AuditVerification};
use toold_proto::daemon::NoParams;
use toold_proto::method;

use crate::exit::{OK, TOOL_ERROR};
use crate::output::{BAD, DIM, GOOD, one_line, print_answer};

pub(super) async fn run(client: &Client, json: bool) -> anyhow::Result<u8> {
    let verification = client.call::<method::AuditVerify>(NoParams {}).await?;
    print_answer(json, &verification, |verification, _| render(verification))?;
    Ok(if verification.broken == 0 { OK } else { TOOL_ERROR })
}

fn render(verification: &AuditVerification) -> String {
    let AuditVerification { rows, without_chain, checkpoint, lost, broken, breaks } = verification;
    let mut text = match broken {
        0 => format!("{GOOD}{rows} rows follow one another: none was removed or changed{GOOD:#}\n"),
        _ => format!("{BAD}rows of the audit log were removed or changed: {broken} breaks in {rows} rows{BAD:#}\n"),
    };
    for AuditBreak { id, at, what } in breaks {
        let place = id.map(|id| format!("row {id}")).or_else(|| at.clone()).unwrap_or_default();
        text.push_str(&format!("  {place}: {}\n", one_line(what)));
    }
    if (breaks.len() as u64) < *broken {
        text.push_str(&format!("  {DIM}and {} more{DIM:#}\n", broken - breaks.len() as u64));
    }
    if let Some(id) = checkpoint {
        text.push_str(&format!("rows up to {id} were removed because of their age or their number\n"));
    }
    if *without_chain > 0 {
        text.push_str(&format!("rows of an earlier version that cannot be checked: {without_chain}\n"));
    }
    if *lost > 0 {
        text.push_str(&format!("{BAD}calls that could not be recorded: {lost}{BAD:#}\n"));
    }
    text.push_str(&format!(
        "{DIM}This shows loss. It does not show a forger with your rights, who could write a whole log.{DIM:#}\n"
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verification_says_what_is_missing() {
        let break_of = |id, at: Option<&str>| AuditBreak { id, at: at.map(str::to_owned), what: "gone".into() };
        let broken = AuditVerification {
            rows: 7,
            without_chain: 2,
            checkpoint: Some(3),
            lost: 1,
            broken: 3,
            breaks: vec![break_of(None, Some("2026-01-02T03:04:05Z")), break_of(Some(5), None)],
        };
        let text = render(&AuditVerification { rows: 7, ..AuditVerification::default() }) + &render(&broken);
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
        7 rows follow one another: none was removed or changed
        This shows loss. It does not show a forger with your rights, who could write a whole log.
        rows of the audit log were removed or changed: 3 breaks in 7 rows
          2026-01-02T03:04:05Z: gone
          row 5: gone
          and 1 more
        rows up to 3 were removed because of their age or their number
        rows of an earlier version that cannot be checked: 2
        calls that could not be recorded: 1
        This shows loss. It does not show a forger with your rights, who could write a whole log.
        ");
    }
}
