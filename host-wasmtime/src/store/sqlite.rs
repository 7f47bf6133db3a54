//! A store in one SQLite file, for the processes of one machine.

pub(crate) mod advice;
mod database;
mod files;
mod filesystem;
mod inspect;
pub(crate) mod names;
mod queue;
pub(crate) mod schema;
mod setup;
mod stamp;

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use self::database::{Database, Request};
use self::queue::Job;
use super::{
    Answer, Capabilities, Check, Finding, Found, List, OpenError, Read, Store, Transact, Write,
};

/// A store in one SQLite file; processes of one machine share it by its path.
///
/// The file is created if it is missing (mode 0600: a store of one user; give it another mode, and
/// SQLite's files beside it follow), its directory is not. An existing database keeps its other
/// tables and is switched to write-ahead logging. Every commit is synced to the disk, unless
/// [`Options::unsafe_no_sync`] says otherwise; requests that wait for the file together share a
/// commit.
///
/// All entries are stamped with the kernel's boot clock, so that an entry's age is known at once to
/// whoever runs on the same boot. The entry of an earlier boot, on a file system of this machine,
/// has the age `u64::MAX`: its writer died with that kernel.
///
/// Where the file, or one of SQLite's two files beside it, was deleted or replaced, every answer is
/// `Gone`, and nothing is re-created; open the store anew.
///
/// The file has to have one name. A hard link, or a mount of the single file, is refused when it is
/// opened; while there is a hard link that was made later, every answer is `Unavailable`.
///
/// Dropping it closes the file after what was asked before: the log is moved into the database, which
/// then holds everything. The drop blocks until that is done, at most a second; what a slow disk
/// leaves undone is safe in the log.
///
/// Keep the file to SQLite while the store is open: a process that opens it in another way and
/// closes it again drops SQLite's locks with it.
#[derive(Debug)]
pub struct Sqlite {
    /// None only in `drop`.
    jobs: Option<mpsc::Sender<Job>>,
    /// Nothing is ever sent: it is disconnected once the database is closed.
    closed: Mutex<mpsc::Receiver<Infallible>>,
    capabilities: Capabilities,
}

/// How a [`Sqlite`] store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a request waits for another connection's lock before it is `Unavailable`.
    pub busy: Duration,
    /// Accept a network or FUSE file system, whose locks and shared memory SQLite cannot trust.
    pub unsafe_filesystem: bool,
    /// Leave it to the kernel when a commit reaches the disk. A power cut may then take back a term
    /// that was announced, and its token is given out a second time. A store opened so is not
    /// linearizable by its own word, and a lease over it has to be told `unsafe_eventual`.
    pub unsafe_no_sync: bool,
}

impl Default for Options {
    /// A lease of 3 s gives a request a little less than 200 ms. Whoever waits less than that is
    /// told what was in the way, rather than that nothing came.
    fn default() -> Self {
        Self { busy: Duration::from_millis(100), unsafe_filesystem: false, unsafe_no_sync: false }
    }
}

impl Sqlite {
    /// Opens the file, creating it if it is missing; blocks, at most a few seconds.
    ///
    /// # Errors
    /// [`OpenError::Refused`] for what must not be used as a store: no SQLite database, a newer
    /// schema, a file with a second name, a network or FUSE file system.
    /// [`OpenError::Missing`] for a missing directory. [`OpenError::Unreachable`] for missing
    /// permissions, a file that stays locked.
    pub fn open(path: &Path, options: Options) -> Result<Self, OpenError> {
        let mut database = setup::open(path, &options)?;
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (closing, closed) = mpsc::channel();
        thread::Builder::new()
            .name("leasehold-sqlite".to_owned())
            .spawn(move || {
                queue::serve(&inbox, &mut database);
                drop(database);
                drop(closing);
            })
            .map_err(|error| {
                OpenError::Unreachable(format!("no thread for the store could be started: {error}"))
            })?;
        Ok(Self {
            jobs: Some(jobs),
            closed: Mutex::new(closed),
            capabilities: Capabilities {
                linearizable: !options.unsafe_no_sync,
                ..Self::capabilities_here()
            },
        })
    }

    /// What every store of this kind vouches for on this machine.
    #[must_use]
    pub fn capabilities_here() -> Capabilities {
        Capabilities {
            linearizable: true,
            multi_key: true,
            store_clock_error_ns: stamp::clock_error_ns(),
            watch: false,
        }
    }

    /// What is in the file, which is neither created nor changed.
    ///
    /// # Errors
    /// As for [`Sqlite::open`], except that the file may be missing and may be read-only.
    pub fn find(path: &Path, options: Options) -> Result<Found, OpenError> {
        setup::find(path, &options)
    }

    /// Runs `job` on the connection's own thread, after those before it. The job runs to its end
    /// whether or not its answer is awaited.
    fn submit<T: Send + 'static>(
        &self,
        lost: fn(String) -> T,
        job: impl FnOnce(&mut Database) -> T + Send + 'static,
    ) -> Answer<T> {
        let (reply, answer) = oneshot::channel();
        let job = move |database: &mut Database| {
            let _ = reply.send(job(database));
        };
        self.send(Job::Alone(Box::new(job)));
        answered(answer, lost)
    }

    /// If the thread is gone, the job is dropped with its end of the answer's channel.
    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }
}

fn answered<T: Send + 'static>(answer: oneshot::Receiver<T>, lost: fn(String) -> T) -> Answer<T> {
    Box::pin(async move {
        answer.await.unwrap_or_else(|_| lost("the store's thread has ended".to_owned()))
    })
}

impl Store for Sqlite {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn read(&self, key: &str) -> Answer<Read> {
        let key = key.to_owned();
        self.submit(Read::Unknown, move |database| database.read(&key))
    }

    fn transact(&self, checks: Vec<Check>, writes: Vec<Write>) -> Answer<Transact> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Transact(Request { checks, writes }, reply));
        answered(answer, Transact::Unknown)
    }

    fn list(&self, prefix: &str) -> Answer<List> {
        let prefix = prefix.to_owned();
        self.submit(List::Unavailable, move |database| database.list(&prefix))
    }

    fn inspect(&self) -> Answer<Vec<Finding>> {
        let lost = |why| vec![Finding::not_tried("engine", why)];
        self.submit(lost, |database| inspect::inspect(database))
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.jobs = None;
        let closed = self.closed.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = closed.recv_timeout(CLOSING);
    }
}

/// How long a drop waits for the disk: one that hangs must not keep a process from ending.
const CLOSING: Duration = Duration::from_secs(1);
