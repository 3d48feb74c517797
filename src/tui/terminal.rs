//! The terminal: entering and leaving it whatever happens, reading input, writing whole frames.
//!
//! The only place that knows crossterm, except for the words of keys. Entry points: [`Screen`] to draw and to leave,
//! [`read_input`] for the reader's thread. Everything written goes to standard output in one piece per frame, inside a
//! synchronized update (mode 2026), so no half frame is ever seen.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::panic;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::clipboard::CopyToClipboard;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange, Event, KeyCode, KeyEvent,
    KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::{Position, Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, kill_current_process_group};
use tokio::sync::mpsc::UnboundedSender;

use super::keys::{Code, Key};
use super::model::Model;
use super::msg::{Mouse, MouseKind, Msg, TerminalFocus};
use super::theme::{ThemeName, is_light};
use super::view;

/// The name of the screen's thread; the panic hook knows it by this.
pub const THREAD: &str = "screen";

/// Whether the terminal is in our hands; makes restoring idempotent from any thread.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// How long a stop may take to reach every thread.
const STOP_WAIT: Duration = Duration::from_millis(200);

const CLEAR: &[u8] = b"\x1b[0m\x1b[2J";
const BEGIN_UPDATE: &[u8] = b"\x1b[?2026h";
const END_UPDATE: &[u8] = b"\x1b[?2026l";
/// Buttons and the wheel only, in SGR coordinates: a mouse that merely moves must not wake us.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";
/// Push and pop the window's title.
const SAVE_TITLE: &str = "\x1b[22;2t";
const RESTORE_TITLE: &str = "\x1b[23;2t";

/// A frame in the making: flushing is ours to decide.
#[derive(Clone, Default)]
struct FrameBuffer(Rc<RefCell<Vec<u8>>>);

impl Write for FrameBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal while it is ours. Dropping it gives the terminal back.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<FrameBuffer>>,
    frame: FrameBuffer,
    drawn: Size,
    mouse: bool,
    /// When we came back from a stop of our own.
    resumed: Option<Instant>,
}

/// A canvas of the size that the model was laid out for, whatever the terminal's size is at this very moment: a
/// resize between the two shows for one frame and never draws outside.
fn canvas(frame: &FrameBuffer, size: Size) -> io::Result<Terminal<CrosstermBackend<FrameBuffer>>> {
    let viewport = Viewport::Fixed(Rect::new(0, 0, size.width, size.height));
    Terminal::with_options(CrosstermBackend::new(frame.clone()), TerminalOptions { viewport })
}

impl Screen {
    /// Takes the terminal: raw mode, alternate screen, bracketed paste, focus events, the mouse if wanted.
    ///
    /// # Errors
    /// When standard output is no terminal or refuses.
    pub fn enter(mouse: bool) -> io::Result<Self> {
        if !io::stdout().is_terminal() {
            return Err(io::Error::other("standard output is not a terminal"));
        }
        hook_panics();
        let frame = FrameBuffer::default();
        let terminal = canvas(&frame, Size::ZERO)?;
        let mut screen = Self { terminal, frame, drawn: Size::ZERO, mouse, resumed: None };
        screen.take()?;
        Ok(screen)
    }

    fn take(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        ENTERED.store(true, Ordering::SeqCst);
        let mut out = io::stdout();
        out.write_all(SAVE_TITLE.as_bytes())?;
        execute!(out, EnterAlternateScreen, EnableBracketedPaste, EnableFocusChange, cursor::Hide)?;
        if self.mouse {
            out.write_all(MOUSE_ON.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    }

    /// The terminal's size now.
    pub fn size(&self) -> Size {
        size().map_or(Size { width: 80, height: 24 }, |(width, height)| Size { width, height })
    }

    /// Draws the model: one write.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, model: &Model) -> io::Result<()> {
        self.frame.0.borrow_mut().clear();
        self.frame.write_all(BEGIN_UPDATE)?;
        if self.drawn != model.size {
            self.terminal = canvas(&self.frame, model.size)?;
            self.drawn = model.size;
            self.frame.write_all(CLEAR)?;
        }
        self.terminal.draw(|frame| {
            if let Some(Position { x, y }) = view::draw(model, frame.buffer_mut()) {
                frame.set_cursor_position((x, y));
            }
        })?;
        self.frame.write_all(END_UPDATE)?;
        let mut out = io::stdout();
        out.write_all(&self.frame.0.borrow())?;
        out.flush()
    }

    /// Forgets what the terminal shows, so that the next frame draws all of it.
    pub fn forget(&mut self) {
        self.drawn = Size::ZERO;
    }

    /// Puts text on the clipboard by OSC 52.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
    }

