//! A screen without a terminal: a model, a clock that the test moves, and what `update` wanted done.

use agentcraft_tui::client::LinkEvent;
use agentcraft_tui::client::console::Places;
use agentcraft_tui::protocol::{Ack, AnswerDecision, ClientMessage, ServerMessage, Snapshot};
use agentcraft_tui::tui::UiOptions;
use agentcraft_tui::tui::cmd::Cmd;
use agentcraft_tui::tui::keys::{Code, Key};
use agentcraft_tui::tui::model::Model;
use agentcraft_tui::tui::msg::{Msg, Now};
use agentcraft_tui::tui::theme::{Depth, ThemeName};
use agentcraft_tui::tui::update::update;
use agentcraft_tui::tui::view;
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};

use crate::fixture;

pub fn options() -> UiOptions {
    UiOptions {
        ascii: false,
        no_color: false,
        depth: Depth::True,
        theme: Some(ThemeName::Dark),
        mouse: true,
        read_only: false,
        attached: false,
        notify: true,
        history: None,
    }
}

pub struct Stage {
    pub model: Model,
    pub ms: u64,
    pub cmds: Vec<Cmd>,
    sent: u64,
}

/// The sizes that views are looked at in.
pub const SMALL: Size = Size { width: 80, height: 24 };
pub const MIDDLE: Size = Size { width: 120, height: 36 };
pub const LARGE: Size = Size { width: 200, height: 60 };

impl Stage {
    /// Not connected yet.
    pub fn dark(size: Size, options: UiOptions) -> Self {
        let mut model = Model::new(options, size, TimeZone::UTC);
        model.console.places = Some(Places { cwd: "/home/ada".into(), home: Some("/home/ada".into()), listing: None });
        Self { model, ms: 1_000, cmds: Vec::new(), sent: 0 }
    }

    /// Connected, with this snapshot, and everything settled.
    pub fn with(size: Size, snapshot: Snapshot) -> Self {
        Self::with_options(size, snapshot, options())
    }

    pub fn with_options(size: Size, snapshot: Snapshot, options: UiOptions) -> Self {
        let mut stage = Self::dark(size, options);
        stage.link(LinkEvent::Up(Box::new(snapshot)));
        stage.wait(1_000);
        stage
    }

    pub fn busy(size: Size) -> Self {
        Self::with(size, fixture::busy())
    }

    fn now(&self) -> Now {
        Now { mono_ms: self.ms, wall: fixture::NOON + self.ms }
    }

    pub fn msg(&mut self, msg: Msg) {
        let now = self.now();
        let cmds = update(&mut self.model, now, msg);
        for cmd in cmds {
            // As the loop does: a message gets its correlation id at once.
            if let Cmd::Send { token, .. } = &cmd {
                self.sent += 1;
                let result = Ok(format!("c{token}"));
                let token = *token;
                self.cmds.push(cmd);
                let more = update(&mut self.model, now, Msg::Sent { token, result });
                self.cmds.extend(more);
            } else {
                self.cmds.push(cmd);
            }
        }
    }

    pub fn link(&mut self, event: LinkEvent) {
        self.msg(Msg::Link(Box::new(event)));
    }

    pub fn server(&mut self, message: ServerMessage) {
        self.link(LinkEvent::Message(message));
    }

    /// Time passes; deadlines of the model fire on their way.
    pub fn wait(&mut self, ms: u64) {
        let end = self.ms + ms;
        while let Some(at) = self.model.next_deadline().filter(|at| *at <= end) {
            self.ms = at.max(self.ms + 1).min(end);
            self.msg(Msg::Tick);
            if self.ms == end {
                break;
            }
        }
        self.ms = end;
    }

    /// A key, typed by a hand: time passes before it.
    pub fn key(&mut self, key: Key) {
        self.wait(60);
        self.msg(Msg::Key(key));
    }

    /// Keys by their names: `"n 1 Enter"`.
    pub fn keys(&mut self, names: &str) {
        for name in names.split_whitespace() {
            self.key(named(name));
        }
    }

    /// A key that comes at the same moment as the one before.
    pub fn burst(&mut self, names: &str) {
        self.wait(60);
        for name in names.split_whitespace() {
            self.msg(Msg::Key(named(name)));
        }
    }

