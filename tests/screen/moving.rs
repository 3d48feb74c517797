//! Focus, selection, overlays, cards and their actions, the mouse.

use agentcraft_tui::protocol::*;
use agentcraft_tui::tui::cmd::Cmd;
use agentcraft_tui::tui::focus::Pane;
use agentcraft_tui::tui::layout::{Hit, areas, hit};
use agentcraft_tui::tui::model::{Overlay, content};
use agentcraft_tui::tui::msg::{Mouse, MouseKind, Msg};
use ratatui::layout::{Position, Size};

use crate::fixture;
use crate::stage::{MIDDLE, SMALL, Stage};

/// Tab goes round all panes and back; Shift-Tab the other way.
#[test]
fn tab_goes_round() {
    let mut stage = Stage::busy(MIDDLE);
    assert_eq!(stage.model.focus, Pane::Wall);
    let mut seen = Vec::new();
    for _ in 0..4 {
        stage.keys("Tab");
        seen.push(stage.model.focus);
    }
    assert_eq!(seen, [Pane::Monitors, Pane::Podium, Pane::Feed, Pane::Console]);
    stage.keys("Shift-Tab");
    assert_eq!(stage.model.focus, Pane::Feed);
}

/// Arrows and hjkl move within a pane and, at its edge, to the pane next door; never into the console.
#[test]
fn arrows_cross_edges() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("g G j");
    assert_eq!(stage.model.focus, Pane::Monitors, "below the wall are the agents");
    stage.keys("k k k k");
    assert_eq!(stage.model.focus, Pane::Wall);
    stage.keys("a l l l");
    assert_eq!(stage.model.focus, Pane::Podium, "right of the agents are the decisions");
    stage.keys("f j j j j");
    assert_eq!(stage.model.focus, Pane::Feed, "below the feed is nothing to go to");
}

/// On the wall, left and right go from column to column, up and down within one.
#[test]
fn the_wall_moves_like_a_board() {
    let mut stage = Stage::busy(MIDDLE);
    let selected = |stage: &Stage| stage.model.wall.selected.clone().unwrap().to_string();
    assert_eq!(selected(&stage), "t3");
    stage.keys("j");
    assert_eq!(selected(&stage), "t5");
    stage.keys("l");
    assert_eq!(selected(&stage), "t4");
    stage.keys("l l");
    assert_eq!(selected(&stage), "t7");
    stage.keys("h h h h");
    assert_eq!(selected(&stage), "t6");
}

/// `:` reaches the console from everywhere, Enter keeps it, Esc leaves it.
#[test]
fn the_console_is_one_key_away() {
    for from in ["w", "a", "n", "f", "w Enter", "a Enter", "?", "M", "R"] {
        let mut stage = Stage::busy(MIDDLE);
        stage.keys(from);
        stage.keys(":");
        assert_eq!(stage.model.focus, Pane::Console, "from {from}");
        assert!(stage.model.overlays.is_empty(), "from {from}");
        stage.type_text("wq");
        assert_eq!(content(&stage.model.console.text), "wq");
        stage.keys("Esc");
        assert_ne!(stage.model.focus, Pane::Console);
    }
}

/// From everything that opens, Esc comes back to the panes within three presses.
#[test]
fn escape_always_leads_back() {
    for into in
        ["w Enter a", "a Enter b", "M Enter", "n d", "?", "Ctrl-p", "w Enter Enter Enter", "z a Space", "R", "S"]
    {
        let mut stage = Stage::busy(MIDDLE);
        stage.keys(into);
        stage.keys("Esc Esc Esc");
        assert!(stage.model.overlays.is_empty(), "from {into}");
    }
}

/// Zoom gives the pane the whole body, moving on takes the zoom along, and it ends.
#[test]
fn zoom_follows_the_focus() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("f z");
    let zoomed = areas(MIDDLE, &stage.model);
    assert_eq!(zoomed.panes, [(Pane::Feed, zoomed.body)]);
    stage.keys("Tab Shift-Tab w");
    assert_eq!(areas(MIDDLE, &stage.model).panes, [(Pane::Wall, zoomed.body)]);
    stage.keys("z");
    assert_eq!(areas(MIDDLE, &stage.model).panes.len(), 4);
}

/// The task card acts: retry and top at once, cancel asks twice, reassign asks to whom.
#[test]
fn the_task_card_acts() {
    let action = |action, arg: Option<&str>| {
        ClientMessage::TaskAction(TaskAction { task_id: "t3".into(), action, arg: arg.map(str::to_owned) })
    };
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("w Enter r");
    assert_eq!(stage.sends(), [action(TaskActionKind::Retry, None)]);
    stage.ack();
    stage.shows("t3 is tried again");
    stage.keys("u");
    stage.keys("x");
    assert_eq!(stage.sends().len(), 2);
    stage.shows("x again cancels t3; t6, t9 wait for it");
    stage.keys("Down x");
    assert_eq!(stage.sends().len(), 2, "another key takes the first x back");
    stage.keys("x");
    assert_eq!(stage.sends()[2], action(TaskActionKind::Cancel, None));
    stage.refuse("t3 is already done");
    stage.shows("t3 is already done");
    stage.keys("a Down Enter");
    assert_eq!(stage.sends()[3], action(TaskActionKind::Reassign, Some("kit")));
}

