//! The requests that wait for the connection, which has a thread of its own.

use std::sync::mpsc;

use tokio::sync::oneshot;

use super::database::{Database, Request};
use crate::store::Transact;

/// How many requests share a commit at most: the first must not wait long for the last.
const TOGETHER: usize = 64;

pub(super) enum Job {
    /// Whatever has to be alone with the database.
    Alone(Box<dyn FnOnce(&mut Database) + Send>),
    Transact(Request, oneshot::Sender<Transact>),
}

/// Serves all jobs in their order, until nobody can send any more. Requests that came while the
/// disk was busy with a commit share the next one; nothing waits for company.
pub(super) fn serve(inbox: &mpsc::Receiver<Job>, database: &mut Database) {
    let mut next = None;
    while let Some(job) = next.take().or_else(|| inbox.recv().ok()) {
        match job {
            Job::Alone(job) => job(database),
            Job::Transact(request, reply) => {
                let (mut requests, mut replies) = (vec![request], vec![reply]);
                while requests.len() < TOGETHER && next.is_none() {
                    match inbox.try_recv() {
                        Ok(Job::Transact(request, reply)) => {
                            requests.push(request);
                            replies.push(reply);
                        }
                        Ok(other) => next = Some(other),
                        Err(_) => break,
                    }
                }
                // Whoever stopped listening needs no answer.
                for (reply, answer) in replies.into_iter().zip(database.transact(&requests)) {
                    let _ = reply.send(answer);
                }
            }
        }
    }
}
