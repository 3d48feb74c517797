//! Where everything is: pure functions of a size and the model. Views draw into these areas, the mouse is looked up in
//! them, moving by arrows asks them who is next door.
//!
//! Five shapes by size: *full* (wall across the top, agents and decisions below), *compact* (two columns), *tower*
//! (one tall column), *tabs* (one pane at a time) and *too small* (a sentence).

use ratatui::layout::{Position, Rect, Size};

use super::focus::Pane;
use super::model::Model;
use super::world::COLUMNS;
use super::{field, text};
use crate::protocol::{AgentId, TaskId, TaskStatus};

/// The smallest usable screen, in columns and rows.
pub const SMALLEST: Size = Size { width: 60, height: 15 };

/// How the panes are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    TooSmall,
    Tabs,
    Tower,
    Compact,
    Full,
}

/// The areas of one frame. Panes never overlap and never leave the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Areas {
    pub shape: Shape,
    pub screen: Rect,
    pub goal: Rect,
    /// The line of tabs, in the shape that has them.
    pub tabs: Option<Rect>,
    /// Everything between the bars; overlays fill it or float in it.
    pub body: Rect,
    pub panes: Vec<(Pane, Rect)>,
    pub console: Rect,
    pub hints: Rect,
}

impl Areas {
    /// The pane's area, if it is in view.
    pub fn pane(&self, pane: Pane) -> Option<Rect> {
        if pane == Pane::Console {
            return Some(self.console);
        }
        self.panes.iter().find(|(p, _)| *p == pane).map(|(_, area)| *area)
    }

    /// Whether the pane is in view.
    pub fn shows(&self, pane: Pane) -> bool {
        self.pane(pane).is_some()
    }
}

/// The shape for a size.
pub const fn shape(size: Size) -> Shape {
    if size.width < SMALLEST.width || size.height < SMALLEST.height {
        Shape::TooSmall
    } else if size.width >= 110 && size.height >= 32 {
        Shape::Full
    } else if size.width >= 76 && size.height >= 20 {
        Shape::Compact
    } else if size.height >= 34 {
        Shape::Tower
    } else {
        Shape::Tabs
    }
}

/// Rows the console's text may take.
const CONSOLE_ROWS: u16 = 6;

/// Columns left of the console's text, for the prompt, and one of air at its right.
pub const PROMPT: u16 = 3;

/// What the console needs: one row while its text leaves room for the words at the right end, else as many as the text
/// wraps to, and one for those words.
fn console_rows(width: u16, model: &Model) -> u16 {
    let columns = usize::from(width.saturating_sub(PROMPT + 1));
    let rows = field::rows(&model.console.text, columns).rows;
    let short = rows.len() == 1 && rows.first().is_none_or(|row| text::width(row) * 2 <= columns);
    let rows = u16::try_from(rows.len()).unwrap_or(CONSOLE_ROWS);
    if short { 1 } else { (rows + 1).clamp(2, CONSOLE_ROWS) }
}

