//! A picture of a buffer: SVG with one text element per run of equal style, on a grid of fixed cells.

use std::fmt::Write;

use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Position;
use ratatui::style::{Color, Modifier};

/// Pixels of a cell; DejaVu Sans Mono at 14 px advances 8.43.
const CELL: (f64, f64) = (8.43, 18.0);
const FONT: f64 = 14.0;
const MARGIN: f64 = 10.0;

/// The terminal's own colours.
pub struct Ground {
    pub background: &'static str,
    pub text: &'static str,
}

pub const DARK: Ground = Ground { background: "#14161b", text: "#d7dae0" };
pub const LIGHT: Ground = Ground { background: "#fafaf7", text: "#22252a" };

const ANSI: [&str; 16] = [
    "#1b1d23", "#c75b56", "#7fae63", "#cfa24b", "#5f8fcf", "#a97fc4", "#5fb0b0", "#b8bdc7", "#5d6470", "#f0807a",
    "#9fd68a", "#f2c86a", "#8fb9f0", "#d0a0e8", "#8fdada", "#f0f2f5",
];

fn indexed(n: u8) -> String {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    match n {
        0..=15 => ANSI[usize::from(n)].to_owned(),
        16..=231 => {
            let n = n - 16;
            let s = |i: u8| STEPS[usize::from(i)];
            format!("#{:02x}{:02x}{:02x}", s(n / 36), s(n / 6 % 6), s(n % 6))
        }
        232.. => {
            let v = 8 + (n - 232) * 10;
            format!("#{v:02x}{v:02x}{v:02x}")
        }
    }
}

fn color(color: Color, reset: &str) -> String {
    match color {
        Color::Reset => reset.to_owned(),
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        Color::Indexed(n) => indexed(n),
        Color::Black => indexed(0),
        Color::Red => indexed(1),
        Color::Green => indexed(2),
        Color::Yellow => indexed(3),
        Color::Blue => indexed(4),
        Color::Magenta => indexed(5),
        Color::Cyan => indexed(6),
        Color::Gray => indexed(7),
        Color::DarkGray => indexed(8),
        Color::LightRed => indexed(9),
        Color::LightGreen => indexed(10),
        Color::LightYellow => indexed(11),
        Color::LightBlue => indexed(12),
        Color::LightMagenta => indexed(13),
        Color::LightCyan => indexed(14),
        Color::White => indexed(15),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[derive(Clone, PartialEq)]
struct Look {
    fg: String,
    bg: String,
    modifier: Modifier,
}

pub fn picture(buffer: &Buffer, cursor: Option<Position>, ground: &Ground) -> String {
    let area = buffer.area;
    let width = f64::from(area.width) * CELL.0 + 2.0 * MARGIN;
    let height = f64::from(area.height) * CELL.1 + 2.0 * MARGIN;
    let mut out = String::new();
    writeln!(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"{FONT}\">").unwrap();
    writeln!(out, "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>", ground.background).unwrap();
    for y in area.top()..area.bottom() {
        let top = MARGIN + f64::from(y) * CELL.1;
        let mut runs: Vec<(u16, u16, Look, String)> = Vec::new();
        let mut x = area.left();
        while x < area.right() {
            let cell = &buffer[(x, y)];
            let wide = cell.symbol().cell_width().max(1);
            let mut fg = color(cell.fg, ground.text);
            let mut bg = color(cell.bg, ground.background);
            if cell.modifier.contains(Modifier::REVERSED) {
                std::mem::swap(&mut fg, &mut bg);
            }
            if cursor == Some(Position { x, y }) {
                std::mem::swap(&mut fg, &mut bg);
            }
            let look = Look { fg, bg, modifier: cell.modifier };
            // Wide and unusual signs get a run of their own, so that a font's advance cannot shift what follows.
            let plain = cell.symbol().is_ascii();
            match runs.last_mut() {
                Some((start, columns, last, text))
                    if *last == look && plain && text.is_ascii() && *start + *columns == x =>
                {
                    *columns += wide;
                    text.push_str(cell.symbol());
                }
                Some((start, columns, last, text))
                    if *last == look && cell.symbol() == "─" && text.ends_with('─') && *start + *columns == x =>
                {
                    *columns += wide;
                    text.push_str(cell.symbol());
                }
                _ => runs.push((x, wide, look, cell.symbol().to_owned())),
            }
            x += wide;
        }
        for (x, columns, look, text) in &runs {
            let left = MARGIN + f64::from(*x) * CELL.0;
            let wide = f64::from(*columns) * CELL.0;
            if look.bg != ground.background {
                writeln!(
                    out,
                    "<rect x=\"{left:.2}\" y=\"{top:.1}\" width=\"{wide:.2}\" height=\"{}\" fill=\"{}\"/>",
                    CELL.1, look.bg
                )
                .unwrap();
            }
            if text.trim().is_empty() {
                continue;
            }
            let mut style = String::new();
            if look.modifier.contains(Modifier::BOLD) {
                style.push_str(" font-weight=\"bold\"");
            }
            if look.modifier.contains(Modifier::ITALIC) {
                style.push_str(" font-style=\"italic\"");
            }
            if look.modifier.contains(Modifier::UNDERLINED) {
                style.push_str(" text-decoration=\"underline\"");
            }
            if look.modifier.contains(Modifier::DIM) {
                style.push_str(" opacity=\"0.6\"");
            }
            let baseline = top + 13.5;
            writeln!(
                out,
                "<text x=\"{left:.2}\" y=\"{baseline:.1}\" fill=\"{}\" textLength=\"{wide:.2}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\"{style}>{}</text>",
                look.fg,
                escape(text)
            )
            .unwrap();
        }
    }
    out.push_str("</svg>\n");
    out
}
