//! A Foreman in a temporary home, and a client that watches it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentcraft_tui::client::{Link, LinkEvent, Mirror, embedded};
use agentcraft_tui::engine::Engine;
use agentcraft_tui::engine::sim::{Sim, SimOptions, demo_repo};
use agentcraft_tui::foreman::Settings;
use agentcraft_tui::protocol::*;
use agentcraft_tui::runtime::profile::Profile;
use agentcraft_tui::runtime::{Handle, Runtime, RuntimeConfig};
use agentcraft_tui::turn::Facts;
use tokio::sync::watch;

/// Longest wait for anything; a failure says what was awaited.
const DEADLINE: Duration = Duration::from_secs(90);

pub struct Studio {
    pub home: PathBuf,
    pub handle: Option<Handle>,
    pub link: Link,
    pub mirror: Mirror,
    /// Everything heard, in order.
    pub heard: Vec<ServerMessage>,
    pub make: Make,
}

/// How a life of the Foreman is made.
#[derive(Clone)]
pub struct Make {
    pub speed: f64,
    pub showcase: Option<String>,
    pub settings: Settings,
}

impl Default for Make {
    fn default() -> Self {
        Self {
            speed: 1000.0,
            showcase: None,
            settings: Settings { user_name: "Ada".into(), repo_poll_ms: 1000, ..Settings::default() },
        }
    }
}

fn start(home: &Path, make: &Make) -> Handle {
    let (facts, watching) = watch::channel(Arc::new(Facts::default()));
    let profile = Profile::claim(home, "sim").unwrap();
    let engine = Engine::Sim(Arc::new(
        Sim::new(SimOptions {
            speed: make.speed,
            seed: 7,
            showcase: make.showcase.clone(),
            ambient: false,
            scratch: profile.scratch(),
            env: std::env::vars_os().collect(),
            facts: watching,
        })
        .unwrap(),
    ));
    let demo = home.join("pocket-notes");
    let settings = Settings {
        demo_repo: Some(demo.canonicalize().unwrap_or(demo)),
        speed: Some(make.speed),
        showcase: make.showcase.is_some(),
        user_home: home.to_owned(),
        ..make.settings.clone()
    };
    Runtime::start(RuntimeConfig { profile, settings, engine, facts, repos: vec![], goal: None }).unwrap()
}

impl Studio {
    pub async fn open(home: &Path, make: Make) -> Self {
        demo_repo::create(&home.join("pocket-notes")).unwrap();
        let handle = start(home, &make);
        let mut link = embedded(handle.connector(), "test");
        let mirror = loop {
            if let LinkEvent::Up(snapshot) = link.next().await {
                break Mirror::from_snapshot(*snapshot);
            }
        };
        Self { home: home.to_owned(), handle: Some(handle), link, mirror, heard: vec![], make }
    }

    /// Ends this life and begins the next.
    pub async fn restart(&mut self) {
        self.handle.take().unwrap().shutdown().await;
        let fresh = Self::open(&self.home, self.make.clone()).await;
        *self = fresh;
    }

    pub async fn close(mut self) {
        self.handle.take().unwrap().shutdown().await;
    }

    fn hear(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Up(snapshot) => self.mirror = Mirror::from_snapshot(*snapshot),
            LinkEvent::Message(message) => {
                self.mirror.apply(&message);
                self.heard.push(message);
            }
            LinkEvent::Down { why, .. } | LinkEvent::Ended { why } => panic!("the link is down: {why}"),
        }
    }

    /// Waits until something holds; panics with what is there when it does not come.
    pub async fn until(&mut self, what: &str, mut holds: impl FnMut(&Mirror) -> bool) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while !holds(&self.mirror) {
            match tokio::time::timeout_at(deadline, self.link.next()).await {
                Ok(event) => self.hear(event),
                Err(_) => panic!("waited for {what}\n{}", self.picture()),
            }
        }
    }

    /// Sends a message and waits for its ack.
    pub async fn send(&mut self, message: ClientMessage) -> Ack {
        let id = self.link.send(message).await.unwrap();
        let deadline = tokio::time::Instant::now() + DEADLINE;
        loop {
            let event = tokio::time::timeout_at(deadline, self.link.next()).await.expect("an ack");
            let ack = match &event {
                LinkEvent::Message(ServerMessage::Ack(ack)) if ack.re == id => Some(ack.clone()),
                _ => None,
            };
            self.hear(event);
            if let Some(ack) = ack {
                return ack;
            }
        }
    }

    pub async fn add_repo(&mut self, path: &Path) -> RepoId {
        let ack = self.send(ClientMessage::RepoAdd(RepoAdd { path: path.display().to_string() })).await;
        assert!(ack.ok, "{:?}", ack.error);
        RepoId::from(ack.result.unwrap()["repoId"].as_str().unwrap())
    }

    pub async fn goal(&mut self, text: &str) -> GoalId {
        let ack = self.send(ClientMessage::GoalSubmit(GoalSubmit { text: text.into(), repo_id: None })).await;
        assert!(ack.ok, "{:?}", ack.error);
        GoalId::from(ack.result.unwrap()["goalId"].as_str().unwrap())
    }

    pub async fn answer(&mut self, id: &str, option: &str, text: Option<&str>) -> Ack {
        self.send(ClientMessage::DecisionAnswer(AnswerDecision {
            decision_id: id.into(),
            option: Some(OptionChoice::Label(option.into())),
            text: text.map(Into::into),
        }))
        .await
    }

    pub async fn until_open(&mut self, id: &str) {
        let id = DecisionId::from(id);
        self.until(&format!("{id} to open"), |mirror| {
            mirror.decisions.get(&id).is_some_and(|decision| decision.status == DecisionStatus::Open)
        })
        .await;
    }

    /// What a person would look at when something hangs.
    pub fn picture(&self) -> String {
        let mut text = String::new();
        for goal in self.mirror.goals.values() {
            text += &format!("{} {} {}\n", goal.id, goal.status, goal.progress);
        }
        for task in self.mirror.tasks.values() {
            text += &format!(
                "{} {} {:?} ci {} {} ({})\n",
                task.id,
                task.status,
                task.assignee,
                task.ci,
                task.title,
                task.blocked_reason.clone().unwrap_or_default()
            );
        }
        for decision in self.mirror.decisions.values() {
            text += &format!("{} {} {} {:?}\n", decision.id, decision.status, decision.question, decision.answer);
        }
        for agent in &self.mirror.agents {
            text += &format!(
                "{} {} @ {} {} active {}\n",
                agent.id, agent.state, agent.station, agent.activity, agent.active
            );
        }
        for item in self.mirror.feed.iter().rev().take(25).rev() {
            text += &format!("feed {} {}\n", item.kind, item.text);
        }
        for (agent, log) in &self.mirror.logs {
            for entry in log.iter().rev().take(8).rev() {
                text += &format!("log {agent} {} {}\n", entry.kind, entry.text.replace('\n', " | "));
            }
        }
        text
    }
}

/// Runs git in a directory; the output, trimmed.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git").arg("-C").arg(dir).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
