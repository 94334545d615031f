//! `toolctl permissions review`: the grants by their last use, and what could be dropped or merged.

use std::io::Write;

use anyhow::Context;
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::method::{PermissionsGrant, PermissionsReview, PermissionsRevoke};
use toold_proto::permission::{GrantInfo, GrantPermission, PermissionReview, ReviewProposal, RevokePermission};

use super::show;
use crate::confirm::confirm;
use crate::exit::OK;
use crate::keys::has_terminal;
use crate::output::{self, BOLD, DIM, one_line, print_json};

/// Shows the grants and proposals, and carries out the proposals that the user confirms; all of them with `yes`.
pub(super) async fn run(client: &Client, yes: bool, json: bool) -> anyhow::Result<u8> {
    let review = client.call::<PermissionsReview>(NoParams {}).await?;
    if json {
        print_json(&review)?;
        return Ok(OK);
    }
    let mut out = output::stdout();
    out.write_all(show::grants(&review.grants, output::terminal_width()).as_bytes())?;
    if review.grants.is_empty() {
        writeln!(output::stderr(), "there are no grants")?;
    } else if review.proposals.is_empty() {
        writeln!(
            output::stderr(),
            "nothing to propose: each was used in the last 30 days, and none is covered by another"
        )?;
    }
    for proposal in &review.proposals {
        writeln!(out, "\n{}", described(proposal, &review))?;
        out.flush()?;
        if yes || has_terminal() && confirm(question(proposal)).await? {
            carry_out(client, proposal, &review).await?;
        }
    }
    out.flush()?;
    if !review.proposals.is_empty() && !yes && !has_terminal() {
        writeln!(output::stderr(), "nothing was changed: run it at a terminal to be asked, or with --yes")?;
    }
    Ok(OK)
}

fn question(proposal: &ReviewProposal) -> &'static str {
    match proposal {
        ReviewProposal::Drop { .. } => "Revoke it?",
        ReviewProposal::Merge { .. } => "Replace them?",
    }
}

fn described(proposal: &ReviewProposal, review: &PermissionReview) -> String {
    match proposal {
        ReviewProposal::Drop { id, days } => {
            format!("{BOLD}Revoke{BOLD:#} {}: not used for {days} days", line(review, id))
        }
        ReviewProposal::Merge { ids, pattern } => {
            let category = found(review, &ids[..1]).first().map(|grant| format!("{} ", grant.category));
            let mut text = format!(
                "{BOLD}Replace{BOLD:#} {} grants by {}{BOLD}{}{BOLD:#}, which allows more than they do:",
                ids.len(),
                category.unwrap_or_default(),
                one_line(pattern)
            );
            ids.iter().for_each(|id| text.push_str(&format!("\n  {}", line(review, id))));
            text
        }
    }
}

fn line(review: &PermissionReview, id: &str) -> String {
    match found(review, std::slice::from_ref(&id.to_owned())).as_slice() {
        [grant] => format!("{} {} {DIM}({}){DIM:#}", grant.category, one_line(&grant.pattern), one_line(id)),
        _ => one_line(id),
    }
}

fn found<'a>(review: &'a PermissionReview, ids: &[String]) -> Vec<&'a GrantInfo> {
    review.grants.iter().filter(|grant| ids.contains(&grant.id)).collect()
}

/// The wide grant comes first: nothing that was allowed is refused in between.
async fn carry_out(client: &Client, proposal: &ReviewProposal, review: &PermissionReview) -> anyhow::Result<()> {
    let ids = match proposal {
        ReviewProposal::Drop { id, .. } => std::slice::from_ref(id),
        ReviewProposal::Merge { ids, pattern } => {
            let narrow = found(review, ids);
            let like = narrow.first().context("the daemon proposes to merge grants that it does not list")?;
            let stored = client
                .call::<PermissionsGrant>(GrantPermission {
                    category: like.category,
                    pattern: pattern.clone(),
                    scope: like.scope,
                    action: like.action,
                    tools: like.tools.clone(),
                    session_id: like.session_id.clone(),
                    cwd: like.project.clone(),
                    chain: like.chain.clone(),
                    expires_in: None,
                })
                .await?;
            writeln!(output::stdout(), "{}", show::grant(&stored))?;
            ids
        }
    };
    for id in ids {
        client.call::<PermissionsRevoke>(RevokePermission { id: id.clone() }).await?;
    }
    Ok(())
}
