//! What Enter will do, in a few words, while the line is being written.

use super::commands::COMMANDS;
use super::error::ConsoleError;
use super::{ConsoleContext, ConsoleLine, LocalCommand, parse};
use crate::client::mirror::Mirror;
use crate::protocol::{
    AgentActionKind, AnswerDecision, ClientMessage, DecisionKind, OptionChoice, TaskActionKind, UserMessage, label,
};

/// What Enter will do with this line, or why it can't. Empty for an empty line.
pub fn preview(line: &str, context: &ConsoleContext<'_>) -> String {
    match parse(line, context) {
        Ok(ConsoleLine::Send(message)) => of_message(&message, context.mirror),
        Ok(ConsoleLine::Local(command)) => of_local(&command).to_owned(),
        Err(ConsoleError::Empty) => String::new(),
        Err(error) => unfinished(line).map_or_else(|| error.to_string(), str::to_owned),
    }
}

/// While a command's name is still being typed: how the command is written.
fn unfinished(line: &str) -> Option<&'static str> {
    let typed = line.trim_start().strip_prefix('/')?.to_lowercase();
    if typed.contains(char::is_whitespace) {
        return None;
    }
    if typed.is_empty() {
        return Some("a command; Tab shows them");
    }
    let mut starting = COMMANDS.iter().filter(|command| command.name.starts_with(&typed));
    starting.next().map(|command| command.usage)
}

fn of_message(message: &ClientMessage, mirror: &Mirror) -> String {
    match message {
        ClientMessage::GoalSubmit(goal) => {
            let repo = goal.repo_id.as_ref().and_then(|id| mirror.repos.get(id)).or_else(|| mirror.default_repo());
            let lead = mirror.lead().map_or("the lead", |lead| lead.name.as_str());
            match repo {
                Some(repo) => format!("a new goal for {lead} in {}", repo.name),
                None => format!("a new goal for {lead}"),
            }
        }
        ClientMessage::UserMessage(message) => of_user_message(message, mirror),
        ClientMessage::DecisionAnswer(answer) => of_answer(answer, mirror),
        ClientMessage::TaskAction(action) => {
            let id = &action.task_id;
            match (action.action, action.arg.as_deref()) {
                (TaskActionKind::Reassign, Some(agent)) => format!("gives {id} to {}", mirror.display_name(agent)),
                (TaskActionKind::Prioritize, Some(number)) => format!("sets the priority of {id} to {number}"),
                (TaskActionKind::Prioritize, None) => format!("puts {id} on top"),
                (TaskActionKind::Cancel, _) => format!("cancels {id}; its branch is kept"),
                (TaskActionKind::Retry, _) => format!("puts {id} back on the board"),
                (TaskActionKind::Reassign, None) => format!("reassigns {id}"),
            }
        }
        ClientMessage::AgentAction(action) => {
            let name = mirror.display_name(action.agent_id.as_str());
            match (action.action, action.arg.as_deref()) {
                (AgentActionKind::Pause, _) => format!("pauses {name}, who keeps the task"),
                (AgentActionKind::Resume, _) => format!("lets {name} go on"),
                (AgentActionKind::Stop, _) => format!("sends {name} off shift"),
                (AgentActionKind::Spawn, None) => format!("brings {name} on shift"),
                (AgentActionKind::Spawn, Some(task)) => format!("brings {name} on shift for {task}"),
            }
        }
        ClientMessage::RepoAdd(add) => format!("connects {}", add.path),
        ClientMessage::DiffRequest(request) => format!("shows the changes of {}", request.worktree),
        ClientMessage::Hello(_) => "says hello".to_owned(),
    }
}

fn of_user_message(message: &UserMessage, mirror: &Mirror) -> String {
    if message.to == "all" {
        return "tells everyone".to_owned();
    }
    match mirror.agent_named(&message.to) {
        Some(agent) if !agent.active => format!("tells {}, who is off shift and reads it later", agent.name),
        Some(agent) if agent.paused => format!("tells {}, who is paused and reads it later", agent.name),
        Some(agent) => format!("tells {}", agent.name),
        None => format!("tells {}", message.to),
    }
}

fn of_answer(answer: &AnswerDecision, mirror: &Mirror) -> String {
    let id = &answer.decision_id;
    let option = match &answer.option {
        Some(OptionChoice::Label(label)) => Some(label.as_str()),
        Some(OptionChoice::Index(_)) | None => None,
    };
    let Some(decision) = mirror.decisions.get(id) else { return format!("answers {id}") };
    let who = mirror.display_name(decision.agent_id.as_str());
    let task = decision.task_id.as_ref().map_or_else(|| id.to_string(), ToString::to_string);
    let base = || {
        let worktree = decision.worktree.as_ref()?;
        mirror.worktrees().find(|(_, known)| known.id == *worktree).map(|(_, known)| known.base.as_str())
    };
    match (decision.kind, option) {
        (DecisionKind::Merge, Some(label::MERGE)) => match base() {
            Some(base) => format!("{id}: MERGES {task} into {base}"),
            None => format!("{id}: MERGES {task}"),
        },
        (DecisionKind::Merge, Some(label::REQUEST_CHANGES)) => format!("{id}: sends {task} back with your words"),
        (DecisionKind::Merge, Some(label::REJECT)) => format!("{id}: gives {task} up; its branch is kept"),
        (DecisionKind::Permission, Some(label::ALLOW_ONCE)) => format!("{id}: ALLOWS it to {who}, once"),
        (DecisionKind::Permission, Some(label::ALLOW_ALWAYS)) => format!("{id}: ALLOWS it to {who} from now on"),
        (DecisionKind::Permission, Some(label::DENY)) => format!("{id}: refuses it to {who}"),
        (_, Some(option)) if answer.text.is_some() => format!("{id}: answers \"{option}\" with your words"),
        (_, Some(option)) => format!("{id}: answers \"{option}\""),
        (_, None) => format!("{id}: answers {who} in your own words"),
    }
}

fn of_local(command: &LocalCommand) -> &'static str {
    match command {
        LocalCommand::Status => "shows how things stand",
        LocalCommand::Agents => "lists the agents",
        LocalCommand::Tasks => "lists the tasks",
        LocalCommand::Decisions => "lists the decisions",
        LocalCommand::Memory(None) => "opens the team's notes",
        LocalCommand::Memory(Some(_)) => "opens the note",
        LocalCommand::Feed => "shows the feed",
        LocalCommand::Counts => "counts what there is",
        LocalCommand::Diff { .. } => "opens the changes",
        LocalCommand::Help => "opens the help",
        LocalCommand::Quit => "leaves",
        LocalCommand::Wait(_) => "waits; for scripts",
    }
}
