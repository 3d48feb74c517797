//! Random histories: any keys, clicks, sizes and messages. Nothing panics, there is always a way back, and nothing is
//! sent that nobody asked for.

use agentcraft_tui::client::LinkEvent;
use agentcraft_tui::protocol::*;
use agentcraft_tui::tui::keys::{Code, Key};
use agentcraft_tui::tui::msg::{Mouse, MouseKind, Msg, TerminalFocus};
use ratatui::layout::{Position, Size};

use crate::fixture;
use crate::stage::{MIDDLE, Stage};

fn any_key(random: &mut fastrand::Rng) -> Key {
    const CODES: [Code; 15] = [
        Code::Enter,
        Code::Esc,
        Code::Tab,
        Code::Backspace,
        Code::Delete,
        Code::Left,
        Code::Right,
        Code::Up,
        Code::Down,
        Code::Home,
        Code::End,
        Code::PageUp,
        Code::PageDown,
        Code::F(1),
        Code::Insert,
    ];
    let code = if random.u8(0..10) < 6 {
        Code::Char(
            random
                .choice("abcdefghijklmnopqrstuvwxyzMRSPGTN123456789:?/@ ]<>日é\u{7}".chars().collect::<Vec<_>>())
                .unwrap(),
        )
    } else {
        *random.choice(&CODES).unwrap()
    };
    Key { code, ctrl: random.u8(0..12) == 0, alt: random.u8(0..20) == 0, shift: random.u8(0..20) == 0 }
}

fn any_message(random: &mut fastrand::Rng, stage: &Stage) -> ServerMessage {
    let id = |letter: char, n: u32| format!("{letter}{n}");
    match random.u8(0..9) {
        0 => {
            let mut decision = random.choice([fixture::permission(), fixture::question(), fixture::merge()]).unwrap();
            decision.id = id('d', random.u32(1..12)).into();
            decision.status = *random.choice(DecisionStatus::ALL).unwrap();
            if random.bool() {
                decision.options.truncate(random.usize(0..3));
            }
            ServerMessage::DecisionUpsert { decision }
        }
        1 => {
            let mut task = fixture::busy().tasks.remove(random.usize(0..9));
            task.status = *random.choice(TaskStatus::ALL).unwrap();
            task.id = id('t', random.u32(1..30)).into();
            ServerMessage::TaskUpsert { task }
        }
        2 => {
            let mut agent = fixture::busy().agents.remove(random.usize(0..6));
            agent.state = *random.choice(AgentState::ALL).unwrap();
            agent.paused = random.bool();
            ServerMessage::AgentUpsert { agent }
        }
        3 => ServerMessage::AgentLog {
            agent_id: "kit".into(),
            entries: vec![LogEntry {
                ts: 1,
                kind: *random.choice(LogKind::ALL).unwrap(),
                text: "line\n+added\n-removed".to_owned(),
            }],
        },
        4 => ServerMessage::FeedAdd { item: fixture::busy().feed.remove(random.usize(0..14)) },
        5 => ServerMessage::Notify(Notify {
            level: *random.choice(NotifyLevel::ALL).unwrap(),
            text: "notice".to_owned(),
            decision_id: Some("d3".into()),
            ts: 1,
        }),
        6 => ServerMessage::Ack(Ack {
            re: format!("c{}", random.u64(1..stage.model.next_token + 2)),
            ok: random.bool(),
            error: Some("refused".to_owned()),
            result: None,
        }),
        7 => ServerMessage::Diff(Box::new(fixture::diff(&format!(
            "screen-{}",
            random.u64(1..stage.model.next_token + 2)
        )))),
        _ => ServerMessage::Error(ErrorReply { message: "wrong".to_owned(), re: None }),
    }
}

