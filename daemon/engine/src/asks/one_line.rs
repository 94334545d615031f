//! Which needs a person may allow who reads no more than one line about them, such as in a notification.

use toold_proto::effect::Effect;

use crate::effects::CommandEffects;
use crate::need::{InnerCommand, JudgedCommand, Need, NeedKind};

/// Whether the target of a need says all that a person has to know, as far as that can be known without its surroundings.
/// Where its effects are unknown, it does not.
pub(super) fn fits_one_line(need: &Need) -> bool {
    let fits = match &need.kind {
        NeedKind::FileRead(file) | NeedKind::FileWrite(file) => file.diff.is_none() && file.holds_secrets.is_empty(),
        NeedKind::Command(command) => is_plain(command),
        NeedKind::Network(_) | NeedKind::Mcp { reads_only: true } => true,
        NeedKind::Mcp { .. } | NeedKind::AgentMcp | NeedKind::Plugin | NeedKind::Agent | NeedKind::Workspace => false,
    };
    fits && !need.always_asked
}

fn is_plain(command: &JudgedCommand) -> bool {
    let is_light =
        |effects: &CommandEffects| !effects.operation.is_empty() && !effects.all().iter().any(Effect::must_be_named);
    let inner_is_plain = |inner: &InnerCommand| !inner.is_unsure && !inner.may_run_any && is_light(&inner.effects);
    command.words.is_some()
        && is_light(&command.effects)
        && command.elsewhere.iter().all(inner_is_plain)
        && command.unsure.is_none()
        && ![command.may_run_any, command.is_unjudged, command.hides_file].contains(&true)
}

#[cfg(test)]
mod tests {
    use toold_proto::tool::Category;

    use super::*;
    use crate::need::Word;

    fn command(effects: &[Effect]) -> Need {
        let words = ["make", "all"].map(|text| Word { text: text.to_owned(), literal: true });
        let effects = CommandEffects { operation: effects.to_vec().into(), ..CommandEffects::default() };
        Need::of_command("make all", JudgedCommand { words: Some(words.into()), effects, ..JudgedCommand::default() })
    }

    #[test]
    fn effects_that_a_rule_has_to_name_need_a_look() {
        for effect in Effect::ALL {
            let fits = fits_one_line(&command(&[effect, Effect::Read]));
            assert_eq!(fits, !effect.must_be_named(), "{effect}");
            let inner = InnerCommand {
                target: "x".to_owned(),
                words: None,
                form: None,
                is_unsure: false,
                may_run_any: false,
                effects: CommandEffects { operation: vec![effect].into(), ..CommandEffects::default() },
            };
            let sent = command(&[Effect::Send]).with_command(|command| command.elsewhere.push(inner));
            assert_eq!(fits_one_line(&sent), fits, "{effect}");
        }
    }

    #[test]
    fn the_unknown_needs_a_look() {
        assert!(!fits_one_line(&command(&[])), "a program that is in no table");
        for category in [Category::Mcp, Category::Plugin, Category::Agent] {
            assert!(!fits_one_line(&Need::new(category, "x")), "{category}");
        }
        assert!(fits_one_line(&Need::of_kind(NeedKind::Mcp { reads_only: true }, "x")));
        let build = || command(&[Effect::Build]);
        assert!(fits_one_line(&build()));
        for need in [
            build().with_command(|command| command.words = None),
            build().with_command(|command| command.unsure = Some("x".to_owned())),
            build().with_command(|command| command.may_run_any = true),
            build().with_command(|command| command.is_unjudged = true),
            build().with_command(|command| command.hides_file = true),
            Need { always_asked: true, ..build() },
            Need::new(Category::FileWrite, "/x").with_file(|file| file.diff = Some("+x".to_owned())),
            Need::new(Category::FileRead, "/x").with_file(|file| file.holds_secrets.push("/x".to_owned())),
            Need::of_kind(NeedKind::Workspace, "/"),
        ] {
            assert!(!fits_one_line(&need), "{need:?}");
        }
    }
}
