//! The console's lines: what each means as a message, or which view it opens.
//!
//! Pure. A line that can't be sent says why, and what would do.

use super::Mirror;
use super::words::{first_word, nearest, unquoted};
use crate::protocol::{
    AgentAction, AgentActionKind, AgentId, AnswerDecision, ClientMessage, Decision, DecisionId, DecisionKind,
    DecisionStatus, DiffRequest, GoalSubmit, MemoryId, OptionChoice, RepoAdd, RepoId, TaskAction, TaskActionKind,
    TaskId, UserMessage, WorktreeId, label,
};

/// Commands, with their arguments and what they do; help and completion read this list.
pub const COMMANDS: [(&str, &str, &str); 19] = [
    ("/answer", "[dN] <n|label> [text]", "answers a decision"),
    ("/a", "[dN] <n|label> [text]", "short for /answer"),
    ("/repo", "add <path>", "connects a repository"),
    ("/pause", "@name", "pauses an agent"),
    ("/resume", "@name", "lets a paused or stopped agent go on"),
    ("/stop", "@name", "sends an agent off shift; its work goes back to the board"),
    ("/spawn", "@name [tN]", "brings an agent onto the team"),
    ("/task", "<tN> <retry|cancel|reassign|prioritize> [arg]", "steers a task"),
    ("/diff", "<worktree|dN|tN|@name>", "shows a diff"),
    ("/status", "", "shows the Foreman's state"),
    ("/agents", "", "lists the team"),
    ("/tasks", "", "lists the tasks"),
    ("/decisions", "", "lists what waits for you"),
    ("/memory", "[note]", "opens the library"),
    ("/feed", "", "shows what happened"),
    ("/counts", "", "counts what there is"),
    ("/help", "", "shows keys and commands"),
    ("/quit", "", "leaves"),
    ("/q", "", "short for /quit"),
];

/// What a line is read against.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleContext<'a> {
    pub mirror: &'a Mirror,
    /// The decision on the podium: what `/answer` without an id means.
    pub shown_decision: Option<&'a DecisionId>,
}

/// What a line means.
#[derive(Clone, Debug, PartialEq)]
pub enum ConsoleLine {
    Send(ClientMessage),
    Local(LocalCommand),
}

/// A line that only the front-end answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalCommand {
    Status,
    Agents,
    Tasks,
    Decisions,
    Memory(Option<MemoryId>),
    Feed,
    Counts,
    Help,
    Quit,
}

/// Id of the diff request that a typed `/diff` makes.
pub const CONSOLE_DIFF: &str = "console";

/// Reads a line.
///
/// # Errors
/// Why it can't be sent, in words for the one who typed it.
pub fn parse(line: &str, context: &ConsoleContext<'_>) -> Result<ConsoleLine, String> {
    let line = line.trim();
    if line.is_empty() {
        return Err("type a goal, @name and a message, or /help".to_owned());
    }
    if line.starts_with('/') {
        return command(line, context);
    }
    if line.starts_with('@') {
        return message(line, context);
    }
    Ok(ConsoleLine::Send(ClientMessage::GoalSubmit(GoalSubmit { text: line.to_owned(), repo_id: None })))
}

fn message(line: &str, context: &ConsoleContext<'_>) -> Result<ConsoleLine, String> {
    let rest = line.strip_prefix('@').unwrap_or(line);
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
    let (name, body) = rest.split_at(end);
    let body = body.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == ':').trim();
    if name.is_empty() {
        return Err("a message begins with @name".to_owned());
    }
    let to = if name.eq_ignore_ascii_case("all") { "all".to_owned() } else { agent(name, context)?.to_string() };
    if body.is_empty() {
        return Err(format!("what shall @{name} hear?"));
    }
    Ok(ConsoleLine::Send(ClientMessage::UserMessage(UserMessage { to, text: body.to_owned() })))
}

fn agent(name: &str, context: &ConsoleContext<'_>) -> Result<AgentId, String> {
    if let Some(agent) = context.mirror.agent_named(name) {
        return Ok(agent.id.clone());
    }
    let name = name.trim_start_matches('@');
    let known = context.mirror.agents.iter().map(|agent| agent.id.as_str());
    Err(match nearest(name, known) {
        Some(near) => format!("no agent named \"{name}\"; did you mean @{near}?"),
        None => format!("no agent named \"{name}\""),
    })
}

