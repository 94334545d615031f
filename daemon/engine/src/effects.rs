//! The effects of a command, as far as the tables of programs know them.

use serde::{Deserialize, Serialize};
use toold_proto::effect::Effect;

/// A set of effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Effect>", into = "Vec<Effect>")]
pub struct EffectSet(u16);

impl EffectSet {
    pub const EMPTY: Self = Self(0);
    /// Reading, and nothing else.
    pub const READING: Self = Self::EMPTY.with(Effect::Read);

    pub const fn with(self, effect: Effect) -> Self {
        Self(self.0 | bit(effect))
    }

    #[must_use]
    pub fn without(self, effect: Effect) -> Self {
        Self(self.0 & !bit(effect))
    }

    pub fn contains(self, effect: Effect) -> bool {
        self.0 & bit(effect) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The worst first.
    pub fn iter(self) -> impl Iterator<Item = Effect> {
        Effect::ALL.into_iter().filter(move |effect| self.contains(*effect))
    }
}

impl From<Vec<Effect>> for EffectSet {
    fn from(effects: Vec<Effect>) -> Self {
        effects.into_iter().collect()
    }
}

impl From<EffectSet> for Vec<Effect> {
    fn from(effects: EffectSet) -> Self {
        effects.iter().collect()
    }
}

impl FromIterator<Effect> for EffectSet {
    fn from_iter<I: IntoIterator<Item = Effect>>(effects: I) -> Self {
        effects.into_iter().fold(Self::EMPTY, Self::with)
    }
}

const fn bit(effect: Effect) -> u16 {
    1 << effect as u16
}

/// The effects of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandEffects {
    /// Effects of the operation, whatever its options are. Empty for a program that is in no table.
    pub operation: EffectSet,
    /// Effects beyond these, of options and operands.
    pub added: Vec<AddedEffect>,
    /// The words that choose the operation: `git push`, `npm run build`, `python3 -m pytest`. Empty for a program that is in
    /// no table.
    pub name: Vec<String>,
    /// All spellings of each option that chooses another machine, account or repository. A pattern with a wildcard covers the
    /// command only if it shows one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Vec<String>>,
    /// The targets of a build tool, each of which is an operation of its own. A pattern with a wildcard that shows one of them
    /// covers the command only if it shows them all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
}

/// An effect that a word of a command adds to those of the operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedEffect {
    pub effect: Effect,
    /// All spellings of the option, or the operand. A pattern that has one of them as a word covers the effect.
    pub words: Vec<String>,
}

impl CommandEffects {
    /// Those of a command that reads.
    pub fn reading() -> Self {
        Self { operation: EffectSet::READING, ..Self::default() }
    }

    pub fn all(&self) -> EffectSet {
        self.added.iter().fold(self.operation, |all, added| all.with(added.effect))
    }

    /// Adds the effects of another command, where it is not certain which of the two runs.
    pub fn join(&mut self, other: Self) {
        self.operation.0 |= other.operation.0;
        self.added.extend(other.added);
        self.places.extend(other.places);
        self.targets.extend(other.targets);
    }
}
