//! The theme, as data: meanings to styles, for a dark and a light background and four colour depths.
//!
//! Views name meanings and never a colour; this is the only file that builds one. Knows the wire's agent colours and
//! nothing of the model.

use ratatui::style::{Color, Modifier, Style};

use crate::protocol;

/// The background that the colours are chosen for; the terminal's own background is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThemeName {
    Dark,
    Light,
}

/// How many colours the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    True,
    Indexed,
    Ansi,
    /// `NO_COLOR`: bold, dim, underline and reverse only.
    None,
}

impl Depth {
    /// What the environment promises (`NO_COLOR`, `COLORTERM`, `TERM`); `read` looks a variable up.
    pub fn detect(read: impl Fn(&str) -> Option<String>) -> Self {
        let term = read("TERM").unwrap_or_default();
        let colorterm = read("COLORTERM").unwrap_or_default();
        if read("NO_COLOR").is_some_and(|v| !v.is_empty()) || term == "dumb" {
            Self::None
        } else if matches!(colorterm.as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
            Self::True
        } else if term.contains("256color") || term.contains("kitty") || term.contains("alacritty") {
            Self::Indexed
        } else {
            Self::Ansi
        }
    }
}

/// A colour by meaning: exact, and the one of the terminal's sixteen that stands for it.
#[derive(Clone, Copy, Debug)]
struct Ink {
    rgb: (u8, u8, u8),
    ansi: Color,
}

const fn ink(rgb: u32, ansi: Color) -> Ink {
    Ink { rgb: ((rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8), ansi }
}

#[derive(Clone, Copy, Debug)]
struct Palette {
    /// The background that contrast is computed against.
    assumed_background: (u8, u8, u8),
    muted: Ink,
    faint: Ink,
    accent: Ink,
    needs: Ink,
    ok: Ink,
    warn: Ink,
    error: Ink,
    info: Ink,
    selected: Ink,
    strip: Ink,
    added: Ink,
    removed: Ink,
    added_ground: Ink,
    removed_ground: Ink,
    added_word: Ink,
    removed_word: Ink,
}

const DARK: Palette = Palette {
    assumed_background: (0x14, 0x16, 0x1b),
    muted: ink(0x9aa1ad, Color::Gray),
    faint: ink(0x5d6470, Color::DarkGray),
    accent: ink(0x7fb4e6, Color::LightBlue),
    needs: ink(0xf2b65a, Color::LightYellow),
    ok: ink(0x8cc97f, Color::LightGreen),
    warn: ink(0xe0a94e, Color::Yellow),
    error: ink(0xf0807a, Color::LightRed),
    info: ink(0x7cc4c4, Color::LightCyan),
    selected: ink(0x2b3342, Color::DarkGray),
    strip: ink(0x1e222a, Color::Reset),
    added: ink(0x9fd69a, Color::LightGreen),
    removed: ink(0xf09a94, Color::LightRed),
    added_ground: ink(0x16291c, Color::Reset),
    removed_ground: ink(0x301b1d, Color::Reset),
    added_word: ink(0x265c34, Color::Reset),
    removed_word: ink(0x6b2c2f, Color::Reset),
};

const LIGHT: Palette = Palette {
    assumed_background: (0xfa, 0xfa, 0xf7),
    muted: ink(0x5b616b, Color::DarkGray),
    faint: ink(0x9a9fa8, Color::Gray),
    accent: ink(0x1f5fa8, Color::Blue),
    needs: ink(0x9a5b00, Color::Yellow),
    ok: ink(0x2c7a2c, Color::Green),
    warn: ink(0x8f5a00, Color::Yellow),
    error: ink(0xb3261e, Color::Red),
    info: ink(0x0f6f75, Color::Cyan),
    selected: ink(0xdde6f2, Color::Gray),
    strip: ink(0xeeeee9, Color::Reset),
    added: ink(0x1f6a2a, Color::Green),
    removed: ink(0xa3241f, Color::Red),
    added_ground: ink(0xe4f4e4, Color::Reset),
    removed_ground: ink(0xfbe6e4, Color::Reset),
    added_word: ink(0xaedfb2, Color::Reset),
    removed_word: ink(0xf3b9b5, Color::Reset),
};

/// Meanings to styles.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    name: ThemeName,
    depth: Depth,
    palette: Palette,
}