fn command(line: &str, context: &ConsoleContext<'_>) -> Result<ConsoleLine, String> {
    let (word, rest) = first_word(line);
    let local = |command| Ok(ConsoleLine::Local(command));
    match word.to_lowercase().as_str() {
        "/answer" | "/a" => answer(rest, context).map(send),
        "/repo" => repo(rest).map(send),
        "/pause" => agent_action(AgentActionKind::Pause, rest, context).map(send),
        "/resume" => agent_action(AgentActionKind::Resume, rest, context).map(send),
        "/stop" => agent_action(AgentActionKind::Stop, rest, context).map(send),
        "/spawn" => agent_action(AgentActionKind::Spawn, rest, context).map(send),
        "/task" => task(rest, context).map(send),
        "/diff" => diff(rest, context).map(send),
        "/status" => local(LocalCommand::Status),
        "/agents" => local(LocalCommand::Agents),
        "/tasks" => local(LocalCommand::Tasks),
        "/decisions" => local(LocalCommand::Decisions),
        "/memory" => memory(rest, context),
        "/feed" => local(LocalCommand::Feed),
        "/counts" => local(LocalCommand::Counts),
        "/help" | "/?" => local(LocalCommand::Help),
        "/quit" | "/q" | "/exit" => local(LocalCommand::Quit),
        other => Err(match nearest(other, COMMANDS.iter().map(|(name, ..)| *name)) {
            Some(near) => format!("no command {word}; did you mean {near}?"),
            None => format!("no command {word}; /help lists them"),
        }),
    }
}

fn send(message: ClientMessage) -> ConsoleLine {
    ConsoleLine::Send(message)
}

fn looks_like(word: &str, letter: char) -> bool {
    word.strip_prefix(letter).is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn answer(rest: &str, context: &ConsoleContext<'_>) -> Result<ClientMessage, String> {
    let (first, after) = first_word(rest);
    let (id, rest) = if looks_like(&first.to_lowercase(), 'd') {
        (DecisionId(first.to_lowercase()), after)
    } else {
        match context.shown_decision {
            Some(shown) => (shown.clone(), rest),
            None if context.mirror.open_decisions().is_empty() => return Err("nothing waits for an answer".to_owned()),
            None => return Err("which one? /answer dN ...".to_owned()),
        }
    };
    let Some(decision) = context.mirror.decisions.get(&id) else { return Err(format!("no decision {id}")) };
    if decision.status != DecisionStatus::Open {
        return Err(format!("decision {id} is already {}", decision.status));
    }
    let rest = rest.trim();
    if rest.is_empty() {
        return Err(format!("what shall the answer be? {}", choices(decision)));
    }
    let (option, text) = choose(decision, rest)?;
    let text = unquoted(text);
    let text = (!text.is_empty()).then(|| text.to_owned());
    if option.as_deref() == Some(label::REQUEST_CHANGES) && text.is_none() {
        return Err(format!("say what to change: /answer {id} {} ...", quoted(label::REQUEST_CHANGES)));
    }
    Ok(ClientMessage::DecisionAnswer(AnswerDecision { decision_id: id, option: option.map(OptionChoice::Label), text }))
}

fn quoted(text: &str) -> String {
    if text.contains(' ') { format!("\"{text}\"") } else { text.to_owned() }
}

/// "1 Merge, 2 Request changes, 3 Reject"
fn choices(decision: &Decision) -> String {
    if decision.options.is_empty() {
        return "any text".to_owned();
    }
    let all: Vec<String> =
        decision.options.iter().enumerate().map(|(at, option)| format!("{} {option}", at + 1)).collect();
    all.join(", ")
}

/// The option that begins the text, by number (from 1), whole label, or one word that begins only one label; the rest
/// is text. For questions anything else is text.
///
/// A merge or a grant needs its number or its whole first word: a slip of one letter must not grant.
fn choose<'a>(decision: &Decision, rest: &'a str) -> Result<(Option<String>, &'a str), String> {
    let options = &decision.options;
    let lower = rest.to_lowercase();
    let mut labels: Vec<&String> = options.iter().collect();
    // The longest first, so that a label that begins another one does not win over it.
    labels.sort_by_key(|option| std::cmp::Reverse(option.len()));
    for option in labels {
        if let Some(after) = lower.strip_prefix(&option.to_lowercase())
            && after.chars().next().is_none_or(|c| !c.is_alphanumeric())
        {
            let tail = rest.get(rest.len() - after.len()..).unwrap_or_default();
            return Ok((Some(option.clone()), tail.trim_start_matches([':', ',']).trim_start()));
        }
    }
    let (first, after) = first_word(rest);
    if let Ok(number) = first.parse::<usize>() {
        return match number.checked_sub(1).and_then(|at| options.get(at)) {
            Some(option) => Ok((Some(option.clone()), after)),
            None if decision.kind == DecisionKind::Question && options.is_empty() => Ok((None, rest)),
            None => Err(format!("there is no option {number}: {}", choices(decision))),
        };
    }
    let wanted = first.to_lowercase();
    let mut starting = options.iter().filter(|option| option.to_lowercase().starts_with(&wanted));
    let found = match (starting.next(), starting.next()) {
        (Some(option), None) => Some(option),
        _ => None,
    };
    match (decision.kind, found) {
        (DecisionKind::Question, Some(option)) if after.is_empty() => Ok((Some(option.clone()), after)),
        (DecisionKind::Question, _) => Ok((None, rest)),
        (DecisionKind::Merge | DecisionKind::Permission, Some(option)) => {
            let grants = option == label::MERGE || option == label::ALLOW_ONCE || option == label::ALLOW_ALWAYS;
            let whole_word = option.split(' ').next().is_some_and(|word| word.eq_ignore_ascii_case(&first));
            if grants && !whole_word {
                return Err(format!("type it whole: {}", choices(decision)));
            }
            Ok((Some(option.clone()), after))
        }
        (DecisionKind::Merge | DecisionKind::Permission, None) => {
            Err(format!("\"{first}\" is not one of: {}", choices(decision)))
        }
    }
}

