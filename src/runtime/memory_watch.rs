//! The one thread that reads and writes the notes: the core hears of writings and readings in the order in which they
//! happened, so that a reading never undoes a later writing.
//!
//! Edits by hand are noticed by the system's watcher, and by a slow look beside it for folders where that is deaf.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use super::inbox::Word;
use super::loop_::panic_text;
use super::memory_files::MemoryFolder;
use crate::foreman::effect::{EffectId, EffectResult, WriteMemory};
use crate::protocol::MemoryEntry;

/// Quiet time after an edit before the folder is read: editors write in several steps.
const SETTLE: Duration = Duration::from_millis(150);
/// Longest wait for that quiet.
const SETTLE_LONGEST: Duration = Duration::from_secs(1);
/// Pause between two looks without being told.
const POLL: Duration = Duration::from_secs(20);
/// Orders that may wait; more than the core ever has open.
const PLACES: usize = 256;

#[derive(Debug)]
enum Order {
    /// Read and report, whatever was reported before.
    Read,
    Write(EffectId, Box<WriteMemory>),
    /// The watcher saw something.
    Changed,
    End,
}

/// Gives orders to the thread.
#[derive(Clone, Debug)]
pub(crate) struct MemoryKeeper {
    orders: SyncSender<Order>,
}

impl MemoryKeeper {
    /// Starts the thread over `folder`; it reports to `words`.
    pub(crate) fn start(
        folder: MemoryFolder,
        words: tokio::sync::mpsc::Sender<Word>,
    ) -> std::io::Result<(Self, std::thread::JoinHandle<()>)> {
        let (orders, inbox) = mpsc::sync_channel(PLACES);
        let watching = orders.clone();
        let thread = std::thread::Builder::new().name("memory notes".to_owned()).spawn(move || {
            let watcher = watch(&folder, watching);
            Keeper { folder, words, told: None, fingerprint: Vec::new(), problems: Vec::new() }.run(&inbox, watcher);
        })?;
        Ok((Self { orders }, thread))
    }

    /// Has the folder read; the result comes as a word.
    pub(crate) fn read(&self) {
        self.give(Order::Read);
    }

    /// Has a note written; the result comes as the effect's.
    pub(crate) fn write(&self, id: EffectId, order: Box<WriteMemory>) {
        self.give(Order::Write(id, order));
    }

    /// Ends the thread once what was ordered before is done.
    pub(crate) fn end(&self) {
        self.give(Order::End);
    }

    fn give(&self, order: Order) {
        // The loop must not wait for a disk: past the bound (a disk that hangs) the effect starts again with the next
        // life.
        if let Err(error) = self.orders.try_send(order) {
            tracing::error!(%error, "the notes' thread takes no more orders");
        }
    }
}

struct Keeper {
    folder: MemoryFolder,
    words: tokio::sync::mpsc::Sender<Word>,
    /// What was reported last.
    told: Option<Vec<MemoryEntry>>,
    fingerprint: Vec<(String, String)>,
    /// What was complained of last.
    problems: Vec<String>,
}

