//! The shell around the core: the loop, the effects, start-up, shutdown, the profile's lock.
//!
//! Owns threads, tasks, timers and everything that touches the outside for the core. It routes and decides nothing.
//! Entry points: [`profile::Profile::claim`], then [`Runtime::start`].

mod clients;
mod clock;
mod commands;
mod core;
mod effects;
mod git_work;
mod inbox;
mod leftovers;
mod loop_;
mod memory_files;
mod memory_watch;
mod observe;
pub mod profile;
mod runner;
mod turns;
mod wishes;

pub use loop_::Ended;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::engine::Engine;
use crate::foreman::Settings;
use crate::git::GitHome;
use crate::protocol::{AuthStatus, BackendName};
use crate::store::{Store, StoreError};
use crate::transport::Connector;
use crate::turn::Facts;
use effects::{EffectShell, Places};
use inbox::Word;
use loop_::{Loop, Parts, panic_text};
use memory_files::MemoryFolder;
use memory_watch::MemoryKeeper;
use profile::{Profile, ProfileError};

/// How long the end is waited for; the loop bounds its own parts.
const END: Duration = Duration::from_secs(20);

/// What one life of the Foreman is made of.
pub struct RuntimeConfig {
    /// The claimed profile; its lock is given back when the Foreman has ended.
    pub profile: Profile,
    /// The core's settings; what depends on the profile (its id and directories) is filled in here.
    pub settings: Settings,
    pub engine: Engine,
    /// Where the engine's script reads what stands on the wall.
    pub facts: watch::Sender<Arc<Facts>>,
    /// Repositories to connect, in order; one that cannot be is logged and said in the feed.
    pub repos: Vec<PathBuf>,
    /// A goal to submit once they are.
    pub goal: Option<String>,
}

/// Why the Foreman could not start. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("the Foreman's threads could not be started: {0}")]
    Thread(#[from] std::io::Error),
    #[error("the notes' folder: {0}")]
    Memory(String),
    #[error("the Foreman needs a running multi-threaded tokio runtime")]
    NoTokio,
}

/// Starts Foremen.
pub struct Runtime;

impl Runtime {
    /// Opens the profile's database and starts the loop. Must be called inside a multi-threaded tokio runtime, which
    /// runs turns and effects; the loop has a thread of its own.
    ///
    /// # Errors
    /// [`StartError`]; then nothing runs.
    pub fn start(config: RuntimeConfig) -> Result<Handle, StartError> {
        let RuntimeConfig { profile, settings, engine, facts, repos, goal } = config;
        let tokio = tokio::runtime::Handle::try_current().map_err(|_| StartError::NoTokio)?;
        let (store, state) = Store::open(profile.dir())?;
        let settings = Settings {
            worktrees: profile.worktrees(),
            scratch: profile.scratch(),
            memory: profile.memory(),
            profile_id: store.profile_id().to_owned(),
            ..settings
        };
        let folder = MemoryFolder::new(profile.memory());
        folder.ensure().map_err(|error| StartError::Memory(error.to_string()))?;
        engine.mark(&settings.profile_id);
        let (senders, inbox) = inbox::inbox();
        let (keeper, keeper_thread) = MemoryKeeper::start(folder, senders.words.clone())?;
        let places = Places {
            git: GitHome {
                profile: settings.profile_id.clone(),
                worktrees: settings.worktrees.clone(),
                scratch: profile.dir().join("git"),
            },
            scratch: settings.scratch.clone(),
            prepared: profile.dir().join("prepared"),
            profile_id: settings.profile_id.clone(),
        };
        let shell = EffectShell::new(tokio.clone(), engine, senders.clone(), keeper.clone(), places);
        let parts = Parts { store, make: settings, shell, inbox, facts };
        let (say_end, ended) = watch::channel(None);
        let runner = tokio.clone();
        let thread = std::thread::Builder::new().name("foreman".to_owned()).spawn(move || {
            let life = AssertUnwindSafe(|| runner.block_on(Loop::new(parts, state).run()));
            // The loop and its database are closed when this is said.
            let end = catch_unwind(life).unwrap_or_else(|panic| Ended::Failed(panic_text(&*panic)));
            keeper.end();
            say_end.send_replace(Some(end));
        })?;
        let connector = Connector::new(senders.clients);
        if !repos.is_empty() || goal.is_some() {
            tokio.spawn(wishes::submit(connector.clone(), repos, goal));
        }
        Ok(Handle {
            connector,
            words: senders.words,
            ended,
            profile: Mutex::new(profile),
            threads: vec![thread, keeper_thread],
        })
    }
}

/// A running Foreman. Dropping it leaves the Foreman running until its process ends.
pub struct Handle {
    connector: Connector,
    words: mpsc::Sender<Word>,
    ended: watch::Receiver<Option<Ended>>,
    profile: Mutex<Profile>,
    threads: Vec<JoinHandle<()>>,
}

impl Handle {
    /// What connections are made with, embedded or of sockets.
    pub fn connector(&self) -> Connector {
        self.connector.clone()
    }

    /// Writes the run files, so that clients find this Foreman at `port`.
    ///
    /// # Errors
    /// [`ProfileError`] when they cannot be written.
    pub fn publish(&self, port: u16, backend: BackendName) -> Result<(), ProfileError> {
        self.profile.lock().unwrap_or_else(PoisonError::into_inner).publish(port, backend)
    }

    /// The engine's login changed.
    pub async fn tell_auth(&self, auth: AuthStatus, message: String, account: Option<String>) {
        // Only fails when the Foreman has ended.
        self.words.send(Word::Auth { auth, message, account }).await.ok();
    }

    /// Waits until the Foreman has ended, by itself or because it was asked.
    pub async fn ended(&self) -> Ended {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await.map(|end| end.clone()) {
            Ok(Some(end)) => end,
            Ok(None) | Err(_) => Ended::Failed("the Foreman's thread is gone".to_owned()),
        }
    }

    /// Ends the Foreman: turns are interrupted and go on with the next start, what runs gets some seconds, the
    /// database is closed, the run files go, the profile's lock is given back.
    pub async fn shutdown(self) -> Ended {
        // Fails when it has ended already.
        self.words.send(Word::Shutdown).await.ok();
        let Ok(end) = tokio::time::timeout(END, self.ended()).await else {
            return Ended::Failed("the Foreman did not end in time".to_owned());
        };
        for thread in self.threads {
            tokio::task::spawn_blocking(move || thread.join()).await.ok();
        }
        end
    }
}

#[cfg(test)]
mod tests;