fn repo(rest: &str) -> Result<ClientMessage, String> {
    let (verb, path) = first_word(rest);
    if verb != "add" {
        return Err("/repo add <path>".to_owned());
    }
    let path = unquoted(path);
    if path.is_empty() {
        return Err("which folder? /repo add <path>".to_owned());
    }
    Ok(ClientMessage::RepoAdd(RepoAdd { path: path.to_owned() }))
}

fn agent_action(action: AgentActionKind, rest: &str, context: &ConsoleContext<'_>) -> Result<ClientMessage, String> {
    let (name, rest) = first_word(rest);
    if name.is_empty() {
        return Err(format!("whom? /{action} @name"));
    }
    let agent_id = agent(&name, context)?;
    let (arg, more) = first_word(rest);
    if !more.is_empty() || (action != AgentActionKind::Spawn && !arg.is_empty()) {
        return Err(format!(
            "/{action} takes one name{}",
            if action == AgentActionKind::Spawn { " and a task" } else { "" }
        ));
    }
    if !arg.is_empty() {
        known_task(&arg, context)?;
    }
    let arg = (!arg.is_empty()).then(|| arg.to_lowercase());
    Ok(ClientMessage::AgentAction(AgentAction { agent_id, action, arg }))
}

fn known_task(word: &str, context: &ConsoleContext<'_>) -> Result<TaskId, String> {
    let id = TaskId(word.to_lowercase());
    if context.mirror.tasks.contains_key(&id) { Ok(id) } else { Err(format!("no task {word}")) }
}

fn task(rest: &str, context: &ConsoleContext<'_>) -> Result<ClientMessage, String> {
    let (id, rest) = first_word(rest);
    if id.is_empty() {
        return Err("which task? /task tN retry|cancel|reassign|prioritize".to_owned());
    }
    let task_id = known_task(&id, context)?;
    let (verb, rest) = first_word(rest);
    let Some(action) = TaskActionKind::ALL.iter().copied().find(|action| action.as_str() == verb.to_lowercase()) else {
        let near = nearest(&verb, TaskActionKind::ALL.iter().map(|action| action.as_str()));
        return Err(match near {
            Some(near) if !verb.is_empty() => format!("no action \"{verb}\"; did you mean {near}?"),
            _ => format!("what shall happen to {task_id}? retry, cancel, reassign @name or prioritize [n]"),
        });
    };
    let (arg, more) = first_word(rest);
    if !more.is_empty() {
        return Err(format!("/task {task_id} {action} takes one argument at most"));
    }
    let arg = arg.trim_start_matches('@').to_owned();
    match action {
        TaskActionKind::Reassign if arg.is_empty() => return Err(format!("to whom? /task {task_id} reassign @name")),
        TaskActionKind::Reassign => {
            agent(&arg, context)?;
        }
        TaskActionKind::Prioritize if !arg.is_empty() && arg.parse::<i64>().is_err() => {
            return Err(format!("\"{arg}\" is not a whole number"));
        }
        TaskActionKind::Cancel | TaskActionKind::Retry if !arg.is_empty() => {
            return Err(format!("/task {task_id} {action} takes no argument"));
        }
        TaskActionKind::Prioritize | TaskActionKind::Cancel | TaskActionKind::Retry => {}
    }
    Ok(ClientMessage::TaskAction(TaskAction { task_id, action, arg: (!arg.is_empty()).then_some(arg) }))
}

fn diff(rest: &str, context: &ConsoleContext<'_>) -> Result<ClientMessage, String> {
    let (word, _) = first_word(rest);
    if word.is_empty() {
        return Err("of what? /diff <worktree>, dN, tN or @name".to_owned());
    }
    let (repo_id, worktree) = worktree_of(&word, context).ok_or_else(|| format!("no worktree for \"{word}\""))?;
    Ok(ClientMessage::DiffRequest(DiffRequest { request_id: CONSOLE_DIFF.to_owned(), repo_id, worktree, path: None }))
}

