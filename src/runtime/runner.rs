//! Runs effects beside the loop: what writes to one repository in order, reads and test runs a few at a time, and every
//! end, a panic too, becomes a word for the loop.
//!
//! Knows nothing of what an effect does; [`super::effects`] says that.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::inbox::Word;
use super::loop_::panic_text;
use crate::foreman::effect::{EffectId, EffectResult};

/// Looks at repositories at the same time: enough for a disk, few enough to leave the machine to the agents.
const READS: usize = 3;
/// Test runs and setup commands at the same time; each may use all cores.
const COMMANDS: usize = 2;

/// Where an effect waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Writes to this repository or its copies: one at a time, in the order of the wish.
    Repo(PathBuf),
    /// Looks at a repository.
    Read,
    /// Runs a person's command.
    Command,
    /// Short; starts at once.
    Now,
}

/// How a piece of work ended.
pub(crate) enum Outcome {
    Done(EffectResult),
    /// Given up at shutdown; the effect stays wanted and starts again with the next life.
    Dropped,
    /// The rest waits in another lane.
    Then(Lane, Work),
}

pub(crate) type Work = Box<dyn FnOnce(CancellationToken) -> WorkFuture + Send>;
pub(crate) type WorkFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Work that blocks its thread; not to be cancelled.
pub(crate) fn blocking(work: impl FnOnce() -> Outcome + Send + 'static) -> Work {
    Box::new(|_| {
        Box::pin(async move {
            match tokio::task::spawn_blocking(work).await {
                Ok(outcome) => outcome,
                Err(error) => Outcome::Done(EffectResult::Crashed(match error.try_into_panic() {
                    Ok(panic) => panic_text(&*panic),
                    Err(error) => error.to_string(),
                })),
            }
        })
    })
}