    /// Characters, typed by a hand.
    pub fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.key(Key::char(c));
        }
    }

    /// The messages sent so far.
    pub fn sends(&self) -> Vec<ClientMessage> {
        self.cmds
            .iter()
            .filter_map(|cmd| match cmd {
                Cmd::Send { message, .. } => Some(message.clone()),
                _ => None,
            })
            .collect()
    }

    pub fn answers(&self) -> Vec<AnswerDecision> {
        self.sends()
            .into_iter()
            .filter_map(|m| match m {
                ClientMessage::DecisionAnswer(answer) => Some(answer),
                _ => None,
            })
            .collect()
    }

    /// The last message's token.
    pub fn last_token(&self) -> u64 {
        self.cmds
            .iter()
            .rev()
            .find_map(|cmd| match cmd {
                Cmd::Send { token, .. } => Some(*token),
                _ => None,
            })
            .expect("nothing was sent")
    }

    /// The Foreman takes the last message.
    pub fn ack(&mut self) {
        let re = format!("c{}", self.last_token());
        self.server(ServerMessage::Ack(Ack { re, ok: true, error: None, result: None }));
    }

    /// The Foreman refuses the last message.
    pub fn refuse(&mut self, why: &str) {
        let re = format!("c{}", self.last_token());
        self.server(ServerMessage::Ack(Ack { re, ok: false, error: Some(why.to_owned()), result: None }));
    }

    pub fn buffer(&self) -> (Buffer, Option<Position>) {
        let size = self.model.size;
        let mut buffer = Buffer::empty(Rect::new(0, 0, size.width, size.height));
        let cursor = view::draw(&self.model, &mut buffer);
        (buffer, cursor)
    }

    /// What the screen says, row by row.
    pub fn text(&self) -> String {
        rows(&self.buffer().0)
    }

    #[track_caller]
    pub fn shows(&self, words: &str) {
        let text = self.text();
        assert!(text.contains(words), "{words:?} is not on the screen:\n{text}");
    }

    #[track_caller]
    pub fn hides(&self, words: &str) {
        let text = self.text();
        assert!(!text.contains(words), "{words:?} is on the screen:\n{text}");
    }
}

pub fn rows(buffer: &Buffer) -> String {
    use ratatui::buffer::CellWidth;
    let mut out = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut row = String::new();
        let mut x = buffer.area.left();
        while x < buffer.area.right() {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            x += symbol.cell_width().max(1);
        }
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

fn named(name: &str) -> Key {
    let mut key = Key::plain(Code::Enter);
    let mut rest = name;
    while let Some((modifier, after)) = rest.split_once('-').filter(|(m, _)| matches!(*m, "Ctrl" | "Alt" | "Shift")) {
        match modifier {
            "Ctrl" => key.ctrl = true,
            "Alt" => key.alt = true,
            _ => key.shift = true,
        }
        rest = after;
    }
    key.code = match rest {
        "Enter" => Code::Enter,
        "Esc" => Code::Esc,
        "Tab" => Code::Tab,
        "Backspace" => Code::Backspace,
        "Delete" => Code::Delete,
        "Left" => Code::Left,
        "Right" => Code::Right,
        "Up" => Code::Up,
        "Down" => Code::Down,
        "Home" => Code::Home,
        "End" => Code::End,
        "PageUp" => Code::PageUp,
        "PageDown" => Code::PageDown,
        "Space" => Code::Char(' '),
        other => {
            let mut chars = other.chars();
            let c = chars.next().expect("a key");
            assert!(chars.next().is_none(), "no key is called {other:?}");
            Code::Char(c)
        }
    };
    key
}

impl Stage {
    /// The Foreman answers the diff request that was sent last; colours come in as from the worker.
    pub fn answer_diff(&mut self) {
        let request = self
            .sends()
            .into_iter()
            .rev()
            .find_map(|m| match m {
                ClientMessage::DiffRequest(request) => Some(request),
                _ => None,
            })
            .expect("no diff was asked for");
        self.server(ServerMessage::Diff(Box::new(fixture::diff(&request.request_id))));
        self.ack();
        let jobs: Vec<_> = self
            .cmds
            .iter()
            .filter_map(|cmd| match cmd {
                Cmd::Highlight(job) => job.run(),
                _ => None,
            })
            .collect();
        for done in jobs {
            self.msg(Msg::Highlighted(done));
        }
    }
}
