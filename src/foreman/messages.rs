//! Messages between the person and the agents and among agents: storing, reading, waking whom they concern.

use super::Step;
use super::change::Change;
use super::roster::lead;
use super::state::{Counter, Message, Turn, TurnPhase};
use super::text::truncate;
use crate::protocol::{AgentId, FeedKind, GoalId, TaskId, TaskStatus, UserMessage, text};
use crate::turn::{Cause, InboxMessage, Job};

/// Messages kept.
const KEPT: usize = 500;
/// Longest message, characters.
const MESSAGE_CHARS: usize = 16_000;
/// Longest message from an agent, characters.
const AGENT_MESSAGE_CHARS: usize = 600;
/// An exchange between agents wakes the receiver so many times in a row: a question, and the answer to it.
const HOPS: u8 = 2;

/// Splits `@name rest` (a blank, comma or colon between).
fn addressed(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('@')?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))?;
    let (name, body) = rest.split_at(end);
    let body = body.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == ':');
    (!name.is_empty() && !body.is_empty() && body.len() < rest.len() - end).then_some((name, body))
}

impl Step<'_> {
    /// The person writes; gives back to whom it went (an agent id or `all`).
    pub(crate) fn user_message(&mut self, message: &UserMessage) -> Result<String, String> {
        let words = message.text.trim();
        let to = message.to.trim();
        let (to, words) = if to.eq_ignore_ascii_case("all") {
            match addressed(words) {
                Some((name, body)) if name.eq_ignore_ascii_case("all") => ("all".to_owned(), body),
                Some((name, body)) => (self.agent_named(name)?.to_string(), body),
                None => ("all".to_owned(), words),
            }
        } else {
            (self.agent_named(to)?.to_string(), words)
        };
        let words = truncate(&text::clean(words), MESSAGE_CHARS);
        self.feed_to(FeedKind::User, Some("user"), Some(&to), &words);
        self.store_message("user", &to, &words, 0);
        if let Some(agent) = self.state.agents.get(to.as_str()).cloned()
            && !agent.active
        {
            let line = "I'm off shift; I'll read it when I'm back.";
            self.say(&agent.id, Some("user"), line);
        }
        Ok(to)
    }

    pub(crate) fn agent_named(&self, name: &str) -> Result<AgentId, String> {
        self.resolve_agent(name).ok_or_else(|| format!("no agent named \"{}\"", name.trim_start_matches('@')))
    }

    /// An agent writes to an agent, to everyone or to the person.
    pub(crate) fn agent_message(&mut self, from: &AgentId, to: &str, words: &str, hops: u8) {
        let words = truncate(text::clean(words).trim(), AGENT_MESSAGE_CHARS);
        self.say(from, Some(to), &words);
        if to != "user" {
            self.store_message(from.as_str(), to, &words, hops.saturating_add(1));
        }
    }

    fn store_message(&mut self, from: &str, to: &str, words: &str, hops: u8) {
        let number = self.count(Counter::Message);
        self.put(Change::Message(Message {
            number,
            from: from.to_owned(),
            to: to.to_owned(),
            text: words.to_owned(),
            ts: self.now,
            read_by: std::collections::BTreeSet::new(),
            hops,
        }));
        let over = self.state.messages.len().saturating_sub(KEPT);
        let old: Vec<u64> = self.state.messages.keys().take(over).copied().collect();
        for number in old {
            self.put(Change::MessageGone(number));
        }
    }

    fn unread(&self, agent: &AgentId) -> Vec<Message> {
        self.state
            .messages
            .values()
            .filter(|message| message.to == agent.as_str() || message.to == "all")
            .filter(|message| message.from != agent.as_str() && !message.read_by.contains(agent))
            .cloned()
            .collect()
    }

    /// The agent's unread messages, oldest first; they count as read from now on.
    pub(crate) fn take_inbox(&mut self, agent: &AgentId) -> Vec<InboxMessage> {
        let unread = self.unread(agent);
        let mut inbox = Vec::new();
        for mut message in unread {
            message.read_by.insert(agent.clone());
            inbox.push(InboxMessage {
                from_name: self.display_name(&message.from),
                from: message.from.clone(),
                to_all: message.to == "all",
                text: message.text.clone(),
            });
            self.put(Change::Message(message));
        }
        inbox
    }

    /// The unread messages as a block behind a tool's answer.
    pub(crate) fn inbox_block(&mut self, agent: &AgentId) -> String {
        let inbox = self.take_inbox(agent);
        if inbox.is_empty() {
            return String::new();
        }
        let mut block = String::from("\n\n[New messages]");
        for message in inbox {
            let to_all = if message.to_all { " to everyone" } else { "" };
            block.push_str(&format!("\n- from {}{to_all}: {}", message.from_name, message.text));
        }
        block
    }

    /// Wakes idle agents whom an unread message concerns. Nobody is woken twice for the same message: a turn that
    /// starts reads all of them.
    pub(crate) fn deliver_messages(&mut self) {
        let agents: Vec<AgentId> = super::roster::roster().collect();
        for agent in agents {
            let Some(record) = self.state.agents.get(&agent) else { continue };
            if !record.active || record.paused {
                continue;
            }
            let waking: Vec<Message> =
                self.unread(&agent).into_iter().filter(|message| self.wakes(&agent, message)).collect();
            let Some(newest) = waking.last() else { continue };
            let hops = waking.iter().map(|message| message.hops).max().unwrap_or(0);
            let from = newest.from.clone();
            self.wake(&agent, &from, hops);
        }
    }

    /// From the person: directly, or to everyone for the lead. From an agent: directly, while the exchange is short.
    fn wakes(&self, agent: &AgentId, message: &Message) -> bool {
        match (message.from.as_str(), message.to.as_str()) {
            ("user", "all") => *agent == lead(),
            ("user", _) => true,
            (_, "all") => false,
            _ => message.hops <= HOPS,
        }
    }

    fn wake(&mut self, agent: &AgentId, from: &str, hops: u8) {
        let mine: Vec<&Turn> = self.state.turns.values().filter(|turn| turn.agent == *agent).collect();
        // A turn that is about to start reads its messages; a running one gets them with its next tool answer, or
        // when it has ended.
        if mine.iter().any(|turn| turn.phase == TurnPhase::Wanted || matches!(turn.phase, TurnPhase::Preparing { .. }))
            || (*agent != lead() && !mine.is_empty())
        {
            return;
        }
        if *agent == lead() {
            let Some(goal) = self.goal_to_talk_about() else {
                if from == "user" {
                    self.take_inbox(agent);
                    self.say(agent, Some("user"), "Happy to help. Type a goal and I'll plan it with the team.");
                }
                return;
            };
            if mine.iter().any(|turn| turn.goal.as_ref() == Some(&goal)) {
                return;
            }
            self.want_turn(agent.clone(), Job::Followup, None, Some(goal), Cause::Messages, hops);
            return;
        }
        let preparing = self
            .state
            .task_work
            .values()
            .any(|work| matches!(&work.stage, super::state::Stage::Preparing { worker, .. } if worker == agent));
        if preparing {
            return;
        }
        let task = self.task_to_talk_about(agent);
        let goal = if task.is_some() { None } else { self.goal_to_talk_about() };
        if task.is_none() && goal.is_none() {
            if from == "user" {
                self.take_inbox(agent);
                self.say(agent, Some("user"), "I have no task yet. Type a goal and Marlow will plan it.");
            }
            return;
        }
        self.want_turn(agent.clone(), Job::Followup, task, goal, Cause::Messages, hops);
    }

    /// The goal that a message without one is about: the latest that is not over, else the latest.
    fn goal_to_talk_about(&self) -> Option<GoalId> {
        use crate::protocol::GoalStatus::{Active, Planning};
        let goals = &self.state.goals;
        goals
            .values()
            .rfind(|goal| matches!(goal.status, Active | Planning))
            .or_else(|| goals.values().next_back())
            .map(|goal| goal.id.clone())
    }

    /// The worker's latest task that is not over.
    fn task_to_talk_about(&self, agent: &AgentId) -> Option<TaskId> {
        let mine = |status: TaskStatus| {
            self.state
                .tasks
                .values()
                .rfind(|task| task.assignee.as_ref() == Some(agent) && task.status == status)
                .map(|task| task.id.clone())
        };
        mine(TaskStatus::Doing).or_else(|| mine(TaskStatus::Review)).or_else(|| mine(TaskStatus::Blocked))
    }
}

#[cfg(test)]
mod unit {
    use super::addressed;

    #[test]
    fn a_leading_name_needs_a_separator_and_a_body() {
        assert_eq!(addressed("@kit please"), Some(("kit", "please")));
        assert_eq!(addressed("@kit, please"), Some(("kit", "please")));
        assert_eq!(addressed("@kit:please"), Some(("kit", "please")));
        assert_eq!(addressed("@kit"), None);
        assert_eq!(addressed("@kit/please"), None);
        assert_eq!(addressed("kit please"), None);
    }
}