impl Theme {
    /// The theme for a background and a colour depth.
    pub const fn new(name: ThemeName, depth: Depth) -> Self {
        let palette = match name {
            ThemeName::Dark => DARK,
            ThemeName::Light => LIGHT,
        };
        Self { name, depth, palette }
    }

    /// The background it is made for.
    pub const fn name(&self) -> ThemeName {
        self.name
    }

    /// The colours it uses.
    pub const fn depth(&self) -> Depth {
        self.depth
    }

    fn color(&self, ink: Ink) -> Color {
        match self.depth {
            Depth::True => Color::Rgb(ink.rgb.0, ink.rgb.1, ink.rgb.2),
            Depth::Indexed => Color::Indexed(nearest_256(ink.rgb)),
            Depth::Ansi => ink.ansi,
            Depth::None => Color::Reset,
        }
    }

    fn fg(&self, ink: Ink) -> Style {
        match self.depth {
            Depth::None => Style::new(),
            Depth::True | Depth::Indexed | Depth::Ansi => Style::new().fg(self.color(ink)),
        }
    }

    /// A tint behind text; on few colours there is none, and the sign in front says it.
    fn ground(&self, ink: Ink) -> Style {
        match self.depth {
            Depth::True | Depth::Indexed => Style::new().bg(self.color(ink)),
            Depth::Ansi | Depth::None => Style::new(),
        }
    }

    /// Plain text.
    pub fn text(&self) -> Style {
        Style::new()
    }

    /// Headings and what the eye should find first.
    pub fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Secondary text.
    pub fn muted(&self) -> Style {
        match self.depth {
            Depth::None => Style::new().add_modifier(Modifier::DIM),
            Depth::True | Depth::Indexed | Depth::Ansi => self.fg(self.palette.muted),
        }
    }

    /// Lines, ghosts, empty places.
    pub fn faint(&self) -> Style {
        match self.depth {
            Depth::None => Style::new().add_modifier(Modifier::DIM),
            Depth::True | Depth::Indexed | Depth::Ansi => self.fg(self.palette.faint),
        }
    }

    /// The interface's own colour: focus, keys, links.
    pub fn accent(&self) -> Style {
        self.fg(self.palette.accent)
    }

    /// The edge of a pane, with and without focus.
    pub fn edge(&self, focus: Focused) -> Style {
        match focus {
            Focused::Yes => self.accent(),
            Focused::No => self.faint(),
        }
    }

    /// A pane's title.
    pub fn title(&self, focus: Focused) -> Style {
        match focus {
            Focused::Yes => self.accent().add_modifier(Modifier::BOLD),
            Focused::No => self.muted().add_modifier(Modifier::BOLD),
        }
    }

    /// A key that can be pressed.
    pub fn key(&self) -> Style {
        self.accent().add_modifier(Modifier::BOLD)
    }

    /// The person is waited for.
    pub fn needs(&self) -> Style {
        self.fg(self.palette.needs).add_modifier(Modifier::BOLD)
    }

    /// Good news: passed, merged, connected.
    pub fn ok(&self) -> Style {
        self.fg(self.palette.ok)
    }

    /// Look at this some time.
    pub fn warn(&self) -> Style {
        self.fg(self.palette.warn)
    }

    /// Something failed.
    pub fn error(&self) -> Style {
        match self.depth {
            Depth::None => Style::new().add_modifier(Modifier::BOLD),
            Depth::True | Depth::Indexed | Depth::Ansi => self.fg(self.palette.error),
        }
    }

    /// Work that goes on.
    pub fn info(&self) -> Style {
        self.fg(self.palette.info)
    }