fn step(random: &mut fastrand::Rng, stage: &mut Stage) -> String {
    let what = random.u8(0..20);
    let said;
    match what {
        0..12 => {
            let key = any_key(random);
            said = key.name();
            stage.key(key);
        }
        12 => {
            let key = any_key(random);
            said = format!("burst {}", key.name());
            stage.msg(Msg::Key(key));
            stage.msg(Msg::Key(any_key(random)));
        }
        13 => {
            let at = Position { x: random.u16(0..210), y: random.u16(0..70) };
            let kind = *random.choice(&[MouseKind::Press, MouseKind::WheelUp, MouseKind::WheelDown]).unwrap();
            said = format!("{kind:?} {at}");
            stage.msg(Msg::Mouse(Mouse { at, kind }));
        }
        14 => {
            let size = Size { width: random.u16(1..210), height: random.u16(1..70) };
            said = format!("{size}");
            stage.msg(Msg::Resize(size));
        }
        15 => {
            said = "time".to_owned();
            stage.wait(random.u64(0..5_000));
        }
        16 => {
            said = "paste".to_owned();
            stage.msg(Msg::Paste("1\n2\u{1b}[2J\n".to_owned()));
        }
        17 if random.u8(0..4) == 0 => {
            said = "link".to_owned();
            let event = if random.bool() {
                LinkEvent::Up(Box::new(if random.bool() { fixture::busy() } else { fixture::fresh() }))
            } else {
                LinkEvent::Down { why: "gone".to_owned(), retry_in_ms: random.u64(0..5_000) }
            };
            stage.link(event);
        }
        18 => {
            said = "focus".to_owned();
            let focus = if random.bool() { TerminalFocus::Focused } else { TerminalFocus::Unfocused };
            stage.msg(Msg::TerminalFocus(focus));
        }
        _ => {
            let message = any_message(random, stage);
            said = format!("{message:?}").chars().take(30).collect();
            stage.server(message);
        }
    }
    said
}

/// Whatever happens, the screen can be drawn, the selection points at something, and Esc leads back to the panes.
#[test]
fn any_history_can_be_drawn_and_left() {
    for seed in 0..25 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut stage = Stage::busy(MIDDLE);
        let mut trace: Vec<String> = Vec::new();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..120 {
                trace.push(step(&mut random, &mut stage));
                stage.buffer();
            }
            for _ in 0..12 {
                if stage.model.overlays.is_empty() {
                    break;
                }
                stage.key(Key::plain(Code::Esc));
            }
            assert!(stage.model.overlays.is_empty(), "no way back");
        }));
        if let Err(panic) = outcome {
            let last = trace.iter().rev().take(15).rev().cloned().collect::<Vec<_>>().join(", ");
            eprintln!("seed {seed}, step {}, after: {last}", trace.len());
            std::panic::resume_unwind(panic);
        }
    }
}

/// What the Foreman and the terminal do by themselves never sends anything but a diff request that was pending.
#[test]
fn nothing_is_sent_that_nobody_asked_for() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut stage = Stage::busy(MIDDLE);
        for _ in 0..150 {
            match random.u8(0..5) {
                0 => stage.wait(random.u64(0..2_000)),
                1 => stage.msg(Msg::Resize(Size { width: random.u16(1..210), height: random.u16(1..70) })),
                2 => stage.msg(Msg::Paste("1\n".to_owned())),
                3 => {
                    let at = Position { x: random.u16(0..120), y: random.u16(0..36) };
                    stage.msg(Msg::Mouse(Mouse { at, kind: MouseKind::Press }));
                }
                _ => {
                    let message = any_message(&mut random, &stage);
                    stage.server(message);
                }
            }
        }
        assert_eq!(stage.sends(), [], "seed {seed}");
    }
}

/// Keys that only move and look (no Enter, no action key) never send anything either.
#[test]
fn looking_about_sends_nothing() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut stage = Stage::busy(MIDDLE);
        stage.keys("w");
        for _ in 0..200 {
            let name = random
                .choice(&[
                    "j",
                    "k",
                    "h",
                    "l",
                    "Tab",
                    "Shift-Tab",
                    "w",
                    "a",
                    "n",
                    "f",
                    "1",
                    "2",
                    "3",
                    "z",
                    "]",
                    "[",
                    "g",
                    "G",
                    "?",
                    "Esc",
                    "M",
                    "R",
                    "S",
                    "PageUp",
                    "PageDown",
                ])
                .unwrap();
            stage.keys(name);
        }
        assert_eq!(stage.sends(), [], "seed {seed}");
    }
}