/// The worktree that a word names: its id, a decision, a task, or an agent.
fn worktree_of(word: &str, context: &ConsoleContext<'_>) -> Option<(RepoId, WorktreeId)> {
    let mirror = context.mirror;
    let lower = word.to_lowercase();
    if let Some(decision) = mirror.decisions.get(lower.as_str()) {
        return Some((decision.repo_id.clone()?, decision.worktree.clone()?));
    }
    if let Some(task) = mirror.tasks.get(lower.as_str()) {
        return Some((task.repo_id.clone()?, task.worktree.clone()?));
    }
    for repo in mirror.repos.values() {
        if let Some(worktree) = repo.worktrees.iter().find(|at| at.id.as_str() == word || at.branch == word) {
            return Some((repo.id.clone(), worktree.id.clone()));
        }
    }
    let agent = mirror.agent_named(word)?;
    mirror.repos.values().find_map(|repo| {
        let at = repo.worktrees.iter().rev().find(|at| at.agent_id == agent.id)?;
        Some((repo.id.clone(), at.id.clone()))
    })
}

fn memory(rest: &str, context: &ConsoleContext<'_>) -> Result<ConsoleLine, String> {
    let (word, _) = first_word(rest);
    if word.is_empty() {
        return Ok(ConsoleLine::Local(LocalCommand::Memory(None)));
    }
    let notes = &context.mirror.memory;
    let found = notes.keys().find(|id| id.as_str() == word || id.as_str().rsplit('/').next() == Some(&word));
    match found {
        Some(id) => Ok(ConsoleLine::Local(LocalCommand::Memory(Some(id.clone())))),
        None => Err(match nearest(&word, notes.keys().map(MemoryId::as_str)) {
            Some(near) => format!("no note \"{word}\"; did you mean {near}?"),
            None => format!("no note \"{word}\"; /memory lists them"),
        }),
    }
}

/// What Enter will do with the line, or why it can't.
pub fn preview(line: &str, context: &ConsoleContext<'_>) -> String {
    match parse(line, context) {
        Err(reason) => reason,
        Ok(ConsoleLine::Local(command)) => match command {
            LocalCommand::Quit => "leaves".to_owned(),
            LocalCommand::Help => "shows keys and commands".to_owned(),
            LocalCommand::Memory(Some(id)) => format!("opens {id}"),
            LocalCommand::Memory(None) => "opens the library".to_owned(),
            LocalCommand::Status
            | LocalCommand::Agents
            | LocalCommand::Tasks
            | LocalCommand::Decisions
            | LocalCommand::Feed
            | LocalCommand::Counts => "shows it".to_owned(),
        },
        Ok(ConsoleLine::Send(message)) => describe(&message, context),
    }
}

fn describe(message: &ClientMessage, context: &ConsoleContext<'_>) -> String {
    match message {
        ClientMessage::Hello(_) => "says hello".to_owned(),
        ClientMessage::GoalSubmit(_) => match context.mirror.repos.len() {
            0 => "no repository is connected yet: /repo add <path>".to_owned(),
            _ => "gives the team a new goal".to_owned(),
        },
        ClientMessage::UserMessage(message) if message.to == "all" => "tells everyone".to_owned(),
        ClientMessage::UserMessage(message) => format!("tells {}", message.to),
        ClientMessage::DecisionAnswer(answer) => match &answer.option {
            Some(OptionChoice::Label(option)) => format!("answers {}: {option}", answer.decision_id),
            Some(OptionChoice::Index(at)) => format!("answers {}: option {}", answer.decision_id, at + 1),
            None => format!("answers {} in your words", answer.decision_id),
        },
        ClientMessage::TaskAction(action) => match action.action {
            TaskActionKind::Cancel => format!("cancels {}; its branch is kept", action.task_id),
            TaskActionKind::Retry => format!("puts {} back on the board", action.task_id),
            TaskActionKind::Reassign => {
                format!("gives {} to {}", action.task_id, action.arg.as_deref().unwrap_or_default())
            }
            TaskActionKind::Prioritize => format!("moves {} up", action.task_id),
        },
        ClientMessage::AgentAction(action) => match action.action {
            AgentActionKind::Pause => format!("pauses {}", action.agent_id),
            AgentActionKind::Resume => format!("lets {} go on", action.agent_id),
            AgentActionKind::Stop => format!("sends {} off shift", action.agent_id),
            AgentActionKind::Spawn => format!("brings {} in", action.agent_id),
        },
        ClientMessage::DiffRequest(request) => format!("shows the diff of {}", request.worktree),
        ClientMessage::RepoAdd(add) => format!("connects {}", add.path),
    }
}

#[cfg(test)]
mod tests;