    /// Sets the window's title.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn title(&mut self, title: &str) -> io::Result<()> {
        let mut out = io::stdout();
        write!(out, "\x1b]2;{}\x07", plain(title))?;
        out.flush()
    }

    /// Rings, and gives the desktop a notice in the dialect that this terminal speaks.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn notice(&mut self, title: &str, body: &str) -> io::Result<()> {
        let mut out = io::stdout();
        let (title, body) = (plain(title), plain(body));
        let sequence = if speaks_777() {
            format!("\x1b]777;notify;{};{}\x07", title.replace(';', ","), body.replace(';', ","))
        } else {
            format!("\x1b]9;{title}: {body}\x07")
        };
        if std::env::var_os("TMUX").is_some() {
            write!(out, "\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))?;
        } else {
            out.write_all(sequence.as_bytes())?;
        }
        out.write_all(b"\x07")?;
        out.flush()
    }

    /// Gives the terminal to the shell and stops; returns when the shell lets us go on.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        // The whole group stops, as if the terminal had sent it: a parent such as `cargo run` must stop too. Agents'
        // processes have sessions of their own and are not in it.
        kill_current_process_group(Signal::TSTP)?;
        // The signal may reach another thread first; this one must not take the terminal back before all have
        // stopped. Without a shell that stops jobs nothing happens, and we go on.
        #[expect(clippy::disallowed_methods, reason = "being stopped can't be waited for")]
        std::thread::sleep(STOP_WAIT);
        self.take()?;
        self.forget();
        self.resumed = Some(Instant::now());
        Ok(())
    }

    /// Takes the terminal again after a stop that was not ours: the shell has set it up for itself meanwhile.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn resume(&mut self) -> io::Result<()> {
        if self.resumed.is_some_and(|at| at.elapsed() < Duration::from_secs(1)) {
            return Ok(());
        }
        restore();
        self.take()?;
        self.forget();
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// No control character leaves inside a title or a notice.
fn plain(text: &str) -> String {
    super::text::clean(text).into_owned()
}

fn speaks_777() -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    std::env::var_os("VTE_VERSION").is_some() || term.starts_with("rxvt") || term.starts_with("foot")
}

/// Gives the terminal back: once, from whichever thread comes first. Errors are of no use to anybody here.
pub fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = out.write_all(END_UPDATE);
    let _ = out.write_all(MOUSE_OFF.as_bytes());
    let _ = execute!(out, DisableFocusChange, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    let _ = out.write_all(RESTORE_TITLE.as_bytes());
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// A panic of the screen gives the terminal back before anything is printed. Panics elsewhere are caught by their
/// owners; printed, they would be strewn over the screen, so they go to the log while the screen is up.
fn hook_panics() {
    static HOOKED: AtomicBool = AtomicBool::new(false);
    if HOOKED.swap(true, Ordering::SeqCst) {
        return;
    }
    let before = Arc::new(panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        let ours = std::thread::current().name() == Some(THREAD);
        if ours {
            restore();
        }
        if ours || !ENTERED.load(Ordering::SeqCst) {
            before(info);
        } else {
            tracing::error!("panic: {info}");
        }
    }));
}

/// How long (ms) the terminal may take to answer a question. Every terminal answers the second one, so the wait is
/// rarely that long.
const ANSWER_MS: u64 = 200;

