//! Markdown as styled lines of a given width: headings, emphasis, lists, quotes, code, links, rules, tables as text.
//!
//! Knows the theme, not the model. The text is foreign and is cleaned on its way.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::glyphs::Glyphs;
use super::text;
use super::theme::Theme;

/// Renders markdown to lines of at most `width` columns (code is not wrapped, it is cut by whoever draws it).
pub(super) fn render(source: &str, width: usize, theme: &Theme, glyphs: &Glyphs) -> Vec<Line<'static>> {
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_TABLES;
    let mut writer = Writer {
        theme,
        glyphs,
        width: width.max(8),
        out: Vec::new(),
        words: Vec::new(),
        styles: vec![theme.text()],
        lists: Vec::new(),
        marker: None,
        quotes: 0,
        code: None,
        link: None,
    };
    // Cleaned before it is parsed: the parser would cut an escape sequence in two at its bracket.
    let source = text::lines(source).collect::<Vec<_>>().join("\n");
    for event in Parser::new_ext(&source, options) {
        writer.event(event);
    }
    writer.flush();
    while writer.out.last().is_some_and(|l| l.spans.is_empty()) {
        writer.out.pop();
    }
    writer.out
}

struct Writer<'a> {
    theme: &'a Theme,
    glyphs: &'a Glyphs,
    width: usize,
    out: Vec<Line<'static>>,
    /// The paragraph so far.
    words: Vec<(String, Style)>,
    styles: Vec<Style>,
    /// The open lists: the next number of each, or none for bullets.
    lists: Vec<Option<u64>>,
    /// What stands before the next line of an item.
    marker: Option<String>,
    quotes: usize,
    /// The code block's text so far.
    code: Option<String>,
    link: Option<String>,
}

impl Writer<'_> {
    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(content) => match self.code.as_mut() {
                Some(code) => code.push_str(&content),
                None => self.words.push((text::clean(&content).into_owned(), self.style())),
            },
            Event::Code(content) => {
                self.words.push((text::clean(&content).into_owned(), self.theme.info()));
            }
            Event::SoftBreak => self.words.push((" ".to_owned(), self.style())),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.gap();
                let rule = self.glyphs.horizontal.repeat(self.width.min(40));
                self.out.push(Line::from(Span::styled(rule, self.theme.faint())));
                self.out.push(Line::default());
            }
            Event::TaskListMarker(done) => {
                let sign = if done { "[x] " } else { "[ ] " };
                self.words.push((sign.to_owned(), self.theme.accent()));
            }
            Event::Html(content) | Event::InlineHtml(content) => {
                self.words.push((text::clean(content.trim_end()).into_owned(), self.theme.muted()));
            }
            Event::InlineMath(content) | Event::DisplayMath(content) => {
                self.words.push((text::clean(&content).into_owned(), self.theme.info()));
            }
            Event::FootnoteReference(name) => {
                self.words.push((format!("[{}]", text::clean(&name)), self.theme.muted()));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.gap();
                let style = match level {
                    HeadingLevel::H1 | HeadingLevel::H2 => self.theme.accent().add_modifier(Modifier::BOLD),
                    _ => self.theme.strong(),
                };
                self.push(style);
            }
            Tag::Emphasis => self.push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.push(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(text::clean(&dest_url).into_owned());
                self.push(self.theme.accent().add_modifier(Modifier::UNDERLINED));
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.quotes += 1;
            }
            Tag::List(start) => {
                self.flush();
                self.lists.push(start);
            }
            Tag::Item => {
                self.flush();
                let sign = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let sign = format!("{number}. ");
                        *number += 1;
                        sign
                    }
                    _ => format!("{} ", if self.glyphs.set == super::glyphs::GlyphSet::Unicode { "•" } else { "-" }),
                };
                self.marker = Some(sign);
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.out.push(Line::from(Span::styled(text::clean(&language).into_owned(), self.theme.faint())));
                }
                self.code = Some(String::new());
            }
            Tag::TableCell if !self.words.is_empty() => {
                self.words.push(("  ".to_owned(), self.theme.faint()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.out.push(Line::default());
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some(target) = self.link.take()
                    && self.words.last().is_some_and(|(said, _)| *said != target)
                {
                    self.words.push((format!(" ({target})"), self.theme.faint()));
                }
            }
            TagEnd::Paragraph => {
                self.flush();
                if self.lists.is_empty() {
                    self.out.push(Line::default());
                }
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.out.push(Line::default());
                }
            }
            TagEnd::Item | TagEnd::TableRow | TagEnd::TableHead => self.flush(),
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                for content in text::lines(code.trim_end_matches('\n')) {
                    let spans = vec![
                        Span::styled(format!("{} ", self.glyphs.vertical), self.theme.faint()),
                        Span::styled(content.into_owned(), self.theme.info()),
                    ];
                    self.out.push(Line::from(spans));
                }
                self.out.push(Line::default());
            }
            _ => {}
        }
    }

    fn gap(&mut self) {
        self.flush();
        if self.out.last().is_some_and(|l| !l.spans.is_empty()) {
            self.out.push(Line::default());
        }
    }

    /// Wraps the paragraph so far into lines, styles kept.
    fn flush(&mut self) {
        if self.words.is_empty() {
            return;
        }
        let words = std::mem::take(&mut self.words);
        let depth = self.lists.len().saturating_sub(1) * 2;
        let marker = self.marker.take();
        let indent = depth + if self.lists.is_empty() { 0 } else { marker.as_ref().map_or(2, |m| text::width(m)) };
        let bars = self.quotes * 2;
        let room = self.width.saturating_sub(indent + bars).max(4);
        let mut first = true;
        for spans in wrap_styled(&words, room) {
            let mut line = Vec::new();
            for _ in 0..self.quotes {
                line.push(Span::styled(format!("{} ", self.glyphs.vertical), self.theme.faint()));
            }
            let lead = match (&marker, first) {
                (Some(sign), true) => format!("{}{sign}", " ".repeat(depth)),
                _ => " ".repeat(indent),
            };
            if !lead.is_empty() {
                line.push(Span::styled(lead, self.theme.accent()));
            }
            line.extend(spans);
            self.out.push(Line::from(line));
            first = false;
        }
    }
}