/// The agent card acts: pause or resume by state, stop asks twice, a message begins in the console.
#[test]
fn the_agent_card_acts() {
    let action = |action| ClientMessage::AgentAction(AgentAction { agent_id: "juniper".into(), action, arg: None });
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("a l Enter s x x");
    assert_eq!(stage.sends(), [action(AgentActionKind::Pause), action(AgentActionKind::Stop)]);
    stage.keys("m");
    assert_eq!(stage.model.focus, Pane::Console);
    assert_eq!(content(&stage.model.console.text), "@juniper ");
    let mut paused = fixture::busy();
    paused.agents[1].paused = true;
    let mut stage = Stage::with(MIDDLE, paused);
    stage.shows("paused");
    stage.keys("a l s");
    assert_eq!(stage.sends(), [action(AgentActionKind::Resume)]);
}

/// `P` pauses everybody on shift; when all are paused it lets all go on.
#[test]
fn the_whole_team_pauses_by_one_key() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("P");
    assert_eq!(stage.sends().len(), 6);
    let mut paused = fixture::busy();
    paused.agents.iter_mut().for_each(|a| a.paused = true);
    let mut stage = Stage::with(MIDDLE, paused);
    stage.keys("P");
    let all = stage.sends();
    assert!(all.iter().all(|m| matches!(m, ClientMessage::AgentAction(a) if a.action == AgentActionKind::Resume)));
    assert_eq!(all.len(), 6);
}

/// Leaving asks while agents work; an attached screen leaves at once; Ctrl-C never ends anything by accident.
#[test]
fn leaving_asks_while_agents_work() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("Ctrl-c");
    assert!(!stage.cmds.contains(&Cmd::Leave));
    stage.shows("4 agents are in the middle of a turn");
    stage.keys("n");
    assert!(stage.model.overlays.is_empty());
    stage.keys("q y");
    assert!(stage.cmds.contains(&Cmd::Leave));
    let mut stage = Stage::with(MIDDLE, fixture::fresh());
    stage.keys("Ctrl-c");
    assert!(stage.cmds.contains(&Cmd::Leave), "nobody works, so nothing is asked");
    let options = agentcraft_tui::tui::UiOptions { attached: true, ..crate::stage::options() };
    let mut stage = Stage::with_options(MIDDLE, fixture::busy(), options);
    stage.keys("q");
    assert!(stage.cmds.contains(&Cmd::Leave));
}

/// The palette finds an agent by name and opens its card.
#[test]
fn the_palette_finds_by_name() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("Ctrl-p");
    stage.type_text("rowan");
    stage.keys("Enter");
    assert!(matches!(stage.model.overlays.as_slice(), [Overlay::Agent(card)] if card.agent.as_str() == "rowan"));
    stage.shows("API overloaded");
}

/// A click selects, a second one opens, the wheel scrolls a log without taking the focus.
#[test]
fn the_mouse_selects_and_opens() {
    for size in [SMALL, MIDDLE] {
        let mut stage = Stage::busy(size);
        let spot = |stage: &Stage, wanted: Hit| {
            (0..size.height)
                .flat_map(|y| (0..size.width).map(move |x| Position { x, y }))
                .find(|at| hit(&stage.model, *at) == wanted)
                .unwrap_or_else(|| panic!("{wanted:?} is nowhere at {size:?}"))
        };
        let at = spot(&stage, Hit::Task("t4".into()));
        stage.msg(Msg::Mouse(Mouse { at, kind: MouseKind::Press }));
        assert_eq!(stage.model.wall.selected, Some("t4".into()));
        let at = spot(&stage, Hit::Task("t4".into()));
        stage.msg(Msg::Mouse(Mouse { at, kind: MouseKind::Press }));
        assert!(matches!(stage.model.overlays.last(), Some(Overlay::Task(_))));
        stage.keys("Esc");
        let at = spot(&stage, Hit::Agent("kit".into()));
        stage.msg(Msg::Mouse(Mouse { at, kind: MouseKind::WheelUp }));
        assert_eq!(stage.model.focus, Pane::Wall);
        assert!(stage.model.monitors.back.contains_key("kit"));
    }
}

/// A log that was scrolled back stays where it is while lines come in, and follows again at its end.
#[test]
fn a_scrolled_log_stays() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("a Down PageUp");
    let before = stage.text();
    let entries = vec![LogEntry { ts: 1, kind: LogKind::Text, text: "brand new".to_owned() }];
    let agent = stage.model.monitors.selected.clone().unwrap();
    stage.server(ServerMessage::AgentLog { agent_id: agent, entries });
    assert_eq!(stage.model.monitors.back.len(), 1);
    stage.hides("brand new");
    let shown =
        |text: &str| -> Vec<String> { text.lines().skip(20).take(4).map(|l| l.chars().take(36).collect()).collect() };
    assert_eq!(shown(&before), shown(&stage.text()));
    stage.keys("G");
    stage.shows("brand new");
}

/// Copying puts cleaned text on the clipboard.
#[test]
fn copying_is_clean() {
    let mut stage = Stage::busy(MIDDLE);
    stage.server(ServerMessage::AgentLog {
        agent_id: "marlow".into(),
        entries: vec![LogEntry { ts: 1, kind: LogKind::Text, text: "a\u{1b}]52;c;eA==\u{7}b".to_owned() }],
    });
    stage.keys("a y");
    assert!(stage.cmds.contains(&Cmd::Copy("ab".to_owned())));
}

/// One pane at a time: arrows go through the tabs.
#[test]
fn tabs_are_walked_sideways() {
    let mut stage = Stage::busy(Size { width: 60, height: 15 });
    stage.keys("w l");
    assert_eq!(stage.model.focus, Pane::Monitors);
    stage.keys("l l");
    assert_eq!(stage.model.focus, Pane::Feed);
    stage.keys("h");
    assert_eq!(stage.model.focus, Pane::Podium);
}