/// Asks the terminal for its background colour (OSC 11) and waits for the answer, or for that to the question that
/// every terminal knows (primary device attributes). To be called before the reader starts.
pub fn ask_background() -> Option<ThemeName> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return None;
    }
    let mut out = io::stdout();
    out.write_all(b"\x1b]11;?\x1b\\\x1b[c").and_then(|()| out.flush()).ok()?;
    let end = Instant::now() + Duration::from_millis(ANSWER_MS);
    let mut answer = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let timeout = Timespec::try_from(left).ok()?;
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return None,
        }
        let mut bytes = [0u8; 256];
        let read = rustix::io::read(&stdin, &mut bytes).ok()?;
        answer.extend_from_slice(bytes.get(..read)?);
        let attributes = answer.windows(3).position(|w| w == b"\x1b[?");
        if read == 0 || attributes.is_some_and(|at| answer.iter().skip(at).any(|b| *b == b'c')) {
            break;
        }
    }
    background(&String::from_utf8_lossy(&answer))
}

/// The theme for a terminal's answer, `...]11;rgb:RRRR/GGGG/BBBB...`.
fn background(answer: &str) -> Option<ThemeName> {
    let (_, rest) = answer.split_once("]11;rgb:")?;
    let mut parts = rest.split(['/', '\x1b', '\u{7}']).take(3).map(|part| {
        match part.len() {
            // One digit stands for itself twice.
            1 => u8::from_str_radix(part, 16).ok().map(|v| v * 17),
            _ => u8::from_str_radix(part.get(..2)?, 16).ok(),
        }
    });
    let rgb = (parts.next()??, parts.next()??, parts.next()??);
    Some(if is_light(rgb) { ThemeName::Light } else { ThemeName::Dark })
}

/// Swallows answers of the terminal that come after all: `ESC ]` reads as Alt-], and what follows at once, up to the
/// end of the sequence, is no typing.
#[derive(Default)]
struct LateAnswer {
    since: Option<Instant>,
}

impl LateAnswer {
    /// Whether this key belongs to such an answer.
    fn swallows(&mut self, key: Key, at: Instant) -> bool {
        const GAP: Duration = Duration::from_millis(50);
        if key.alt && key.code == Code::Char(']') {
            self.since = Some(at);
            return true;
        }
        let Some(since) = self.since else { return false };
        if at.saturating_duration_since(since) > GAP {
            self.since = None;
            return false;
        }
        self.since = Some(at);
        let ends = (key.alt && key.code == Code::Char('\\')) || (key.ctrl && key.code == Code::Char('g'));
        if ends {
            self.since = None;
        }
        true
    }
}

/// What the reader's thread hands over.
#[derive(Debug)]
pub enum Input {
    Msg(Msg),
    /// The terminal has hung up or cannot be read.
    Lost(String),
}

/// Reads the terminal until it is gone or nobody listens. Blocks; needs a thread of its own.
///
/// It waits for the terminal by itself before it asks crossterm, because crossterm spins on a terminal that hung up.
pub fn read_input(sink: &UnboundedSender<Input>) {
    let outcome = read_loop(sink);
    if let Err(error) = outcome {
        let _ = sink.send(Input::Lost(error.to_string()));
    }
}

fn read_loop(sink: &UnboundedSender<Input>) -> io::Result<()> {
    let stdin = io::stdin();
    let tty = if stdin.is_terminal() { None } else { Some(std::fs::File::open("/dev/tty")?) };
    let mut late = LateAnswer::default();
    loop {
        let mut fds = match &tty {
            Some(tty) => [PollFd::new(tty, PollFlags::IN)],
            None => [PollFd::new(&stdin, PollFlags::IN)],
        };
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let [fd] = &fds;
        if fd.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::Error::other("the terminal hung up"));
        }
        while event::poll(Duration::ZERO)? {
            if let Some(msg) = translate(event::read()?)
                && !matches!(&msg, Msg::Key(key) if late.swallows(*key, Instant::now()))
                && sink.send(Input::Msg(msg)).is_err()
            {
                return Ok(());
            }
        }
    }
}