/// Work that waits and may be cancelled.
pub(crate) fn waiting<F>(work: impl FnOnce(CancellationToken) -> F + Send + 'static) -> Work
where
    F: Future<Output = Outcome> + Send + 'static,
{
    Box::new(|cancel| Box::pin(work(cancel)))
}

type Queued = (EffectId, Work);

/// The running effects.
pub(crate) struct Runner {
    tokio: Handle,
    shared: Shared,
    running: BTreeSet<EffectId>,
}

/// What every task needs.
#[derive(Clone)]
struct Shared {
    words: mpsc::Sender<Word>,
    /// One queue for each repository; there are few, so none is ever given up.
    queues: Arc<std::sync::Mutex<BTreeMap<PathBuf, mpsc::UnboundedSender<Queued>>>>,
    reads: Arc<Semaphore>,
    commands: Arc<Semaphore>,
    cancel: CancellationToken,
}

impl Runner {
    pub(crate) fn new(tokio: Handle, words: mpsc::Sender<Word>) -> Self {
        let shared = Shared {
            words,
            queues: Arc::default(),
            reads: Arc::new(Semaphore::new(READS)),
            commands: Arc::new(Semaphore::new(COMMANDS)),
            cancel: CancellationToken::new(),
        };
        Self { tokio, shared, running: BTreeSet::new() }
    }

    /// Starts an effect, unless it runs already: then that one's result will do.
    pub(crate) fn run(&mut self, id: EffectId, lane: Lane, work: Work) {
        if self.running.insert(id) {
            let _guard = self.tokio.enter();
            self.shared.clone().submit(id, lane, work);
        }
    }

    /// Notes an effect that runs elsewhere (a note being written); false when it does already.
    pub(crate) fn runs_elsewhere(&mut self, id: EffectId) -> bool {
        self.running.insert(id)
    }

    /// Its word came.
    pub(crate) fn ended(&mut self, id: EffectId) {
        self.running.remove(&id);
    }

    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// Ends what can be cancelled.
    pub(crate) fn cancel(&self) {
        self.shared.cancel.cancel();
    }
}

impl Shared {
    fn submit(self, id: EffectId, lane: Lane, work: Work) {
        match lane {
            Lane::Repo(path) => self.queue(id, path, work),
            Lane::Read => {
                let places = Arc::clone(&self.reads);
                tokio::spawn(self.run_in(places, id, work));
            }
            Lane::Command => {
                let places = Arc::clone(&self.commands);
                tokio::spawn(self.run_in(places, id, work));
            }
            Lane::Now => {
                tokio::spawn(self.run(id, work));
            }
        }
    }

    fn queue(self, id: EffectId, path: PathBuf, work: Work) {
        let mut queues = self.queues.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let queue = queues.entry(path).or_insert_with(|| {
            let (sender, mut queue) = mpsc::unbounded_channel::<Queued>();
            let worker = self.clone();
            tokio::spawn(async move {
                while let Some((id, work)) = queue.recv().await {
                    worker.clone().run(id, work).await;
                }
            });
            sender
        });
        // The worker lives as long as the queue.
        if queue.send((id, work)).is_err() {
            tracing::error!(%id, "the repository's queue is gone");
        }
    }

    async fn run_in(self, places: Arc<Semaphore>, id: EffectId, work: Work) {
        // Never closed.
        let _place = places.acquire_owned().await;
        self.run(id, work).await;
    }

    fn run(self, id: EffectId, work: Work) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let cancel = self.cancel.clone();
            let outcome = AssertUnwindSafe(async move { work(cancel).await })
                .catch_unwind()
                .await
                .unwrap_or_else(|panic: Box<dyn Any + Send>| Outcome::Done(EffectResult::Crashed(panic_text(&*panic))));
            let word = match outcome {
                Outcome::Done(result) => Word::Done { effect: id, result },
                Outcome::Dropped => Word::Dropped { effect: id },
                Outcome::Then(lane, rest) => return self.submit(id, lane, rest),
            };
            // Only fails when the loop is gone.
            self.words.send(word).await.ok();
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::time::Duration;
    use tokio::sync::Notify;

    fn fine() -> Outcome {
        Outcome::Done(EffectResult::Crashed("fine".to_owned()))
    }

    fn run<F: Future<Output = ()>>(test: impl FnOnce(Runner, mpsc::Receiver<Word>) -> F) {
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let (sender, words) = mpsc::channel(64);
        let runner = Runner::new(tokio.handle().clone(), sender);
        tokio.block_on(test(runner, words));
    }

    async fn next(words: &mut mpsc::Receiver<Word>) -> (u64, String) {
        match tokio::time::timeout(Duration::from_secs(20), words.recv()).await {
            Ok(Some(Word::Done { effect, result: EffectResult::Crashed(text) })) => (effect.0, text),
            Ok(Some(Word::Dropped { effect })) => (effect.0, "dropped".to_owned()),
            other => panic!("{other:?}"),
        }
    }

    /// Two writes to one repository never overlap and keep their order; another repository does not wait.
    #[test]
    fn writes_to_one_repository_are_in_order() {
        run(|mut runner, mut words| async move {
            let log = Arc::new(Mutex::new(Vec::new()));
            let gate = Arc::new(Notify::new());
            for number in 1..=8 {
                let (log, gate) = (Arc::clone(&log), Arc::clone(&gate));
                let work = waiting(move |_| async move {
                    log.lock().unwrap().push(format!("begin {number}"));
                    if number == 1 {
                        gate.notified().await;
                    }
                    tokio::task::yield_now().await;
                    log.lock().unwrap().push(format!("end {number}"));
                    fine()
                });
                runner.run(EffectId(number), Lane::Repo("/one".into()), work);
            }
            runner.run(EffectId(99), Lane::Repo("/two".into()), blocking(fine));
            assert_eq!(next(&mut words).await.0, 99, "the other repository is not held up");
            gate.notify_one();
            for number in 1..=8 {
                assert_eq!(next(&mut words).await.0, number);
            }
            let expected: Vec<String> =
                (1..=8).flat_map(|number| [format!("begin {number}"), format!("end {number}")]).collect();
            assert_eq!(*log.lock().unwrap(), expected);
        });
    }

    /// A panic ends one effect, with its words; the queue goes on.
    #[test]
    fn a_panic_is_a_result() {
        run(|mut runner, mut words| async move {
            let lane = || Lane::Repo("/one".into());
            runner.run(EffectId(1), lane(), blocking(|| panic!("in a thread")));
            runner.run(EffectId(2), lane(), waiting(|_| async { panic!("in a task") }));
            runner.run(EffectId(3), lane(), blocking(fine));
            assert_eq!(next(&mut words).await, (1, "in a thread".to_owned()));
            assert_eq!(next(&mut words).await, (2, "in a task".to_owned()));
            assert_eq!(next(&mut words).await, (3, "fine".to_owned()));
            assert_eq!(runner.running(), 3, "until the loop has taken their words");
            runner.ended(EffectId(1));
            assert_eq!(runner.running(), 2);
        });
    }

    /// The same effect wanted again while it runs is one effect.
    #[test]
    fn an_effect_that_runs_is_not_started_twice() {
        run(|mut runner, mut words| async move {
            let count = Arc::new(Mutex::new(0));
            let gate = Arc::new(Notify::new());
            for _ in 0..3 {
                let (count, gate) = (Arc::clone(&count), Arc::clone(&gate));
                let work = waiting(move |_| async move {
                    *count.lock().unwrap() += 1;
                    gate.notified().await;
                    fine()
                });
                runner.run(EffectId(1), Lane::Now, work);
            }
            gate.notify_one();
            next(&mut words).await;
            runner.ended(EffectId(1));
            assert_eq!(*count.lock().unwrap(), 1);
            runner.run(EffectId(1), Lane::Now, blocking(fine));
            next(&mut words).await;
        });
    }

    /// A second step waits in its own lane and holds up nobody in the first.
    #[test]
    fn a_second_step_leaves_the_first_lane() {
        run(|mut runner, mut words| async move {
            let gate = Arc::new(Notify::new());
            let waits = Arc::clone(&gate);
            let work = blocking(move || {
                Outcome::Then(
                    Lane::Command,
                    waiting(move |_| async move {
                        waits.notified().await;
                        fine()
                    }),
                )
            });
            runner.run(EffectId(1), Lane::Repo("/one".into()), work);
            runner.run(EffectId(2), Lane::Repo("/one".into()), blocking(fine));
            assert_eq!(next(&mut words).await.0, 2);
            gate.notify_one();
            assert_eq!(next(&mut words).await.0, 1);
        });
    }

    /// What is cancelled says that it was dropped: no result is made up for it.
    #[test]
    fn cancelled_work_has_no_result() {
        run(|mut runner, mut words| async move {
            let work = waiting(|cancel| async move {
                cancel.cancelled().await;
                Outcome::Dropped
            });
            runner.run(EffectId(1), Lane::Command, work);
            runner.cancel();
            assert_eq!(next(&mut words).await, (1, "dropped".to_owned()));
        });
    }
}
