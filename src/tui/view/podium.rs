//! The decision podium: the question with its context, the options with their digits, the answer's text, the queue.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::super::focus::Pane;
use super::super::layout::{answer_rows, split_bottom, split_top};
use super::super::model::{Model, content};
use super::super::text;
use super::super::theme::Focused;
use super::console::field_rows;
use super::paint::{focus_of, line, pane, put, put_all, put_right, row, span};
use crate::protocol::{Decision, DecisionKind, label};

pub(super) fn draw(model: &Model, buf: &mut Buffer, area: Rect) -> Option<Position> {
    let t = &model.theme;
    let open = model.open_decisions();
    let at = model.podium.shown.as_ref().and_then(|id| open.iter().position(|d| d.id == *id));
    let remark = match (at, open.len()) {
        (Some(at), n) if n > 1 => line(&format!("{} of {n}", at + 1), t.muted()),
        _ => Line::default(),
    };
    let inner = pane(model, buf, area, Pane::Podium, &remark);
    let inner = Rect { x: inner.x + 1.min(inner.width), width: inner.width.saturating_sub(2), ..inner };
    let Some(decision) = at.and_then(|at| open.get(at)) else {
        let said = model.podium.notice.as_ref().map(|(said, _)| said.clone());
        let words = said.unwrap_or_else(|| {
            if model.mirror().is_some() { "Nothing waits for you.".to_owned() } else { String::new() }
        });
        for (at, wrapped) in text::wrap(&text::clean(&words), usize::from(inner.width)).iter().enumerate() {
            put(buf, row(inner, at), &line(wrapped, t.muted()), model.glyphs.ellipsis);
        }
        return None;
    };
    card(model, buf, decision, inner, &open)
}

fn card(model: &Model, buf: &mut Buffer, decision: &Decision, inner: Rect, open: &[&Decision]) -> Option<Position> {
    let t = &model.theme;
    let g = &model.glyphs;
    let width = usize::from(inner.width);
    let (head, rest) = split_top(inner, 1);
    heading(model, buf, decision, head);

    // From below: what Enter does, the queue, the text field, the options. What is left is for question and context.
    let (rest, foot) = split_bottom(rest, 1);
    footer(model, buf, decision, foot);
    let queue = queue(model, decision, open);
    let (rest, queue_area) = split_bottom(rest, u16::from(queue.is_some() && rest.height > 8));
    if let Some(queue) = queue {
        put(buf, queue_area, &queue, g.ellipsis);
    }
    let field_height = answer_rows(model, inner.width + 4).min(rest.height / 2);
    let (rest, field) = split_bottom(rest, field_height);
    let mut option_lines = options(model, decision, width);

    let mut lines: Vec<Line<'static>> =
        text::wrap_all(decision.question.trim(), width).iter().map(|l| line(l, t.strong())).collect();
    if let Some(refused) = model.podium.drafts.get(&decision.id).and_then(|d| d.refused.as_ref()) {
        let words = format!("Not taken: {}", text::clean(refused));
        lines.extend(text::wrap(&words, width).iter().map(|l| line(l, t.error())));
    }
    if let Some((said, _)) = &model.podium.notice {
        lines.extend(text::wrap(&text::clean(said), width).iter().map(|l| line(l, t.warn())));
    }
    let question_rows = lines.len();
    if let Some(context) = decision.context.as_deref().filter(|c| !c.trim().is_empty()) {
        lines.extend(context_lines(model, context, width));
    }
    // Where the context does not fit, what *Always* covers must still be seen by one who chooses it.
    if lines.len() + option_lines.len() > usize::from(rest.height) {
        option_lines.extend(covers(model, decision, width));
    }
    // The blank row above the options gives way to a last line of the context.
    if lines.len() + option_lines.len() == usize::from(rest.height) + 1 {
        option_lines.remove(0);
    }
    let option_rows = u16::try_from(option_lines.len()).unwrap_or(0).min(rest.height);
    let (above, option_area) = split_bottom(rest, option_rows);
    put_all(buf, option_area, &option_lines, g.ellipsis);
    let room = usize::from(above.height);
    // The question stays; the context scrolls under it.
    let context_room = room.saturating_sub(question_rows);
    let hidden = lines.len().saturating_sub(question_rows).saturating_sub(context_room);
    let scroll = model.podium.scroll.min(hidden);
    let (fixed, moving) = lines.split_at(question_rows.min(lines.len()));
    let mut shown: Vec<Line<'static>> = fixed.to_vec();
    shown.extend(moving.iter().skip(scroll).take(context_room).cloned());
    put_all(buf, above, &shown, g.ellipsis);
    if hidden > 0 {
        // On the blank row above the options.
        let note = match hidden - scroll {
            0 => format!("{} PageUp", g.up),
            1 => format!("1 more line {} PageDown", g.down),
            more => format!("{more} more lines {} PageDown", g.down),
        };
        put_right(buf, row(option_area, 0), &line(&note, t.muted()), g.ellipsis);
    }
    if field_height > 0 { text_field(model, buf, field) } else { None }
}