/// A terminal's event in our words; none for those that mean nothing here.
fn translate(event: Event) -> Option<Msg> {
    match event {
        Event::Key(key) => translate_key(key).map(Msg::Key),
        Event::Paste(text) => Some(Msg::Paste(text)),
        Event::Resize(width, height) => Some(Msg::Resize(Size { width, height })),
        Event::FocusGained => Some(Msg::TerminalFocus(TerminalFocus::Focused)),
        Event::FocusLost => Some(Msg::TerminalFocus(TerminalFocus::Unfocused)),
        Event::Mouse(mouse) => {
            let kind = match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => MouseKind::Press,
                MouseEventKind::ScrollUp => MouseKind::WheelUp,
                MouseEventKind::ScrollDown => MouseKind::WheelDown,
                _ => return None,
            };
            Some(Msg::Mouse(Mouse { at: Position { x: mouse.column, y: mouse.row }, kind }))
        }
    }
}

fn translate_key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let mut shift = event.modifiers.contains(KeyModifiers::SHIFT);
    let code = match event.code {
        KeyCode::Char(c) => {
            shift = false;
            // With Ctrl the case of a letter says nothing.
            Code::Char(if event.modifiers.contains(KeyModifiers::CONTROL) { c.to_ascii_lowercase() } else { c })
        }
        KeyCode::Enter => Code::Enter,
        KeyCode::Esc => Code::Esc,
        KeyCode::Tab => Code::Tab,
        KeyCode::BackTab => {
            shift = true;
            Code::Tab
        }
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Delete => Code::Delete,
        KeyCode::Insert => Code::Insert,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        KeyCode::F(n) => Code::F(n),
        _ => return None,
    };
    Some(Key {
        code,
        ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
        alt: event.modifiers.contains(KeyModifiers::ALT),
        shift,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that the key map uses are those of what a terminal sends.
    #[test]
    fn keys_get_the_names_of_the_key_map() {
        let check = |code: KeyCode, modifiers: KeyModifiers, name: &str| {
            assert_eq!(translate_key(KeyEvent::new(code, modifiers)).unwrap().name(), name);
        };
        check(KeyCode::Char('G'), KeyModifiers::SHIFT, "G");
        check(KeyCode::Char('p'), KeyModifiers::CONTROL, "Ctrl-p");
        check(KeyCode::BackTab, KeyModifiers::SHIFT, "Shift-Tab");
        check(KeyCode::Enter, KeyModifiers::ALT, "Alt-Enter");
        check(KeyCode::Char(' '), KeyModifiers::NONE, "Space");
        check(KeyCode::Char('?'), KeyModifiers::SHIFT, "?");
    }

    /// Terminals answer with 4, 2 or 1 digits per channel, ended by ST or BEL; some not at all.
    #[test]
    fn the_background_decides_the_theme() {
        let check = |answer: &str, expect: Option<ThemeName>| assert_eq!(background(answer), expect, "{answer:?}");
        check("\u{1b}]11;rgb:1414/1616/1b1b\u{1b}\\\u{1b}[?62;4c", Some(ThemeName::Dark));
        check("\u{1b}]11;rgb:ff/fa/f0\u{7}", Some(ThemeName::Light));
        check("\u{1b}]11;rgb:f/f/f\u{7}", Some(ThemeName::Light));
        check("\u{1b}[?6c", None);
        check("\u{1b}]11;rgb:zz/zz/zz\u{7}", None);
        check("", None);
    }

    /// An answer that comes late is no typing; what comes after it is.
    #[test]
    fn late_answers_are_swallowed() {
        let mut late = LateAnswer::default();
        let begin = Instant::now();
        let alt = |c| Key { alt: true, ..Key::char(c) };
        let mut passed = String::new();
        let keys =
            [alt(']')].into_iter().chain("11;rgb:1/2/3".chars().map(Key::char)).chain([alt('\\'), Key::char('q')]);
        for key in keys {
            if !late.swallows(key, begin) {
                passed.push_str(&key.name());
            }
        }
        assert_eq!(passed, "q");
        assert!(late.swallows(alt(']'), begin));
        assert!(!late.swallows(Key::char('x'), begin + Duration::from_millis(80)), "a hand pressed Alt-]");
    }

    /// A title or a notice carries no escape of its own.
    #[test]
    fn notices_are_plain() {
        assert_eq!(plain("a\u{7}b\u{1b}]0;x\u{7}c\nd"), "abc d");
    }
}