    /// The chosen row of a list.
    pub fn selected(&self, focus: Focused) -> Style {
        match (self.depth, focus) {
            (Depth::True | Depth::Indexed, _) => Style::new().bg(self.color(self.palette.selected)),
            (Depth::Ansi | Depth::None, Focused::Yes) => Style::new().add_modifier(Modifier::REVERSED),
            (Depth::Ansi | Depth::None, Focused::No) => Style::new().add_modifier(Modifier::BOLD),
        }
    }

    /// The ground of a strip such as a nameplate.
    pub fn strip(&self) -> Style {
        self.ground(self.palette.strip)
    }

    /// An added line: its text, on its ground.
    pub fn added(&self) -> Style {
        self.fg(self.palette.added)
    }

    /// A removed line.
    pub fn removed(&self) -> Style {
        self.fg(self.palette.removed)
    }

    /// The ground of an added line.
    pub fn added_ground(&self) -> Style {
        self.ground(self.palette.added_ground)
    }

    /// The ground of a removed line.
    pub fn removed_ground(&self) -> Style {
        self.ground(self.palette.removed_ground)
    }

    /// What changed within an added line.
    pub fn added_word(&self) -> Style {
        self.word(self.palette.added_word)
    }

    /// What changed within a removed line.
    pub fn removed_word(&self) -> Style {
        self.word(self.palette.removed_word)
    }

    fn word(&self, ink: Ink) -> Style {
        match self.depth {
            Depth::True | Depth::Indexed => self.ground(ink),
            Depth::Ansi | Depth::None => Style::new().add_modifier(Modifier::UNDERLINED),
        }
    }

    /// Where the cursor of a text is.
    pub fn cursor(&self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// An agent's colour, moved towards the text colour until it can be read on the assumed background.
    pub fn agent(&self, color: &protocol::Color) -> Style {
        let rgb = readable(color.rgb(), self.palette.assumed_background);
        match self.depth {
            Depth::True => Style::new().fg(Color::Rgb(rgb.0, rgb.1, rgb.2)),
            Depth::Indexed => Style::new().fg(Color::Indexed(nearest_256(rgb))),
            Depth::Ansi => Style::new().fg(nearest_ansi(rgb, self.name)),
            Depth::None => Style::new(),
        }
    }

    /// A colour that a highlighter chose, degraded to the depth.
    pub fn syntax(&self, rgb: (u8, u8, u8)) -> Style {
        match self.depth {
            Depth::True => {
                let rgb = readable(rgb, self.palette.assumed_background);
                Style::new().fg(Color::Rgb(rgb.0, rgb.1, rgb.2))
            }
            Depth::Indexed => {
                Style::new().fg(Color::Indexed(nearest_256(readable(rgb, self.palette.assumed_background))))
            }
            Depth::Ansi | Depth::None => Style::new(),
        }
    }
}

/// Whether a thing has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focused {
    Yes,
    No,
}

impl Focused {
    /// `Yes` where the condition holds.
    pub const fn when(condition: bool) -> Self {
        if condition { Self::Yes } else { Self::No }
    }
}

/// Relative luminance as WCAG 2 defines it, 0 to 1.
fn luminance(rgb: (u8, u8, u8)) -> f64 {
    let channel = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(rgb.0) + 0.7152 * channel(rgb.1) + 0.0722 * channel(rgb.2)
}

/// Contrast ratio as WCAG 2 defines it, 1 to 21.
pub fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Whether dark text reads better on it than light text.
pub(super) fn is_light(rgb: (u8, u8, u8)) -> bool {
    contrast(rgb, (0, 0, 0)) > contrast(rgb, (255, 255, 255))
}

/// WCAG AA for text.
const READABLE: f64 = 4.5;

fn readable(rgb: (u8, u8, u8), background: (u8, u8, u8)) -> (u8, u8, u8) {
    let goal = if luminance(background) < 0.5 { 255u16 } else { 0 };
    let mut best = rgb;
    for step in 0..=20u16 {
        let mix = |c: u8| ((u16::from(c) * (20 - step) + goal * step) / 20) as u8;
        best = (mix(rgb.0), mix(rgb.1), mix(rgb.2));
        if contrast(best, background) >= READABLE {
            break;
        }
    }
    best
}