/// Wraps text of several styles at blanks.
fn wrap_styled(words: &[(String, Style)], width: usize) -> Vec<Vec<Span<'static>>> {
    let whole: String = words.iter().map(|(said, _)| said.as_str()).collect();
    let wrapped = text::wrap(&whole, width);
    let mut pieces = words.iter().flat_map(|(said, style)| said.chars().map(move |c| (c, *style))).peekable();
    let mut lines = Vec::new();
    for content in wrapped {
        // What the wrap dropped at the end of the line before is blank.
        if !content.starts_with(' ') {
            while pieces.peek().is_some_and(|(c, _)| *c == ' ') && !content.is_empty() {
                pieces.next();
            }
        }
        let mut spans: Vec<Span<'static>> = Vec::new();
        for _ in content.chars() {
            let Some((c, style)) = pieces.next() else { break };
            match spans.last_mut() {
                Some(last) if last.style == style => last.content.to_mut().push(c),
                _ => spans.push(Span::styled(c.to_string(), style)),
            }
        }
        lines.push(spans);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::glyphs::GlyphSet;
    use super::super::theme::{Depth, ThemeName};
    use super::*;

    fn plain(source: &str, width: usize) -> Vec<String> {
        let theme = Theme::new(ThemeName::Dark, Depth::True);
        render(source, width, &theme, &Glyphs::of(GlyphSet::Unicode))
            .iter()
            .map(|l| l.spans.iter().map(|s| s.content.as_ref()).collect::<String>().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn blocks_come_out_as_lines() {
        let source = "# Plan\n\nFirst **tags**, then `list`.\n\n- one\n- two\n  - deep\n\n1. a\n2. b\n\n```sh\ncargo test\n```\n\n> said";
        assert_eq!(
            plain(source, 40),
            [
                "Plan",
                "",
                "First tags, then list.",
                "",
                "• one",
                "• two",
                "  • deep",
                "",
                "1. a",
                "2. b",
                "",
                "sh",
                "│ cargo test",
                "",
                "│ said"
            ]
        );
    }

    /// Styles stay on their words when a paragraph wraps, and no control character comes through.
    #[test]
    fn wrapping_keeps_the_styles() {
        let theme = Theme::new(ThemeName::Dark, Depth::True);
        let lines = render("aaa **bbb ccc** d\u{1b}[31mdd", 8, &theme, &Glyphs::of(GlyphSet::Unicode));
        let bold: String = lines
            .iter()
            .flat_map(|l| &l.spans)
            .filter(|s| s.style.add_modifier.contains(Modifier::BOLD))
            .map(|s| s.content.trim().to_owned() + "|")
            .collect();
        assert_eq!(bold, "bbb|ccc|");
        assert_eq!(plain("a\u{1b}[31mb", 20), ["ab"]);
    }
}