fn kind_word(kind: DecisionKind) -> &'static str {
    match kind {
        DecisionKind::Question => "question",
        DecisionKind::Permission => "permission",
        DecisionKind::Merge => "merge review",
    }
}

fn heading(model: &Model, buf: &mut Buffer, decision: &Decision, area: Rect) {
    let t = &model.theme;
    let colour = model.agent(&decision.agent_id).map_or(t.text(), |a| t.agent(&a.color));
    let mut spans = vec![
        Span::styled(format!("{} {}", model.glyphs.decision(decision.kind), kind_word(decision.kind)), t.needs()),
        Span::styled("  ", t.text()),
        span(&model.name_of(decision.agent_id.as_str()), colour.add_modifier(Modifier::BOLD)),
    ];
    if let Some(task) = &decision.task_id {
        spans.push(Span::styled(format!("  {task}"), t.muted()));
    }
    let right = format!("{}  {}", decision.id, model.clock(decision.created_at));
    let rest = put_right(buf, area, &line(&right, t.muted()), model.glyphs.ellipsis);
    put(buf, rest, &Line::from(spans), model.glyphs.ellipsis);
}

fn context_lines(model: &Model, context: &str, width: usize) -> Vec<Line<'static>> {
    let t = &model.theme;
    text::lines(context.trim_end())
        .flat_map(|content| {
            let style = if content.starts_with("Merge refused:") {
                t.error()
            } else if content.contains("covers:") {
                t.warn()
            } else {
                t.muted()
            };
            text::wrap(&content, width).into_iter().map(move |l| line(&l, style))
        })
        .collect()
}

fn options(model: &Model, decision: &Decision, width: usize) -> Vec<Line<'static>> {
    let t = &model.theme;
    let focused = focus_of(model, Pane::Podium);
    let answering = model.podium.answering.contains_key(&decision.id);
    let mut lines = vec![Line::default()];
    for (at, option) in decision.options.iter().enumerate() {
        let chosen = model.podium.choice == Some(at);
        let danger = matches!(option.as_str(), label::REJECT | label::DENY);
        let (sign, style) = match (chosen, answering) {
            (_, true) => (" ", t.faint()),
            (true, false) => (model.glyphs.pointer, t.strong()),
            (false, false) => (" ", if danger { t.muted() } else { t.text() }),
        };
        let key = if focused == Focused::Yes && !answering { t.key() } else { t.muted() };
        let ground = if chosen && !answering { t.selected(focused) } else { Style::new() };
        let mut label = text::clean(option).into_owned();
        if at == 0 && decision.kind == DecisionKind::Question && !label.to_lowercase().contains("recommended") {
            label.push_str("  (recommended)");
        }
        for (nth, part) in text::wrap(&label, width.saturating_sub(5)).into_iter().enumerate() {
            let digit = if nth == 0 && at < 9 { format!("{}", at + 1) } else { " ".to_owned() };
            let pad = " ".repeat(width.saturating_sub(5 + text::width(&part)));
            lines.push(
                Line::from(vec![
                    Span::styled(format!("{} ", if nth == 0 { sign } else { " " }), t.accent()),
                    Span::styled(format!("{digit}  "), key),
                    Span::styled(format!("{part}{pad}"), style),
                ])
                .style(ground),
            );
        }
    }
    lines
}

