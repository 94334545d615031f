//! Which needs a person may allow who reads no more than one line about them, such as in a notification.

use toold_proto::effect::Effect;
use toold_proto::tool::Category;

use crate::effects::CommandEffects;
use crate::need::{InnerCommand, Need};

/// Whether the target of a need says all that a person has to know, as far as that can be known without its surroundings.
/// Where its effects are unknown, it does not.
pub(super) fn fits_one_line(need: &Need) -> bool {
    let is_known = match need.category {
        Category::FileRead | Category::FileWrite | Category::Network => true,
        Category::Shell => need.words.is_some() && !need.effects.operation.is_empty(),
        Category::Mcp | Category::Plugin | Category::Agent => need.reads_only,
    };
    let is_grave = |effects: &CommandEffects| effects.all().iter().any(Effect::must_be_named);
    let is_plain = |inner: &InnerCommand| {
        !inner.is_unsure && !inner.may_run_any && !inner.effects.operation.is_empty() && !is_grave(&inner.effects)
    };
    is_known
        && !is_grave(&need.effects)
        && need.elsewhere.iter().all(is_plain)
        && need.diff.is_none()
        && need.unsure.is_none()
        && need.holds_secrets.is_empty()
        && ![need.may_run_any, need.is_unjudged, need.hides_file, need.workspace, need.always_asked].contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::need::Word;

    fn command(effects: &[Effect]) -> Need {
        let words = ["make", "all"].map(|text| Word { text: text.to_owned(), literal: true });
        let effects = CommandEffects { operation: effects.to_vec().into(), ..CommandEffects::default() };
        Need { words: Some(words.into()), effects, ..Need::new(Category::Shell, "make all") }
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
                effects: command(&[effect]).effects,
            };
            assert_eq!(fits_one_line(&Need { elsewhere: vec![inner], ..command(&[Effect::Send]) }), fits, "{effect}");
        }
    }

    #[test]
    fn the_unknown_needs_a_look() {
        assert!(!fits_one_line(&command(&[])), "a program that is in no table");
        for category in [Category::Mcp, Category::Plugin, Category::Agent] {
            assert!(!fits_one_line(&Need::new(category, "x")), "{category}");
            assert!(fits_one_line(&Need { reads_only: true, ..Need::new(category, "x") }), "{category}");
        }
        let build = || command(&[Effect::Build]);
        assert!(fits_one_line(&build()));
        for need in [
            Need { words: None, ..build() },
            Need { unsure: Some("x".to_owned()), ..build() },
            Need { may_run_any: true, ..build() },
            Need { is_unjudged: true, ..build() },
            Need { hides_file: true, ..build() },
            Need { always_asked: true, ..build() },
            Need { diff: Some("+x".to_owned()), ..Need::new(Category::FileWrite, "/x") },
            Need { holds_secrets: vec!["/x".to_owned()], ..Need::new(Category::FileRead, "/x") },
            Need { workspace: true, ..Need::new(Category::FileRead, "/") },
        ] {
            assert!(!fits_one_line(&need), "{need:?}");
        }
    }
}
