//! The table of commands; help, completion and the reader all go by it.

use super::error::ConsoleError;
use super::words;
use super::{ConsoleContext, ConsoleLine, LocalCommand, answer, see, steer, wait};
use crate::client::suggest::nearest;
use crate::protocol::AgentActionKind;

/// A command of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Without the slash.
    pub name: &'static str,
    /// Other names, without the slash.
    pub aliases: &'static [&'static str],
    /// How it is written, with the slash.
    pub usage: &'static str,
    /// What it does, a short phrase.
    pub what: &'static str,
    verb: Verb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Answer,
    Goal,
    Repo,
    Agent(AgentActionKind),
    Task,
    Diff,
    Memory,
    Show(Show),
    Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    Status,
    Agents,
    Tasks,
    Decisions,
    Feed,
    Counts,
    Help,
    Quit,
}

const fn command(
    name: &'static str,
    aliases: &'static [&'static str],
    usage: &'static str,
    what: &'static str,
    verb: Verb,
) -> Command {
    Command { name, aliases, usage, what, verb }
}

/// Every command, the most used first.
pub const COMMANDS: &[Command] = &[
    command("answer", &["a"], "/answer [dN] <number|label> [text]", "answer a decision", Verb::Answer),
    command("diff", &[], "/diff <worktree|dN|tN|@agent>", "show a worktree's changes", Verb::Diff),
    command("pause", &[], "/pause @agent", "stop its turn, keep its task", Verb::Agent(AgentActionKind::Pause)),
    command("resume", &[], "/resume @agent", "let a paused agent go on", Verb::Agent(AgentActionKind::Resume)),
    command("stop", &[], "/stop @agent", "send it off shift", Verb::Agent(AgentActionKind::Stop)),
    command("spawn", &[], "/spawn @agent [tN]", "bring it on shift", Verb::Agent(AgentActionKind::Spawn)),
    command("task", &[], "/task <tN> cancel|retry|prioritize [n]|reassign @agent", "steer a task", Verb::Task),
    command("goal", &[], "/goal [repo=<id>] <text>", "give the lead a goal", Verb::Goal),
    command("repo", &[], "/repo add <path>", "connect a git repository", Verb::Repo),
    command("memory", &[], "/memory [note]", "read the team's notes", Verb::Memory),
    command("tasks", &[], "/tasks", "list the tasks", Verb::Show(Show::Tasks)),
    command("agents", &[], "/agents", "list the agents", Verb::Show(Show::Agents)),
    command("decisions", &[], "/decisions", "list the decisions", Verb::Show(Show::Decisions)),
    command("status", &[], "/status", "how things stand", Verb::Show(Show::Status)),
    command("feed", &[], "/feed", "the last lines of the feed", Verb::Show(Show::Feed)),
    command("counts", &[], "/counts", "how many of what", Verb::Show(Show::Counts)),
    command("help", &["?"], "/help", "keys and commands", Verb::Show(Show::Help)),
    command("quit", &["q", "exit"], "/quit", "leave", Verb::Show(Show::Quit)),
    command(
        "wait",
        &[],
        "/wait <seconds>|dN|tN [status]|decision [kind]|goal [status]|merge|diff [worktree]|snapshot",
        "for scripts: wait until something holds",
        Verb::Wait,
    ),
];

/// The command of this name or alias, whatever the case; `name` is without the slash.
pub(super) fn find(name: &str) -> Option<&'static Command> {
    let name = name.to_lowercase();
    COMMANDS.iter().find(|command| command.name == name || command.aliases.contains(&name.as_str()))
}

/// Reads a command; `text` is what stands behind the slash.
pub(super) fn run(text: &str, context: &ConsoleContext<'_>) -> Result<ConsoleLine, ConsoleError> {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let rest = rest.trim();
    let Some(command) = find(name) else {
        let suggestion = nearest(name, COMMANDS.iter().map(|command| command.name)).map(|name| format!("/{name}"));
        return Err(ConsoleError::UnknownCommand { name: name.to_owned(), suggestion });
    };
    match command.verb {
        Verb::Answer => answer::answer(rest, context, command.usage).map(ConsoleLine::Send),
        Verb::Goal => goal(rest, context, command.usage),
        Verb::Repo => steer::repo(rest, context, command.usage).map(ConsoleLine::Send),
        Verb::Agent(action) => steer::agent_action(action, rest, context, command.usage).map(ConsoleLine::Send),
        Verb::Task => steer::task_action(rest, context, command.usage).map(ConsoleLine::Send),
        Verb::Diff => see::diff(rest, context, command.usage).map(ConsoleLine::Local),
        Verb::Memory => see::memory(rest, context).map(ConsoleLine::Local),
        Verb::Wait => wait::wait(rest, context, command.usage).map(ConsoleLine::Local),
        Verb::Show(show) => {
            if !rest.is_empty() {
                let problem = format!("/{} takes nothing behind it", command.name);
                return Err(ConsoleError::Usage { usage: command.usage, problem });
            }
            Ok(ConsoleLine::Local(match show {
                Show::Status => LocalCommand::Status,
                Show::Agents => LocalCommand::Agents,
                Show::Tasks => LocalCommand::Tasks,
                Show::Decisions => LocalCommand::Decisions,
                Show::Feed => LocalCommand::Feed,
                Show::Counts => LocalCommand::Counts,
                Show::Help => LocalCommand::Help,
                Show::Quit => LocalCommand::Quit,
            }))
        }
    }
}

/// `/goal [repo=<id>] <text>`: any text as a goal, also one that begins with `/` or `@`.
fn goal(rest: &str, context: &ConsoleContext<'_>, usage: &'static str) -> Result<ConsoleLine, ConsoleError> {
    let (repo, text) = match words::first(rest) {
        Some((word, after)) if !word.quoted && word.text.starts_with("repo=") => {
            let name = word.text.strip_prefix("repo=").unwrap_or_default();
            let Some(repo) = context.mirror.repos.get(name) else {
                let known: Vec<&str> = context.mirror.repos_by_age().map(|repo| repo.id.as_str()).collect();
                if known.is_empty() {
                    return Err(ConsoleError::NoRepo);
                }
                return Err(ConsoleError::UnknownRepo { name: name.to_owned(), known: known.join(", ") });
            };
            (Some(repo.id.clone()), after)
        }
        _ => (None, rest),
    };
    if text.is_empty() {
        return Err(ConsoleError::Usage { usage, problem: "the goal's text is missing".to_owned() });
    }
    super::goal(text, repo, context)
}