fn distance(a: (u8, u8, u8), b: (u8, u8, u8)) -> u32 {
    // Weighted towards green as the eye is; good enough for choosing among few.
    let d = |x: u8, y: u8| u32::from(x.abs_diff(y)).pow(2);
    2 * d(a.0, b.0) + 4 * d(a.1, b.1) + 3 * d(a.2, b.2)
}

fn nearest_256(rgb: (u8, u8, u8)) -> u8 {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let cube = (0..216u8).map(|n| {
        let step = |i: u8| STEPS.get(usize::from(i)).copied().unwrap_or(0);
        (16 + n, (step(n / 36), step(n / 6 % 6), step(n % 6)))
    });
    let greys = (0..24u8).map(|n| (232 + n, (8 + n * 10, 8 + n * 10, 8 + n * 10)));
    cube.chain(greys).min_by_key(|(_, candidate)| distance(rgb, *candidate)).map_or(16, |(index, _)| index)
}

fn nearest_ansi(rgb: (u8, u8, u8), name: ThemeName) -> Color {
    const BRIGHT: [(Color, (u8, u8, u8)); 6] = [
        (Color::LightRed, (0xf0, 0x60, 0x60)),
        (Color::LightGreen, (0x70, 0xd0, 0x70)),
        (Color::LightYellow, (0xe8, 0xc8, 0x50)),
        (Color::LightBlue, (0x70, 0x90, 0xf0)),
        (Color::LightMagenta, (0xd0, 0x70, 0xd0)),
        (Color::LightCyan, (0x60, 0xd0, 0xd0)),
    ];
    const DEEP: [(Color, (u8, u8, u8)); 6] = [
        (Color::Red, (0xa0, 0x20, 0x20)),
        (Color::Green, (0x20, 0x80, 0x20)),
        (Color::Yellow, (0x90, 0x70, 0x10)),
        (Color::Blue, (0x20, 0x40, 0xb0)),
        (Color::Magenta, (0x90, 0x20, 0x90)),
        (Color::Cyan, (0x10, 0x80, 0x80)),
    ];
    let set = match name {
        ThemeName::Dark => BRIGHT,
        ThemeName::Light => DEEP,
    };
    set.iter().min_by_key(|(_, candidate)| distance(rgb, *candidate)).map_or(Color::Reset, |(color, _)| *color)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text in the built-in themes keeps the contrast that WCAG asks for.
    #[test]
    fn text_colours_have_contrast() {
        for palette in [DARK, LIGHT] {
            for ink in [
                palette.muted,
                palette.accent,
                palette.needs,
                palette.ok,
                palette.warn,
                palette.error,
                palette.info,
                palette.added,
                palette.removed,
            ] {
                let ratio = contrast(ink.rgb, palette.assumed_background);
                assert!(ratio >= READABLE, "{:02x?} has {ratio:.2}", ink.rgb);
            }
            assert!(contrast(palette.added.rgb, palette.added_ground.rgb) >= READABLE);
            assert!(contrast(palette.removed.rgb, palette.removed_ground.rgb) >= READABLE);
        }
    }

    /// The darkest and the lightest agent colours of the cast stay readable on both backgrounds.
    #[test]
    fn agent_colours_are_made_readable() {
        for color in [(0x80, 0x2f, 0x6e), (0x3d, 0x45, 0x80), (0xe0, 0xa2, 0xbf), (0, 0, 0), (255, 255, 255)] {
            for palette in [DARK, LIGHT] {
                let ground = palette.assumed_background;
                assert!(contrast(readable(color, ground), ground) >= READABLE, "{color:02x?}");
            }
        }
    }

    #[test]
    fn the_environment_decides_the_depth() {
        let check = |vars: &[(&str, &str)], expect: Depth| {
            let found =
                Depth::detect(|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()));
            assert_eq!(found, expect, "{vars:?}");
        };
        check(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], Depth::True);
        check(&[("TERM", "xterm-256color")], Depth::Indexed);
        check(&[("TERM", "linux")], Depth::Ansi);
        check(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")], Depth::None);
        check(&[("TERM", "dumb")], Depth::None);
    }
}
