//! The colours of the screen.

use clap::ValueEnum;
use ratatui::style::{Color, Modifier, Style};

use crate::exit::usage;
use crate::views::Tone;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThemeName {
    // Not documentation, which would make the help of toolctl long.
    // The terminal's own 16 colours.
    #[default]
    Terminal,
    // For a dark background.
    Dark,
    // For a light background.
    Light,
    // Bright colours and bold text on black.
    HighContrast,
}

impl ThemeName {
    /// # Errors
    /// There is no such theme.
    pub(super) fn named(name: &str) -> anyhow::Result<Self> {
        Self::from_str(name, true).map_err(|_| {
            let known: Vec<String> = Self::value_variants().iter().map(|theme| theme.label()).collect();
            usage(format!("TOOLCTL_THEME is {name:?}; expected one of {}", known.join(", ")))
        })
    }

    pub(super) fn label(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Theme {
    pub(super) name: ThemeName,
    /// `NO_COLOR`: texts differ only by bold, dim and reversed letters.
    colourless: bool,
}

impl Theme {
    /// `wanted` comes from the command line; `colorfgbg` and `no_color` are the variables of those names.
    pub(super) fn detect(wanted: Option<ThemeName>, colorfgbg: Option<&str>, no_color: Option<&str>) -> Self {
        // The last part is the number of the background colour; 7 and 9 to 15 are light.
        let background = colorfgbg.and_then(|text| text.rsplit(';').next()?.parse::<u8>().ok());
        let detected = match background {
            Some(7 | 9..=15) => ThemeName::Light,
            Some(0..=6 | 8) => ThemeName::Dark,
            Some(_) | None => ThemeName::Terminal,
        };
        Self { name: wanted.unwrap_or(detected), colourless: no_color.is_some_and(|text| !text.is_empty()) }
    }

    pub(super) fn next(self) -> Self {
        let all = ThemeName::value_variants();
        let at = all.iter().position(|name| *name == self.name).unwrap_or(0);
        Self { name: all[(at + 1) % all.len()], ..self }
    }

    pub(super) fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        if self.colourless {
            return match tone {
                Tone::Plain | Tone::Name | Tone::Good => plain,
                Tone::Dim => plain.add_modifier(Modifier::DIM),
                Tone::Warn | Tone::Bad | Tone::Heading => plain.add_modifier(Modifier::BOLD),
            };
        }
        match (self.name, tone) {
            (ThemeName::HighContrast, Tone::Plain | Tone::Dim) => plain.fg(Color::White),
            (_, Tone::Plain) => plain,
            (ThemeName::Terminal, Tone::Dim) => plain.add_modifier(Modifier::DIM),
            (_, Tone::Heading) => self.style(Tone::Name).add_modifier(Modifier::BOLD),
            (ThemeName::Terminal, tone) => plain.fg(match tone {
                Tone::Good => Color::Green,
                Tone::Warn => Color::Yellow,
                Tone::Bad => Color::Red,
                _ => Color::Cyan,
            }),
            (ThemeName::Dark, tone) => plain.fg(match tone {
                Tone::Dim => Color::Rgb(0x8a, 0x91, 0x99),
                Tone::Good => Color::Rgb(0x98, 0xc3, 0x79),
                Tone::Warn => Color::Rgb(0xe5, 0xc0, 0x7b),
                Tone::Bad => Color::Rgb(0xf0, 0x71, 0x78),
                _ => Color::Rgb(0x61, 0xaf, 0xef),
            }),
            (ThemeName::Light, tone) => plain.fg(match tone {
                Tone::Dim => Color::Rgb(0x6a, 0x6f, 0x77),
                Tone::Good => Color::Rgb(0x1a, 0x7f, 0x37),
                Tone::Warn => Color::Rgb(0x8a, 0x5a, 0x00),
                Tone::Bad => Color::Rgb(0xc0, 0x1c, 0x28),
                _ => Color::Rgb(0x05, 0x50, 0xae),
            }),
            (ThemeName::HighContrast, tone) => plain.add_modifier(Modifier::BOLD).fg(match tone {
                Tone::Good => Color::LightGreen,
                Tone::Warn => Color::LightYellow,
                Tone::Bad => Color::LightRed,
                _ => Color::LightCyan,
            }),
        }
    }

    /// The whole screen.
    pub(super) fn base(self) -> Style {
        match self.name {
            ThemeName::HighContrast if !self.colourless => Style::new().fg(Color::White).bg(Color::Black),
            _ => Style::new(),
        }
    }

    /// The selected row or tab, in one colour.
    pub(super) fn selected(self) -> Style {
        // Over the colours of the cells, which would make a bar of many colours.
        let (front, back) = match self.name {
            ThemeName::HighContrast if !self.colourless => (Color::White, Color::Black),
            _ => (Color::Reset, Color::Reset),
        };
        let no_weight = Modifier::DIM | Modifier::BOLD;
        Style::new().fg(front).bg(back).remove_modifier(no_weight).add_modifier(Modifier::REVERSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_of_the_terminal_chooses_the_theme_and_an_option_goes_before_it() {
        let name = |wanted, background| Theme::detect(wanted, background, None).name;
        assert_eq!(name(None, Some("0;15")), ThemeName::Light);
        assert_eq!(name(None, Some("15;default;0")), ThemeName::Dark);
        assert_eq!(name(None, Some("nonsense")), ThemeName::Terminal);
        assert_eq!(name(Some(ThemeName::Dark), Some("0;15")), ThemeName::Dark);
    }

    #[test]
    fn no_color_leaves_no_colour_in_any_theme() {
        let mut theme = Theme::detect(None, None, Some("1"));
        for _ in ThemeName::value_variants() {
            for tone in [Tone::Plain, Tone::Dim, Tone::Name, Tone::Good, Tone::Warn, Tone::Bad, Tone::Heading] {
                assert_eq!((theme.style(tone).fg, theme.style(tone).bg), (None, None));
            }
            assert_eq!(theme.base(), Style::new());
            theme = theme.next();
        }
    }
}
