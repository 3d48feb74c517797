//! The diff review: files with their counts, hunks with old and new line numbers, what changed within a line.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use similar::{ChangeTag, TextDiff};

use super::super::diff_model::{DiffSide, DiffState, DiffUi, Row, is_cut};
use super::super::field;
use super::super::layout::{list_start, split_bottom, split_left, split_top};
use super::super::model::Model;
use super::super::text;
use super::super::theme::Focused;
use super::console::field_rows;
use super::paint::{line, over, put, put_on, put_right, row, span, thumb};
use crate::protocol::{DiffFile, DiffFileStatus, DiffLine, DiffLineKind};

/// From this width on the list of files stands beside the lines.
const WIDE: u16 = 100;

/// Bytes of a line beyond which what changed within it is not worked out.
const WORDS: usize = 400;

pub(super) fn draw(model: &Model, diff: &DiffUi, buf: &mut Buffer, body: Rect) -> Option<Position> {
    let t = &model.theme;
    let g = &model.glyphs;
    let title = Line::from(vec![span("Diff ", t.title(Focused::Yes)), span(diff.worktree.as_str(), t.strong())]);
    let remarks = match diff.remark_count() {
        0 => String::new(),
        1 => "  1 remark".to_owned(),
        n => format!("  {n} remarks"),
    };
    let remark = match &diff.state {
        DiffState::Ready(held) => Line::from(vec![
            span(held.branch.as_deref().unwrap_or(""), t.muted()),
            span(&format!(" {} {}  ", g.arrow, held.base.as_deref().unwrap_or("base")), t.muted()),
            span(&format!("{} files ", held.stats.files), t.text()),
            span(&format!("+{} ", held.stats.additions), t.added()),
            span(&format!("-{}", held.stats.deletions), t.removed()),
            span(&remarks, t.needs()),
            span(if held.truncated { "  cut: w fetches a file whole" } else { "" }, t.warn()),
        ]),
        DiffState::Loading | DiffState::Failed(_) => Line::default(),
    };
    let inner = over(model, buf, body, &title, &remark);
    match &diff.state {
        DiffState::Loading => {
            put(buf, inner, &line(&format!("asking for the diff{}", g.ellipsis), t.muted()), g.ellipsis);
            return None;
        }
        DiffState::Failed(why) => {
            let words = format!("There is no diff: {}", text::clean(why));
            let lines: Vec<_> =
                text::wrap(&words, usize::from(inner.width)).iter().map(|l| line(l, t.error())).collect();
            super::paint::put_all(buf, inner, &lines, g.ellipsis);
            return None;
        }
        DiffState::Ready(held) if held.files.is_empty() => {
            put(buf, inner, &line("Nothing has changed against the base branch.", t.muted()), g.ellipsis);
            return None;
        }
        DiffState::Ready(_) => {}
    }
    if inner.width >= WIDE {
        let (list, rest) = split_left(inner, (inner.width / 4).clamp(26, 44));
        for y in inner.top()..inner.bottom() {
            buf.set_string(list.right(), y, g.vertical, t.faint());
        }
        files(model, diff, buf, list);
        let (_, lines) = split_left(rest, 2);
        return rows(model, diff, buf, lines);
    } else if diff.side == DiffSide::Files {
        files(model, diff, buf, inner);
    } else {
        return rows(model, diff, buf, inner);
    }
    None
}

