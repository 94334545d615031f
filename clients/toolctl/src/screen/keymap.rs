//! All keys of the screen, in one table: the dispatch, the footer and the help are made from it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::panel::Panel;

/// A key press that a binding is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoundKey {
    Char(char),
    Ctrl(char),
    Code(KeyCode),
}

/// Where a binding applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPlace {
    /// Everywhere, even while a text is typed.
    Always,
    /// In every panel.
    Panels,
    /// In this panel, and in the details of its items.
    In(Panel),
    /// In every panel, while there is no daemon.
    Gone,
    /// While a prompt is on the screen, which has the keys of its answers besides.
    Asked,
    /// While prompts wait that are not on the screen.
    Prompts,
    Details,
    Help,
    Confirm,
    /// In the help, in a question before something ends, and in a prompt.
    Scrolling,
    /// While a text is typed.
    Typing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyCommand {
    Quit,
    Help,
    /// Closes what lies over the panel, or clears the filter.
    Leave,
    Filter,
    Details,
    NextPanel,
    PreviousPanel,
    /// By the digit.
    ToPanel,
    Move(Movement),
    SortColumn,
    SortReverse,
    CopyId,
    CopyRow,
    ToggleMouse,
    NextTheme,
    CancelCall,
    KillShell,
    CloseSession,
    RaiseLevel,
    LowerLevel,
    Reload,
    Enable,
    Disable,
    CallTool,
    Undo,
    Revoke,
    AllowInProject,
    AllowAlways,
    StartDaemon,
    /// Pauses everything, or resumes it.
    Pause,
    NextPrompt,
    PreviousPrompt,
    PutAside,
    Yes,
    No,
    /// Ends a text that is typed.
    Accept,
    /// Removes the last character.
    Erase,
    EraseLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Movement {
    Down,
    Up,
    PageDown,
    PageUp,
    First,
    Last,
}

pub(super) struct KeyBinding {
    pub(super) place: KeyPlace,
    keys: &'static [BoundKey],
    /// The keys, as the help and the footer name them.
    pub(super) label: &'static str,
    /// A word for the footer; empty for a binding that only the help names.
    pub(super) short: &'static str,
    pub(super) help: &'static str,
    pub(super) command: KeyCommand,
}

const fn bind(
    place: KeyPlace,
    keys: &'static [BoundKey],
    label: &'static str,
    short: &'static str,
    help: &'static str,
    command: KeyCommand,
) -> KeyBinding {
    KeyBinding { place, keys, label, short, help, command }
}

use BoundKey::{Char, Code, Ctrl};
use KeyPlace::{Always, Asked, Confirm, Details, Gone, Help, In, Panels, Prompts, Scrolling, Typing};

const DOWN: &[BoundKey] = &[Char('j'), Code(KeyCode::Down)];
const UP: &[BoundKey] = &[Char('k'), Code(KeyCode::Up)];
const PAGE_DOWN: &[BoundKey] = &[Code(KeyCode::PageDown), Ctrl('f'), Char(' ')];
const PAGE_UP: &[BoundKey] = &[Code(KeyCode::PageUp), Ctrl('b')];
const FIRST: &[BoundKey] = &[Char('g'), Code(KeyCode::Home)];
const LAST: &[BoundKey] = &[Char('G'), Code(KeyCode::End)];
const LEAVE: &[BoundKey] = &[Code(KeyCode::Esc), Char('q')];
const DIGITS: &[BoundKey] =
    &[Char('1'), Char('2'), Char('3'), Char('4'), Char('5'), Char('6'), Char('7'), Char('8'), Char('9')];

/// The bindings; of two that apply, the first counts. The footer shows them in this order.
#[rustfmt::skip]
pub(super) const BINDINGS: &[KeyBinding] = &[
    bind(Always, &[Ctrl('c'), Ctrl('d')], "Ctrl-C", "", "quit", KeyCommand::Quit),

    bind(Confirm, &[Char('y'), Char('Y')], "y", "yes", "do it", KeyCommand::Yes),
    bind(Confirm, &[Char('n'), Char('N'), Code(KeyCode::Esc), Char('q')], "n Esc", "no", "leave it", KeyCommand::No),

    bind(Typing, &[Code(KeyCode::Enter)], "Enter", "accept", "end the text and use it", KeyCommand::Accept),
    bind(Typing, &[Code(KeyCode::Esc)], "Esc", "discard", "discard the text", KeyCommand::Leave),
    bind(Typing, &[Code(KeyCode::Backspace), Ctrl('h')], "Backspace", "", "remove the last character", KeyCommand::Erase),
    bind(Typing, &[Ctrl('u')], "Ctrl-U", "", "remove the whole text", KeyCommand::EraseLine),
    bind(Typing, &[Code(KeyCode::Down)], "↓", "", "select the next row", KeyCommand::Move(Movement::Down)),
    bind(Typing, &[Code(KeyCode::Up)], "↑", "", "select the previous row", KeyCommand::Move(Movement::Up)),

    bind(Help, &[Code(KeyCode::Esc), Char('q'), Char('?')], "Esc q ?", "back", "close the help", KeyCommand::Leave),

    bind(Asked, &[Code(KeyCode::Esc)], "Esc", "aside", "put the prompts that wait aside and use the panel; Ctrl-N brings them back", KeyCommand::PutAside),
    bind(Asked, &[Char('m')], "m", "", "mouse on or off; off, the terminal selects text", KeyCommand::ToggleMouse),
    bind(Asked, &[Char('?')], "?", "help", "show this help", KeyCommand::Help),
    bind(Asked, &[Char('q')], "q", "quit", "quit", KeyCommand::Quit),
    bind(Asked, &[Char('P')], "P", "", "pause everything, or resume it; asks first", KeyCommand::Pause),
    bind(Prompts, &[Ctrl('n')], "Ctrl-N", "next prompt", "the next prompt that waits", KeyCommand::NextPrompt),
    bind(Prompts, &[Ctrl('p')], "Ctrl-P", "", "the previous prompt that waits", KeyCommand::PreviousPrompt),

    bind(Scrolling, DOWN, "j ↓", "scroll", "scroll down", KeyCommand::Move(Movement::Down)),
    bind(Scrolling, UP, "k ↑", "", "scroll up", KeyCommand::Move(Movement::Up)),
    bind(Scrolling, PAGE_DOWN, "PgDn Space", "", "scroll a page down", KeyCommand::Move(Movement::PageDown)),
    bind(Scrolling, PAGE_UP, "PgUp", "", "scroll a page up", KeyCommand::Move(Movement::PageUp)),
    bind(Scrolling, FIRST, "g Home", "", "to the start", KeyCommand::Move(Movement::First)),
    bind(Scrolling, LAST, "G End", "", "to the end", KeyCommand::Move(Movement::Last)),

    bind(Details, LEAVE, "Esc q", "back", "close the details", KeyCommand::Leave),
    bind(Details, &[Char('?')], "?", "help", "show this help", KeyCommand::Help),
    bind(Details, DOWN, "j ↓", "scroll", "scroll down", KeyCommand::Move(Movement::Down)),
    bind(Details, UP, "k ↑", "", "scroll up", KeyCommand::Move(Movement::Up)),
    bind(Details, PAGE_DOWN, "PgDn Space", "", "scroll a page down", KeyCommand::Move(Movement::PageDown)),
    bind(Details, PAGE_UP, "PgUp", "", "scroll a page up", KeyCommand::Move(Movement::PageUp)),
    bind(Details, FIRST, "g Home", "", "to the start", KeyCommand::Move(Movement::First)),
    bind(Details, LAST, "G End", "", "to the end, and follow new lines", KeyCommand::Move(Movement::Last)),
    bind(Details, &[Char('c')], "c", "", "copy the id", KeyCommand::CopyId),
    bind(Details, &[Char('y')], "y", "copy", "copy all lines", KeyCommand::CopyRow),
    bind(Details, &[Char('m')], "m", "", "mouse on or off; off, the terminal selects text", KeyCommand::ToggleMouse),

    bind(Gone, &[Char('D')], "D", "start a daemon", "start a daemon", KeyCommand::StartDaemon),
    bind(Panels, &[Char('q')], "q", "quit", "quit", KeyCommand::Quit),
    bind(Panels, &[Char('?')], "?", "help", "show this help", KeyCommand::Help),
    bind(In(Panel::Calls), &[Char('x')], "x", "cancel", "cancel the call; asks first", KeyCommand::CancelCall),
    bind(In(Panel::Tools), &[Char('r')], "r", "run", "call the tool, with a form for its arguments", KeyCommand::CallTool),
    bind(In(Panel::Sources), &[Char('r')], "r", "reload", "reload the plugin; restart the server or reconnect, which asks first", KeyCommand::Reload),
    bind(In(Panel::Sources), &[Char('e')], "e", "enable", "enable the plugin permanently", KeyCommand::Enable),
    bind(In(Panel::Sources), &[Char('d')], "d", "disable", "disable the plugin permanently; asks first", KeyCommand::Disable),
    bind(In(Panel::Sessions), &[Char('x')], "x", "close", "close the session and cancel its calls; asks first", KeyCommand::CloseSession),
    bind(In(Panel::Sessions), &[Char('+')], "+", "level", "raise the level: more runs without an approval; asks first", KeyCommand::RaiseLevel),
    bind(In(Panel::Sessions), &[Char('-')], "-", "", "lower the level", KeyCommand::LowerLevel),
    bind(In(Panel::Changes), &[Char('u')], "u", "undo", "undo the changes of the call; shows the diff and asks first", KeyCommand::Undo),
    bind(In(Panel::Shells), &[Char('x')], "x", "kill", "kill the command; asks first", KeyCommand::KillShell),
    bind(In(Panel::Rules), &[Char('x')], "x", "revoke", "revoke the grant; asks first", KeyCommand::Revoke),
    bind(In(Panel::Rules), &[Char('a')], "a", "accept", "allow what is suggested, in the project of the folder where toolctl runs; asks first", KeyCommand::AllowInProject),
    bind(In(Panel::Rules), &[Char('A')], "A", "", "allow what is suggested everywhere; asks first", KeyCommand::AllowAlways),
    bind(Panels, &[Code(KeyCode::Enter)], "Enter", "details", "show the details of the row", KeyCommand::Details),
    bind(Panels, &[Char('/')], "/", "filter", "show only rows with these words", KeyCommand::Filter),
    bind(Panels, &[Char('s')], "s", "sort", "sort by the next column", KeyCommand::SortColumn),
    bind(Panels, &[Char('S')], "S", "", "reverse the order", KeyCommand::SortReverse),
    bind(Panels, &[Code(KeyCode::Tab), Code(KeyCode::Right), Char('l')], "Tab → l", "", "the next panel", KeyCommand::NextPanel),
    bind(Panels, &[Code(KeyCode::BackTab), Code(KeyCode::Left), Char('h')], "Shift-Tab ← h", "", "the previous panel", KeyCommand::PreviousPanel),
    bind(Panels, DIGITS, "1 to 9", "panel", "the panel of this number", KeyCommand::ToPanel),
    bind(Panels, DOWN, "j ↓", "", "the next row", KeyCommand::Move(Movement::Down)),
    bind(Panels, UP, "k ↑", "", "the previous row", KeyCommand::Move(Movement::Up)),
    bind(Panels, PAGE_DOWN, "PgDn Space", "", "a page down", KeyCommand::Move(Movement::PageDown)),
    bind(Panels, PAGE_UP, "PgUp", "", "a page up", KeyCommand::Move(Movement::PageUp)),
    bind(Panels, FIRST, "g Home", "", "the first row", KeyCommand::Move(Movement::First)),
    bind(Panels, LAST, "G End", "", "the last row", KeyCommand::Move(Movement::Last)),
    bind(Panels, &[Char('c')], "c", "", "copy the id of the row", KeyCommand::CopyId),
    bind(Panels, &[Char('y')], "y", "", "copy the row", KeyCommand::CopyRow),
    bind(Panels, &[Char('m')], "m", "", "mouse on or off; off, the terminal selects text", KeyCommand::ToggleMouse),
    bind(Panels, &[Char('t')], "t", "", "the next theme", KeyCommand::NextTheme),
    bind(Panels, &[Char('P')], "P", "", "pause everything, or resume it; asks first", KeyCommand::Pause),
    bind(Panels, &[Code(KeyCode::Esc)], "Esc", "", "clear the filter", KeyCommand::Leave),
];

/// The binding of a key, where these places apply.
pub(super) fn binding(places: &[KeyPlace], event: KeyEvent) -> Option<&'static KeyBinding> {
    applicable(places).find(|binding| binding.keys.iter().any(|key| key.is(event)))
}