/// The areas of a screen of this size.
pub fn areas(size: Size, model: &Model) -> Areas {
    let screen = Rect::new(0, 0, size.width, size.height);
    let shape = shape(size);
    let mut areas = Areas {
        shape,
        screen,
        goal: Rect::ZERO,
        tabs: None,
        body: screen,
        panes: Vec::new(),
        console: Rect::ZERO,
        hints: Rect::ZERO,
    };
    if shape == Shape::TooSmall {
        return areas;
    }
    let goal_rows = if matches!(shape, Shape::Full | Shape::Tower) { 2 } else { 1 };
    let console_rows = console_rows(size.width, model);
    let (goal, rest) = split_top(screen, goal_rows);
    let (rest, hints) = split_bottom(rest, 1);
    let (body, console) = split_bottom(rest, console_rows);
    areas.goal = goal;
    areas.hints = hints;
    areas.console = console;
    areas.body = body;
    if let Some(pane) = model.zoom {
        areas.panes.push((pane, body));
        return areas;
    }
    let waits = model.podium.shown.is_some();
    match shape {
        Shape::TooSmall => {}
        Shape::Tabs => {
            let (tabs, rest) = split_top(body, 1);
            areas.tabs = Some(tabs);
            let pane = if model.focus == Pane::Console { model.before_console } else { model.focus };
            areas.panes.push((pane, rest));
        }
        Shape::Tower => {
            let podium = if waits { part(body.height, 34, 11, 18) } else { 4 };
            let (top, rest) = split_top(body, podium);
            let (wall, rest) = split_top(rest, part(rest.height, 36, 6, 16));
            let (monitors, feed) = split_top(rest, part(rest.height, 62, 8, 40));
            areas.panes = vec![(Pane::Podium, top), (Pane::Wall, wall), (Pane::Monitors, monitors), (Pane::Feed, feed)];
        }
        Shape::Compact => {
            let (left, right) = split_left(body, part(body.width, 56, 40, 110));
            let (wall, monitors) = split_top(left, part(left.height, 42, 7, 14));
            let (podium, feed) = split_top(right, podium_rows(right, model));
            areas.panes =
                vec![(Pane::Wall, wall), (Pane::Monitors, monitors), (Pane::Podium, podium), (Pane::Feed, feed)];
        }
        Shape::Full => {
            let (wall, below) = split_top(body, part(body.height, 33, 10, 15));
            let right_width = part(body.width, 34, 40, 66);
            let (monitors, right) = split_left(below, body.width - right_width);
            let (podium, feed) = split_top(right, podium_rows(right, model));
            areas.panes =
                vec![(Pane::Wall, wall), (Pane::Monitors, monitors), (Pane::Podium, podium), (Pane::Feed, feed)];
        }
    }
    areas
}

/// Rows that the feed keeps below the podium.
const FEED_ROWS: u16 = 5;

/// As many rows as the shown decision needs to be read whole, as far as there is room.
fn podium_rows(right: Rect, model: &Model) -> u16 {
    let most = right.height.saturating_sub(FEED_ROWS);
    match super::update::shown(model) {
        None => 4.min(most),
        Some(decision) => {
            let columns = usize::from(right.width.saturating_sub(4)).max(1);
            let wrapped = |text: &str| text::wrap_all(text.trim(), columns).len();
            let options: usize =
                decision.options.iter().map(|o| text::wrap(&text::clean(o), columns.saturating_sub(5)).len()).sum();
            let notes = usize::from(model.podium.notice.is_some())
                + model.podium.drafts.get(&decision.id).and_then(|d| d.refused.as_deref()).map_or(0, wrapped);
            // Edges, heading, a blank row before the options, what Enter does, the queue, the text field.
            let fixed = 6 + usize::from(answer_rows(model, right.width)).max(1);
            let all =
                fixed + wrapped(&decision.question) + decision.context.as_deref().map_or(0, wrapped) + options + notes;
            u16::try_from(all).unwrap_or(most).clamp(10.min(most), most)
        }
    }
}

/// `percent` of `whole`, within bounds and within `whole`.
const fn part(whole: u16, percent: u16, least: u16, most: u16) -> u16 {
    let share = (whole as u32 * percent as u32 / 100) as u16;
    let share = if share < least { least } else { share };
    let share = if share > most { most } else { share };
    if share > whole { whole } else { share }
}

/// The top `rows` and what is below.
pub fn split_top(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    (Rect { height: rows, ..area }, Rect { y: area.y + rows, height: area.height - rows, ..area })
}

/// What is above, and the bottom `rows`.
pub fn split_bottom(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    split_top(area, area.height - rows)
}

/// The left `columns` and the rest.
pub fn split_left(area: Rect, columns: u16) -> (Rect, Rect) {
    let columns = columns.min(area.width);
    (Rect { width: columns, ..area }, Rect { x: area.x + columns, width: area.width - columns, ..area })
}