fn watch(folder: &MemoryFolder, orders: SyncSender<Order>) -> Option<RecommendedWatcher> {
    let root = match folder.ensure() {
        Ok(root) => root,
        Err(error) => {
            tracing::warn!(%error, "the notes' folder cannot be made");
            return None;
        }
    };
    let told = move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            // A full queue holds a look already.
            orders.try_send(Order::Changed).ok();
        }
    };
    let watcher = notify::recommended_watcher(told).and_then(|mut watcher| {
        watcher.watch(root, RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    watcher.inspect_err(|error| tracing::warn!(%error, "edits of notes are noticed late: no watcher")).ok()
}

impl Keeper {
    fn run(mut self, inbox: &Receiver<Order>, watcher: Option<RecommendedWatcher>) {
        let mut look_at: Option<(Instant, Instant)> = None;
        loop {
            let pause = look_at.map_or(POLL, |(at, _)| at.saturating_duration_since(Instant::now()));
            match inbox.recv_timeout(pause) {
                Ok(Order::Read) => {
                    self.told = None;
                    self.report();
                }
                Ok(Order::Write(id, order)) => self.write(id, &order),
                Ok(Order::Changed) => {
                    let now = Instant::now();
                    let latest = look_at.map_or(now + SETTLE_LONGEST, |(_, latest)| latest);
                    look_at = Some(((now + SETTLE).min(latest), latest));
                }
                Err(RecvTimeoutError::Timeout) => {
                    look_at = None;
                    if self.folder.fingerprint() != self.fingerprint {
                        self.report();
                    }
                }
                Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        drop(watcher);
    }

    /// Reads the folder and tells what differs from what was told.
    fn report(&mut self) {
        // Taken first: an edit during the reading is seen by the next look.
        self.fingerprint = self.folder.fingerprint();
        let reading = match catch_unwind(AssertUnwindSafe(|| self.folder.read())) {
            Ok(reading) => reading,
            Err(panic) => {
                tracing::error!(panic = panic_text(&*panic), "the notes could not be read");
                return;
            }
        };
        for problem in reading.problems.iter().filter(|problem| !self.problems.contains(problem)) {
            tracing::warn!("a file among the notes was passed over: {problem}");
        }
        self.problems = reading.problems;
        if self.told.as_ref() != Some(&reading.entries) {
            self.told = Some(reading.entries.clone());
            self.say(Word::Memory(reading.entries));
        }
    }

    fn write(&mut self, id: EffectId, order: &WriteMemory) {
        let result = match catch_unwind(AssertUnwindSafe(|| self.folder.write(order))) {
            Ok(Ok(entry)) => EffectResult::MemoryWritten(Ok(entry)),
            Ok(Err(error)) => EffectResult::MemoryWritten(Err(error.to_string())),
            Err(panic) => EffectResult::Crashed(panic_text(&*panic)),
        };
        self.say(Word::Done { effect: id, result });
    }

    fn say(&self, word: Word) {
        // Only fails when the loop is gone.
        self.words.blocking_send(word).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::MemoryMode;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn next(words: &mut tokio::sync::mpsc::Receiver<Word>) -> Word {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match words.try_recv() {
                Ok(word) => return word,
                Err(_) if Instant::now() < deadline => std::thread::yield_now(),
                Err(error) => panic!("nothing was told: {error}"),
            }
        }
    }

    fn notes(word: Word) -> Vec<MemoryEntry> {
        match word {
            Word::Memory(entries) => entries,
            other => panic!("{other:?}"),
        }
    }

    /// What a hand does to the folder appears while the Foreman runs: a new file, an edit, a removal.
    #[test]
    fn edits_by_hand_appear_live() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("memory");
        let (sender, mut words) = tokio::sync::mpsc::channel(16);
        let (keeper, thread) = MemoryKeeper::start(MemoryFolder::new(root.clone()), sender).unwrap();
        keeper.read();
        assert_eq!(notes(next(&mut words)), Vec::new());
        let path = root.join("shared/by-hand.md");
        std::fs::write(&path, "# Title\none").unwrap();
        assert_eq!(notes(next(&mut words))[0].title, "Title");
        std::fs::create_dir(root.join("agents/kit")).unwrap();
        std::fs::write(root.join("agents/kit/mine.md"), "two").unwrap();
        while notes(next(&mut words)).len() < 2 {}
        std::fs::remove_file(&path).unwrap();
        assert_eq!(notes(next(&mut words)).len(), 1);
        keeper.end();
        thread.join().unwrap();
    }

    /// Writings are answered in order, and a reading after them holds them.
    #[test]
    fn writings_and_readings_are_told_in_order() {
        let temp = tempfile::tempdir().unwrap();
        let (sender, mut words) = tokio::sync::mpsc::channel(64);
        let (keeper, thread) = MemoryKeeper::start(MemoryFolder::new(temp.path().join("memory")), sender).unwrap();
        for number in 1..=10 {
            keeper.write(
                EffectId(number),
                Box::new(WriteMemory {
                    scope: "shared".to_owned(),
                    slug: format!("note-{number}"),
                    title: "t".to_owned(),
                    body: "b".to_owned(),
                    mode: MemoryMode::Replace,
                    author: "kit".to_owned(),
                    now: number,
                    seen: None,
                    waiter: None,
                }),
            );
        }
        keeper.read();
        let mut written = 0;
        while written < 10 {
            match next(&mut words) {
                Word::Done { effect, result: EffectResult::MemoryWritten(Ok(_)) } => {
                    written += 1;
                    assert_eq!(effect, EffectId(written));
                }
                Word::Memory(entries) => assert!(entries.len() as u64 >= written, "a reading undoes nothing"),
                other => panic!("{other:?}"),
            }
        }
        while notes(next(&mut words)).len() < 10 {}
        keeper.end();
        thread.join().unwrap();
    }
}