pub(super) fn applicable(places: &[KeyPlace]) -> impl Iterator<Item = &'static KeyBinding> {
    BINDINGS.iter().filter(move |binding| binding.place == Always || places.contains(&binding.place))
}

impl BoundKey {
    fn is(self, event: KeyEvent) -> bool {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        match self {
            Self::Char(c) => event.code == KeyCode::Char(c) && !control && !event.modifiers.contains(KeyModifiers::ALT),
            Self::Ctrl(c) => event.code == KeyCode::Char(c) && control,
            Self::Code(code) => event.code == code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompts::ask::choices;

    #[test]
    fn no_key_has_two_meanings_in_one_place() {
        for panel in Panel::ALL {
            for places in [
                vec![Gone, Prompts, Panels, In(panel)],
                vec![Prompts, Details, In(panel)],
                vec![Prompts, Asked, Scrolling],
                vec![Confirm, Scrolling],
                vec![Typing],
                vec![Help, Scrolling],
            ] {
                let keys: Vec<BoundKey> = applicable(&places).flat_map(|binding| binding.keys).copied().collect();
                for (at, key) in keys.iter().enumerate() {
                    assert!(!keys[..at].contains(key), "{key:?} in {places:?}");
                }
            }
        }
    }

    /// The prompts of `proto/tests/answers.json` have all answers that there are.
    #[test]
    fn no_key_beside_a_prompt_is_one_that_answers() {
        let cases: serde_json::Value =
            serde_json::from_str(include_str!("../../../../proto/tests/answers.json")).unwrap();
        let asks = cases.as_array().unwrap().iter().map(|case| serde_json::from_value(case["ask"].clone()).unwrap());
        let answers: String = asks.flat_map(|ask| choices(&ask)).map(|choice| choice.key).collect();
        for c in answers.chars().chain("dnfo123456789".chars()) {
            let bound = binding(&[Asked, Prompts, Scrolling], KeyEvent::from(KeyCode::Char(c)));
            assert!(bound.is_none(), "{c}");
        }
        assert!(binding(&[Asked, Prompts, Scrolling], KeyEvent::from(KeyCode::Enter)).is_none());
    }

    #[test]
    fn the_document_names_every_key_of_a_panel() {
        let document = include_str!("../../SCREEN.md");
        for binding in BINDINGS {
            let entry = match binding.place {
                In(_) => format!("`{}` {}", binding.label, binding.help),
                Panels | Asked | Prompts | Scrolling | Details | Typing => {
                    format!("| `{}` | {} |", binding.label, binding.help)
                }
                Always | Gone => format!("`{}`", binding.label),
                // Their keys stand on the screen itself.
                Help | Confirm => continue,
            };
            assert!(document.contains(&entry), "SCREEN.md lacks: {entry}");
        }
    }
}