/// The inside of a pane with an edge of one cell.
pub fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x + 1.min(area.width),
        y: area.y + 1.min(area.height),
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    }
}

/// A box floating in the middle of `body`, with the wanted size where there is room.
pub fn floating(body: Rect, width: u16, height: u16) -> Rect {
    let width = width.min(body.width);
    let height = height.min(body.height);
    Rect { x: body.x + (body.width - width) / 2, y: body.y + (body.height - height) / 2, width, height }
}

/// The wall as it fits: side by side, or one grouped list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WallShape {
    /// The five columns, each with its heading in its first row.
    Columns(Vec<(TaskStatus, Rect)>),
    List(Rect),
}

/// A column narrower than this says too little.
const COLUMN: u16 = 18;

/// How the wall is arranged inside its pane.
pub fn wall_shape(inner: Rect) -> WallShape {
    let count = u16::try_from(COLUMNS.len()).unwrap_or(5);
    let each = (inner.width + 1) / count;
    if each < COLUMN + 1 || inner.height < 5 {
        return WallShape::List(inner);
    }
    let mut columns = Vec::new();
    let mut rest = inner;
    for (at, status) in (0u16..).zip(COLUMNS) {
        // A column of air stands between them; the cards' own bars do the rest.
        let width = if at + 1 == count { rest.width } else { each - 1 };
        let (column, after) = split_left(rest, width);
        columns.push((status, column));
        rest = split_left(after, 1).1;
    }
    WallShape::Columns(columns)
}

/// A card's place on the wall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardSpot {
    pub task: TaskId,
    pub area: Rect,
}

/// What a column shows of its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpots {
    pub cards: Vec<CardSpot>,
    /// Cards above and below that are not in view.
    pub above: usize,
    pub below: usize,
}

/// The cards of a column, with the selected one in view. Titles take two rows and cards keep a blank row between them
/// where everything fits that way; else cards are two rows high, close together.
pub fn column_spots(model: &Model, status: TaskStatus, column: Rect) -> ColumnSpots {
    let tasks = model.column(status);
    let body = split_top(column, 1).1;
    let tall: Vec<u16> = tasks.iter().map(|t| 1 + title_rows(&t.id, &t.title, column.width)).collect();
    let total: u16 = tall.iter().fold(0, |sum, rows| sum.saturating_add(*rows));
    let gaps = u16::try_from(tasks.len().saturating_sub(1)).unwrap_or(u16::MAX);
    let (heights, gap) = if total.saturating_add(gaps) <= body.height {
        (tall, 1)
    } else if total <= body.height {
        (tall, 0)
    } else if gaps.saturating_mul(3).saturating_add(2) <= body.height {
        (vec![2; tasks.len()], 1)
    } else {
        (vec![2; tasks.len()], 0)
    };
    let selected = model.wall.selected.as_ref().and_then(|id| tasks.iter().position(|t| t.id == *id));
    // All of the tall ones fit, so only the low ones ever scroll.
    let room = usize::from(body.height / 2).max(1);
    let fits = heights.iter().fold(0u16, |sum, h| sum.saturating_add(*h + gap)) <= body.height.saturating_add(gap);
    let first = if fits { 0 } else { list_start(tasks.len(), room, selected) };
    let mut y = body.y;
    let mut cards = Vec::new();
    for (task, height) in tasks.iter().zip(heights).skip(first) {
        let height = height.min(body.bottom().saturating_sub(y));
        if height == 0 || (height < 2 && !cards.is_empty()) {
            break;
        }
        cards.push(CardSpot { task: task.id.clone(), area: Rect { y, height, ..body } });
        y = y.saturating_add(height + gap).min(body.bottom());
    }
    let below = tasks.len() - first - cards.len();
    ColumnSpots { cards, above: first, below }
}

/// Rows of a title on a card: one or two.
fn title_rows(id: &TaskId, title: &str, width: u16) -> u16 {
    if card_title(id, title, width).len() > 1 { 2 } else { 1 }
}