fn files(model: &Model, diff: &DiffUi, buf: &mut Buffer, area: Rect) {
    let t = &model.theme;
    let here = diff.file_here();
    let room = usize::from(area.height);
    let start = list_start(diff.files().len(), room, Some(here));
    for (at, file) in diff.files().iter().enumerate().skip(start).take(room) {
        let place = row(area, at - start);
        let ground = if at == here { t.selected(Focused::when(diff.side == DiffSide::Files)) } else { Style::new() };
        buf.set_style(place.intersection(buf.area), ground);
        let mut counts = Vec::new();
        if file.binary {
            counts.push(span(" binary", t.muted()));
        } else {
            counts.push(span(&format!(" +{}", file.additions), t.added()));
            counts.push(span(&format!(" -{}", file.deletions), t.removed()));
        }
        let rest = put_right(buf, place, &Line::from(counts), model.glyphs.ellipsis);
        let (sign, style) = status(model, file);
        let name = short_path(&file.path, usize::from(rest.width).saturating_sub(2), model.glyphs.ellipsis);
        put(
            buf,
            rest,
            &Line::from(vec![span(&format!("{sign} "), style), span(&name, t.text())]),
            model.glyphs.ellipsis,
        );
    }
}

fn status(model: &Model, file: &DiffFile) -> (&'static str, Style) {
    let t = &model.theme;
    match file.status {
        DiffFileStatus::Added => ("A", t.added()),
        DiffFileStatus::Modified => ("M", t.info()),
        DiffFileStatus::Deleted => ("D", t.removed()),
        DiffFileStatus::Renamed => ("R", t.warn()),
    }
}

/// A path that keeps its end, which is what tells files apart.
fn short_path(path: &str, columns: usize, ellipsis: &str) -> String {
    let path = text::clean(path);
    let wide = text::width(&path);
    if wide <= columns {
        return path.into_owned();
    }
    let (head, _) = text::take(&path, (wide + 1).saturating_sub(columns));
    format!("{ellipsis}{}", path.get(head.len()..).unwrap_or(""))
}

fn rows(model: &Model, diff: &DiffUi, buf: &mut Buffer, area: Rect) -> Option<Position> {
    let t = &model.theme;
    let total = diff.rows().len();
    let (sticky, below) = split_top(area, 1);
    let here = diff.file_at_top();
    if let Some(file) = diff.files().get(here) {
        file_head(model, diff, buf, file, sticky);
    }
    // A remark is written in rows of its own, over those below the line.
    let (below, field_area) = match &diff.writing {
        Some(area) => {
            let rows = field::rows(area, usize::from(below.width.saturating_sub(4)).max(2)).rows.len();
            split_bottom(below, u16::try_from(rows + 1).unwrap_or(6).clamp(2, 7))
        }
        None => (below, Rect { height: 0, ..below }),
    };
    // The file's own heading would stand there twice.
    let from = if matches!(diff.rows().get(diff.top), Some(Row::File(_))) { diff.top + 1 } else { diff.top };
    let from = from.max((diff.cursor + 1).saturating_sub(usize::from(below.height)));
    let digits = number_width(diff, here);
    for (at, entry) in diff.rows().iter().enumerate().skip(from).take(usize::from(below.height)) {
        let place = row(below, at - from);
        draw_row(model, diff, buf, *entry, place, digits);
        if at == diff.cursor {
            let sign = Rect { x: place.x.saturating_sub(1), width: 1, ..place };
            put(buf, sign, &line(model.glyphs.pointer, t.key()), "");
            if matches!(entry, Row::Line(..) | Row::Remark(..)) && diff.side == DiffSide::Lines {
                let gutter = u16::try_from(2 * digits + 2).unwrap_or(0).min(place.width);
                buf.set_style(Rect { width: gutter, ..place }.intersection(buf.area), t.selected(Focused::Yes));
            }
        }
    }
    thumb(model, buf, below, total, diff.top);
    let area = diff.writing.as_ref()?;
    let (heading, text_area) = split_top(field_area, 1);
    put(buf, heading, &line("Your remark on this line:", t.accent()), model.glyphs.ellipsis);
    buf.set_style(text_area.intersection(buf.area), t.strip());
    let inner = Rect { x: text_area.x + 2.min(text_area.width), width: text_area.width.saturating_sub(4), ..text_area };
    field_rows(model, buf, area, inner, t.text())
}