/// What the chosen *Always allow* covers, in the words of the context.
fn covers(model: &Model, decision: &Decision, width: usize) -> Vec<Line<'static>> {
    let always = decision.options.iter().position(|o| o == label::ALLOW_ALWAYS);
    if always.is_none() || model.podium.choice != always {
        return Vec::new();
    }
    let context = decision.context.as_deref().unwrap_or_default();
    context
        .lines()
        .filter_map(|l| l.split_once("covers:"))
        .flat_map(|(_, what)| text::wrap(&text::clean(&format!("Always covers: {}", what.trim())), width))
        .map(|l| line(&l, model.theme.warn()))
        .collect()
}

/// What the next key will do.
fn footer(model: &Model, buf: &mut Buffer, decision: &Decision, area: Rect) {
    let t = &model.theme;
    let chosen = model.podium.choice.and_then(|at| decision.options.get(at)).map(|o| text::clean(o).into_owned());
    let words = if model.podium.answering.contains_key(&decision.id) {
        ("answering".to_owned() + model.glyphs.ellipsis, t.info())
    } else if focus_of(model, Pane::Podium) == Focused::No {
        let key = if model.focus == Pane::Console { "Esc, then answer here" } else { "press n to answer" };
        (key.to_owned(), t.muted())
    } else if model.podium.rejecting {
        ("Enter again rejects; branch is kept".to_owned(), t.error())
    } else if model.now.mono_ms < model.podium.guard_until_ms {
        (String::new(), t.faint())
    } else if model.podium.writing {
        match (decision.kind, chosen) {
            (DecisionKind::Permission, None) => ("Esc, then choose an option".to_owned(), t.muted()),
            (_, Some(option)) => (format!("Enter sends: {option}, with this text"), t.accent()),
            (_, None) => ("Enter sends this text".to_owned(), t.accent()),
        }
    } else {
        match chosen {
            Some(option) => (format!("Enter sends: {option}"), t.accent()),
            None if decision.options.is_empty() => ("Enter begins your answer".to_owned(), t.muted()),
            None => {
                let diff = if decision.kind == DecisionKind::Merge { "d shows the diff, " } else { "" };
                (format!("{diff}1-{} chooses, Enter sends", decision.options.len()), t.muted())
            }
        }
    };
    put(buf, area, &line(&words.0, words.1), model.glyphs.ellipsis);
}

/// Who else waits.
fn queue(model: &Model, shown: &Decision, open: &[&Decision]) -> Option<Line<'static>> {
    let t = &model.theme;
    let others: Vec<&&Decision> = open.iter().filter(|d| d.id != shown.id).collect();
    if others.is_empty() {
        return None;
    }
    let mut spans = vec![Span::styled("then ", t.faint())];
    for (at, decision) in others.iter().enumerate() {
        if at > 0 {
            spans.push(Span::styled(", ", t.faint()));
        }
        let colour = model.agent(&decision.agent_id).map_or(t.muted(), |a| t.agent(&a.color));
        spans.push(Span::styled(format!("{} ", model.glyphs.decision(decision.kind)), t.muted()));
        spans.push(span(&model.name_of(decision.agent_id.as_str()), colour));
        if model.podium.answering.contains_key(&decision.id) {
            spans.push(Span::styled(format!(" answering{}", model.glyphs.ellipsis), t.info()));
        }
    }
    Some(Line::from(spans))
}

fn text_field(model: &Model, buf: &mut Buffer, area: Rect) -> Option<Position> {
    let t = &model.theme;
    buf.set_style(area.intersection(buf.area), t.strip());
    let empty = content(&model.podium.text).is_empty();
    if empty && area.width > 2 {
        put(
            buf,
            Rect { x: area.x + 2, width: area.width - 2, ..area },
            &line("your text", t.faint()),
            model.glyphs.ellipsis,
        );
    }
    let sign = if model.podium.writing { t.accent() } else { t.faint() };
    put(buf, row(area, 0), &line(model.glyphs.pointer, sign), model.glyphs.ellipsis);
    let inner = Rect { x: area.x + 2.min(area.width), width: area.width.saturating_sub(2), ..area };
    let at = field_rows(model, buf, &model.podium.text, inner, t.text());
    at.filter(|_| model.podium.writing && focus_of(model, Pane::Podium) == Focused::Yes)
}