/// A card's title in the rows it takes, the id in front of the first.
pub fn card_title(id: &TaskId, title: &str, width: u16) -> Vec<String> {
    let columns = usize::from(width.saturating_sub(2)).max(4);
    text::wrap(&text::clean(&format!("{id} {title}")), columns)
}

/// The tasks in the order of the grouped list.
pub fn listed_tasks(model: &Model) -> Vec<TaskId> {
    const ORDER: [TaskStatus; 5] =
        [TaskStatus::Doing, TaskStatus::Review, TaskStatus::Blocked, TaskStatus::Todo, TaskStatus::Done];
    ORDER.iter().flat_map(|status| model.column(*status)).map(|t| t.id.clone()).collect()
}

/// The first line of a list of `count` in `room` rows that keeps `selected` in view.
pub fn list_start(count: usize, room: usize, selected: Option<usize>) -> usize {
    let Some(at) = selected else { return 0 };
    at.saturating_sub(room.saturating_sub(1)).min(count.saturating_sub(room))
}

/// The agents' pane as it fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MonitorShape {
    /// A tile with nameplate and log for each.
    Tiles { columns: usize, tiles: Vec<Rect> },
    /// A line for each, and the log of the selected one below.
    Roster { list: Rect, log: Rect },
    /// Only the selected one.
    Single(Rect),
}

/// Columns and rows below which a tile says too little.
const TILE: Size = Size { width: 34, height: 4 };

/// How `count` agents are arranged inside their pane.
pub fn monitor_shape(inner: Rect, count: usize, single: bool) -> MonitorShape {
    if single || count == 0 {
        return MonitorShape::Single(inner);
    }
    // As many columns as leave a tile wide enough to read, as few as leave it high enough.
    for columns in 1..=3usize {
        let rows = count.div_ceil(columns);
        let (Ok(across), Ok(down)) = (u16::try_from(columns), u16::try_from(rows)) else { break };
        let width = (inner.width + 1) / across;
        let height = inner.height / down;
        let wide = width > TILE.width;
        let enough = height >= 7 || (columns == 3 || (inner.width + 1) / (across + 1) <= TILE.width);
        if wide && enough && height >= TILE.height {
            let tiles = (0..count)
                .filter_map(|n| Some((u16::try_from(n % columns).ok()?, u16::try_from(n / columns).ok()?)))
                .map(|(x, y)| {
                    let last_column = x + 1 == across;
                    let last_row = y + 1 == down;
                    let left = inner.x + x * width;
                    let top = inner.y + y * height;
                    Rect {
                        x: left,
                        y: top,
                        width: if last_column { inner.right() - left } else { width - 1 },
                        height: if last_row { inner.bottom() - top } else { height },
                    }
                })
                .collect();
            return MonitorShape::Tiles { columns, tiles };
        }
    }
    let rows = u16::try_from(count).unwrap_or(u16::MAX);
    let (list, log) = split_top(inner, rows.min(inner.height));
    MonitorShape::Roster { list, log }
}

/// What lies under a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hit {
    Nothing,
    Pane(Pane),
    Task(TaskId),
    Agent(AgentId),
}