/// Digits of the largest line number of a file.
fn number_width(diff: &DiffUi, file: usize) -> usize {
    let last = diff
        .files()
        .get(file)
        .and_then(|f| f.hunks.last())
        .map_or(0, |h| (h.old_start + h.old_lines).max(h.new_start + h.new_lines));
    last.to_string().len().max(3)
}

fn file_head(model: &Model, diff: &DiffUi, buf: &mut Buffer, file: &DiffFile, place: Rect) {
    let t = &model.theme;
    buf.set_style(place.intersection(buf.area), t.strip());
    let (sign, style) = status(model, file);
    let mut right =
        vec![span(&format!("+{} ", file.additions), t.added()), span(&format!("-{} ", file.deletions), t.removed())];
    if diff.fetching() == Some(file.path.as_str()) {
        right.insert(0, span(&format!("fetching{} ", model.glyphs.ellipsis), t.info()));
    }
    let rest = put_right(buf, place, &Line::from(right), model.glyphs.ellipsis);
    let mut spans = vec![span(&format!("{sign} "), style.add_modifier(Modifier::BOLD))];
    if let Some(old) = &file.old_path {
        spans.push(span(&format!("{old} {} ", model.glyphs.arrow), t.muted()));
    }
    spans.push(span(&file.path, t.strong()));
    put(buf, rest, &Line::from(spans), model.glyphs.ellipsis);
}

fn draw_row(model: &Model, diff: &DiffUi, buf: &mut Buffer, entry: Row, place: Rect, digits: usize) {
    let t = &model.theme;
    let ellipsis = model.glyphs.ellipsis;
    match entry {
        Row::Gap => {}
        Row::File(at) => {
            if let Some(file) = diff.files().get(at) {
                file_head(model, diff, buf, file, place);
            }
        }
        Row::Note(at) => {
            if let Some(file) = diff.files().get(at) {
                let words = if file.binary {
                    "binary file: its bytes are not shown"
                } else if is_cut(file) {
                    "cut here: more of this file has changed (w fetches it whole)"
                } else {
                    "no lines changed"
                };
                put(buf, place, &line(&format!("  {words}"), t.warn()), ellipsis);
            }
        }
        Row::Hunk(file, hunk) => {
            if let Some(hunk) = diff.files().get(file).and_then(|f| f.hunks.get(hunk)) {
                put(buf, place, &line(&hunk.header, t.info()), ellipsis);
            }
        }
        Row::Remark(file, hunk, number, at) => {
            let words = diff.remark_row(file, hunk, number, at).unwrap_or("");
            let indent = " ".repeat(2 * digits + 2);
            let sign = if at == 0 { model.glyphs.bar } else { " " };
            let content = Line::from(vec![
                span(&indent, t.text()),
                Span::styled(format!("{sign} "), t.needs()),
                span(words, t.warn()),
            ]);
            put_on(buf, place, &content, t.strip(), ellipsis);
        }
        Row::Line(file, hunk, number) => {
            if let Some(content) = diff.line(file, hunk, number) {
                let body = body(model, diff, (file, hunk, number), content);
                draw_line(model, buf, content, body, place, digits, diff.shift);
            }
        }
    }
}

fn draw_line(
    model: &Model,
    buf: &mut Buffer,
    content: &DiffLine,
    body: Vec<Span<'static>>,
    place: Rect,
    digits: usize,
    shift: usize,
) {
    let t = &model.theme;
    let (sign, style, ground) = match content.kind {
        DiffLineKind::Add => ("+", t.added(), t.added_ground()),
        DiffLineKind::Del => ("-", t.removed(), t.removed_ground()),
        DiffLineKind::Ctx => (" ", t.muted(), Style::new()),
    };
    let number = |n: Option<u32>| n.map_or_else(|| " ".repeat(digits), |n| format!("{n:>digits$}"));
    let gutter = format!("{} {} ", number(content.old_no), number(content.new_no));
    let wide = u16::try_from(gutter.len()).unwrap_or(0).min(place.width);
    put(buf, place, &line(&gutter, t.faint()), "");
    let rest = Rect { x: place.x + wide, width: place.width - wide, ..place };
    let mut spans = vec![Span::styled(sign, style), Span::raw(" ")];
    spans.extend(shifted(body, shift));
    put_on(buf, rest, &Line::from(spans), ground, model.glyphs.ellipsis);
}

