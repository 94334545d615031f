//! Asking a person.

use crate::cx::Cx;
use crate::need::Need;
use crate::policy::Decision;
use crate::tool::ToolError;

/// The asks that wait for a person, and the frontends that can answer them.
#[derive(Default)]
pub struct Asks {}

/// What became of an ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Allowed { rule: String },
    Denied { rule: String, message: String },
}

/// Asks a person. With nobody there to answer it is denied at once, with the way to allow it.
pub async fn ask(_cx: &Cx, chain: &[String], need: &Need, decision: &Decision) -> Result<Answer, ToolError> {
    let message = format!(
        "not allowed: {} {} needs a person's leave ({}), and no frontend is connected that can ask one. \
         To allow it: {}",
        need.category,
        need.target,
        decision.rule,
        grant_command(chain, need)
    );
    Ok(Answer::Denied { rule: format!("nobody to ask ({})", decision.rule), message })
}

/// The command line that allows exactly this need from now on.
pub fn grant_command(chain: &[String], need: &Need) -> String {
    let mut command = format!("toolctl permissions grant {} {}", need.category, quoted(&need.target));
    for plugin in chain {
        command.push_str(&format!(" --chain {plugin}"));
    }
    command
}

/// One word for the shell (POSIX, section 2.2.2: single quotes).
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