/// What lies under a cell, overlays aside.
pub fn hit(model: &Model, at: Position) -> Hit {
    let areas = areas(model.size, model);
    if let Some(tabs) = areas.tabs.filter(|t| t.contains(at)) {
        return tab_spots(model, tabs)
            .into_iter()
            .find(|(_, area)| area.contains(at))
            .map_or(Hit::Nothing, |(pane, _)| Hit::Pane(pane));
    }
    if areas.console.contains(at) {
        return Hit::Pane(Pane::Console);
    }
    let Some((pane, area)) = areas.panes.iter().find(|(_, area)| area.contains(at)) else { return Hit::Nothing };
    let inner = inside(*area);
    match pane {
        Pane::Wall => {
            let task = match wall_shape(inner) {
                WallShape::Columns(columns) => columns.iter().find(|(_, c)| c.contains(at)).and_then(|(s, c)| {
                    column_spots(model, *s, *c).cards.into_iter().find(|c| c.area.contains(at)).map(|c| c.task)
                }),
                WallShape::List(list) if list.contains(at) => {
                    let tasks = listed_tasks(model);
                    let selected = model.wall.selected.as_ref().and_then(|id| tasks.iter().position(|t| t == id));
                    let start = list_start(tasks.len(), usize::from(list.height), selected);
                    tasks.into_iter().nth(start + usize::from(at.y - list.y))
                }
                WallShape::List(_) => None,
            };
            task.map_or(Hit::Pane(Pane::Wall), Hit::Task)
        }
        Pane::Monitors => {
            let nth = match monitor_shape(inner, model.agents().count(), model.monitors.single) {
                MonitorShape::Tiles { tiles, .. } => tiles.iter().position(|t| t.contains(at)),
                MonitorShape::Roster { list, .. } if list.contains(at) => Some(usize::from(at.y - list.y)),
                MonitorShape::Roster { .. } | MonitorShape::Single(_) => None,
            };
            nth.and_then(|n| model.agents().nth(n)).map_or(Hit::Pane(Pane::Monitors), |a| Hit::Agent(a.id.clone()))
        }
        other => Hit::Pane(*other),
    }
}

/// The panes that have a tab, with the place of each.
pub fn tab_spots(model: &Model, tabs: Rect) -> Vec<(Pane, Rect)> {
    let mut x = tabs.x + 1;
    [Pane::Wall, Pane::Monitors, Pane::Podium, Pane::Feed]
        .into_iter()
        .map(|pane| {
            let label = tab_label(model, pane);
            let width = u16::try_from(label.len()).unwrap_or(0) + 2;
            let area = Rect { x, y: tabs.y, width, height: 1 }.intersection(tabs);
            x = x.saturating_add(width + 1);
            (pane, area)
        })
        .collect()
}

/// What a tab says.
pub fn tab_label(model: &Model, pane: Pane) -> String {
    match (pane, model.needs_you()) {
        (Pane::Podium, n) if n > 0 => format!("{} {n}", pane.title()),
        _ => pane.title().to_owned(),
    }
}

/// Directions in which one can leave a pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
    Left,
    Right,
}

/// The pane next door: the nearest in that direction that faces the most of this one. Never the console: a hand that
/// moves about should not find itself writing.
pub fn neighbour(areas: &Areas, from: Pane, direction: Direction) -> Option<Pane> {
    let here = areas.pane(from)?;
    areas
        .panes
        .iter()
        .filter(|(pane, _)| *pane != from)
        .filter_map(|(pane, there)| {
            let overlap = |a0: u16, a1: u16, b0: u16, b1: u16| a1.min(b1).saturating_sub(a0.max(b0));
            let (faces, touches) = match direction {
                Direction::Up => (there.bottom() == here.y, overlap(here.x, here.right(), there.x, there.right())),
                Direction::Down => (there.y == here.bottom(), overlap(here.x, here.right(), there.x, there.right())),
                Direction::Left => (there.right() == here.x, overlap(here.y, here.bottom(), there.y, there.bottom())),
                Direction::Right => (there.x == here.right(), overlap(here.y, here.bottom(), there.y, there.bottom())),
            };
            (faces && touches > 0).then_some((touches, *pane))
        })
        .max_by_key(|(touches, _)| *touches)
        .map(|(_, pane)| pane)
}

/// The rows that the podium's text field takes in a pane of this width; none while there is no text.
pub fn answer_rows(model: &Model, pane_width: u16) -> u16 {
    let empty = model.podium.text.lines().iter().all(String::is_empty);
    if empty && !model.podium.writing {
        return 0;
    }
    let columns = usize::from(pane_width.saturating_sub(6));
    u16::try_from(field::rows(&model.podium.text, columns).rows.len()).unwrap_or(6).clamp(1, 6)
}