fn shifted(spans: Vec<Span<'static>>, mut columns: usize) -> Vec<Span<'static>> {
    if columns == 0 {
        return spans;
    }
    spans
        .into_iter()
        .filter_map(|span| {
            let wide = text::width(&span.content);
            if wide <= columns {
                columns -= wide;
                return None;
            }
            let (gone, _) = text::take(&span.content, columns);
            columns = 0;
            Some(Span::styled(span.content.get(gone.len()..).unwrap_or("").to_owned(), span.style))
        })
        .collect()
}

/// A line's text: what changed within it marked, else syntax colours, else plain.
fn body(model: &Model, diff: &DiffUi, at: (usize, usize, usize), content: &DiffLine) -> Vec<Span<'static>> {
    let t = &model.theme;
    let (plain, marked) = match content.kind {
        DiffLineKind::Add => (t.added(), t.added_word()),
        DiffLineKind::Del => (t.removed(), t.removed_word()),
        DiffLineKind::Ctx => (t.text(), Style::new()),
    };
    let marks = changed_parts(diff, at, content);
    let colours = diff.colours(at.0, at.1, at.2).filter(|c| !c.is_empty());
    // Both are lists of byte lengths over the same raw text: walk them together.
    let mut spans = Vec::new();
    let mut cuts: Vec<usize> = marks.iter().flat_map(|(range, _)| [range.start, range.end]).collect();
    let mut tints = Vec::new();
    let mut from = 0;
    for (length, rgb) in colours.into_iter().flatten() {
        tints.push((from..from + length, *rgb));
        from += length;
        cuts.push(from);
    }
    cuts.push(0);
    cuts.push(content.text.len());
    cuts.sort_unstable();
    cuts.dedup();
    for pair in cuts.windows(2) {
        let [start, end] = pair else { continue };
        let Some(part) = content.text.get(*start..*end) else { continue };
        let tint = tints.iter().find(|(range, _)| range.contains(start)).map(|(_, rgb)| t.syntax(*rgb));
        let mark = marks.iter().any(|(range, changed)| *changed && range.contains(start));
        let mut style = tint.unwrap_or(plain);
        if mark {
            style = style.patch(marked);
        }
        spans.push(span(part, style));
    }
    spans
}

/// The parts of a changed line that differ from its counterpart: byte ranges, and whether each changed.
fn changed_parts(diff: &DiffUi, at: (usize, usize, usize), content: &DiffLine) -> Vec<(std::ops::Range<usize>, bool)> {
    let Some(other) = diff.counterpart(at.0, at.1, at.2) else { return Vec::new() };
    if content.text.len() > WORDS || other.text.len() > WORDS {
        return Vec::new();
    }
    let (old, new) = match content.kind {
        DiffLineKind::Del => (&content.text, &other.text),
        DiffLineKind::Add | DiffLineKind::Ctx => (&other.text, &content.text),
    };
    let words = TextDiff::from_unicode_words(old.as_str(), new.as_str());
    // Lines that have little in common are not a change of words.
    if words.ratio() < 0.4 {
        return Vec::new();
    }
    let own = if content.kind == DiffLineKind::Del { ChangeTag::Delete } else { ChangeTag::Insert };
    let mut parts = Vec::new();
    let mut from = 0;
    for change in words.iter_all_changes() {
        let tag = change.tag();
        if tag == ChangeTag::Equal || tag == own {
            let length = change.value().len();
            parts.push((from..from + length, tag == own));
            from += length;
        }
    }
    parts
}
