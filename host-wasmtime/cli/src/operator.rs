//! `leasehold handoff`, `release`, `init`: what an operator does to a lease from outside.

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use leasehold_core::label::{Label, Name};
use leasehold_core::operator as rules;
use leasehold_core::record::Kind;
use leasehold_core::token::Token;
use leasehold_host::operator::{Forced, Operator, OperatorError, Refusal, Snapshot};
use serde_json::json;

use crate::exit::{self, Failure, print, say};
use crate::labels::this_user;
use crate::options::{Handoff, Init, Release, StoreOption};
use crate::places::{self, Place};
use crate::records::{self, Found, block_on};
use crate::spans::{milliseconds, seconds};
use crate::status;

/// The shortest pause between two looks at a record.
const POLL: Duration = Duration::from_millis(20);

pub(crate) fn handoff(options: &Handoff) -> Result<ExitCode, Failure> {
    let place = existing(&options.store, &options.name)?;
    let to = Label::new(&options.to)
        .map_err(|bad| Failure::configuration(format!("--to {:?}: {bad}", options.to)))?;
    block_on(hand_off(options, &place, to))?
}

async fn hand_off(options: &Handoff, place: &Place, to: Label<'_>) -> Result<ExitCode, Failure> {
    let name = &options.name;
    let before = look(place, name).await?;
    // The wish would make a dead holder's record look younger than it is.
    if before.has_run_out {
        let why = "nobody is there to hand it over, and whoever waits takes it";
        return Err(Failure::new(exit::REFUSED, format!("{name}: {}: {why}", before.words)));
    }
    let report = |record: &Snapshot, asked: bool, handed_over: bool, words: &str| {
        if !options.json {
            return print(format!("{name}: {words}"));
        }
        print(json!({
            "name": name,
            "store": place.url,
            "to": to.as_str(),
            "asked": asked,
            "handed_over": handed_over,
            "state": record.state.as_str(),
            "holder": record.holder,
            "term": record.token.term.to_string(),
            "ttl_ms": milliseconds(record.ttl),
        }))
    };
    let asked = match operator(place, &this_user())?.ask(name, to.as_str()).await {
        Ok(record) => record,
        Err(OperatorError::Refused(Refusal::Rule(rules::Refusal::AlreadyHolds))) => {
            let seen = look(place, name).await?;
            let words = format!("{}: {to} holds it already, nothing was changed", seen.words);
            report(&seen.record, false, true, &words)?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(failure(name, error)),
    };
    let words = format!(
        "{}, term {}, is asked to hand over to {to}, and hears of it within {}; its command ends \
         even if no {to} is waiting",
        asked.holder,
        asked.token.term,
        seconds(asked.ttl)
    );
    let Some(wait) = options.wait else {
        report(&asked, true, false, &words)?;
        return Ok(ExitCode::SUCCESS);
    };
    say(format!("{name}: {words}"));
    let taken = tokio::time::timeout(wait, until_taken(place, name, &asked, to)).await;
    let seen = match taken {
        Ok(seen) => seen?,
        Err(_) => look(place, name).await?,
    };
    let handed_over = seen.is_taken(&asked, to);
    report(&seen.record, true, handed_over, &seen.words)?;
    if handed_over {
        return Ok(ExitCode::SUCCESS);
    }
    let why = format!("{name}: not handed over within --wait: see whether {to} is waiting for it");
    Err(Failure::new(exit::WAIT_OVER, why))
}

/// What passes by itself is waited for, too.
async fn until_taken(
    place: &Place,
    name: &str,
    asked: &Snapshot,
    to: Label<'_>,
) -> Result<Seen, Failure> {
    let poll = POLL.max(asked.ttl / 10);
    loop {
        match look(place, name).await {
            Ok(seen) if seen.is_taken(asked, to) => return Ok(seen),
            Err(failure) if !failure.may_pass() => return Err(failure),
            _ => tokio::time::sleep(poll).await,
        }
    }
}

pub(crate) fn release(options: &Release) -> Result<ExitCode, Failure> {
    let name = &options.name;
    if !options.force {
        return Err(Failure::configuration(format!(
            "{name}: a holder releases its lease by itself: end its `leasehold run`. From outside \
             it goes by force only, which kills the holder's command: add --force --reason TEXT \
             --holder LABEL"
        )));
    }
    let Some(reason) = &options.reason else {
        return Err(Failure::configuration(format!(
            "{name}: say why, with --reason TEXT: it is kept in the record, for whoever wonders"
        )));
    };
    let place = existing(&options.store, name)?;
    block_on(release_by_force(options, &place, reason))?
}

async fn release_by_force(
    options: &Release,
    place: &Place,
    reason: &str,
) -> Result<ExitCode, Failure> {
    let name = &options.name;
    let by = options.by.clone().unwrap_or_else(this_user);
    let operator = operator(place, &by)?;
    let holder = match &options.holder {
        Some(holder) => holder.clone(),
        None => type_the_holder(place, name).await?,
    };
    let forced = operator.force(name, reason, &holder).await;
    let Forced { ended, now } = forced.map_err(|error| failure(name, error))?;
    let words = format!(
        "{name}: {}, term {}, was ended by force; nobody holds it, under term {}",
        ended.holder, ended.token.term, now.token.term
    );
    let waived = if options.now { Some(operator.waive(name).await) } else { None };
    let (grace, outlook) = outlook(&ended, waived.as_ref());
    if options.json {
        print(json!({
            "name": name,
            "store": place.url,
            "ended": ended.holder,
            "ended_term": ended.token.term.to_string(),
            "holder": now.holder,
            "term": now.token.term.to_string(),
            "token": now.token.to_string(),
            "reason": reason,
            "grace_ms": milliseconds(grace),
            "exclusive": !grace.is_zero(),
        }))?;
    } else {
        print(format!("{words}; {outlook}"))?;
    }
    match waived {
        Some(Err(error)) => Err(failure(name, error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// How long others wait for what was ended by force, in numbers and words.
fn outlook(
    ended: &Snapshot,
    waived: Option<&Result<Snapshot, OperatorError>>,
) -> (Duration, String) {
    let (holder, ttl) = (&ended.holder, seconds(ended.ttl));
    let risk = format!(
        "for up to {ttl} (the old ttl) the command of {holder} may still run beside the next one, \
         and only the fence protects"
    );
    match waived {
        Some(Ok(_)) => (Duration::ZERO, format!("free at once: {risk}")),
        None
        | Some(Err(
            OperatorError::Refused(_)
            | OperatorError::Unavailable(_)
            | OperatorError::KeepsChanging,
        )) => (ended.ttl, format!("everybody waits {ttl} (the old ttl)")),
        // Whatever may have been written counts as written.
        Some(Err(_)) => (Duration::ZERO, format!("it may be free at once, and then {risk}")),
    }
}

/// Whom the operator means to end: typed, so that it is somebody whom they have looked up.
async fn type_the_holder(place: &Place, name: &str) -> Result<String, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::configuration(format!(
            "{name}: name the holder that is to be ended, as `leasehold status` shows it: {}",
            with_holder(env::args())
        )));
    }
    let seen = look(place, name).await?;
    if seen.record.state == Kind::Released {
        let refusal = Refusal::Rule(rules::Refusal::AlreadyFree);
        return Err(failure(name, refusal.into()));
    }
    say(format!("{name}: {}", seen.words));
    let _ = write!(io::stderr(), "leasehold: type the holder's label to end it by force: ");
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(Failure::configuration)?;
    match line.trim() {
        "" => Err(Failure::new(exit::REFUSED, format!("{name}: nothing typed, nothing changed"))),
        holder => Ok(holder.to_owned()),
    }
}

/// This very command, with a place for the holder.
fn with_holder(args: impl Iterator<Item = String>) -> String {
    let rest = args.skip(2).map(|word| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:/=@+,".contains(&byte);
        if !word.is_empty() && word.bytes().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    let words = ["leasehold release --holder HOLDER".to_owned()].into_iter().chain(rest);
    words.collect::<Vec<_>>().join(" ")
}

pub(crate) fn init(options: &Init) -> Result<ExitCode, Failure> {
    let name = &options.name;
    check(name)?;
    let after: Token = options
        .after
        .parse()
        .map_err(|bad| Failure::configuration(format!("--after {:?}: {bad}", options.after)))?;
    let place = places::open(options.store.named())?;
    let operator = operator(&place, &this_user())?;
    let init = block_on(operator.init(name, after, options.ttl))?;
    let record = init.map_err(|error| match &error {
        OperatorError::Refused(Refusal::Exists(found)) if found.token.lineage != after.lineage => {
            let way = "somebody has run under a new record since: bind each resource to its token \
                       with `leasehold fence adopt`";
            Failure::new(exit::REFUSED, format!("{name}: {error}; {way}"))
        }
        _ => failure(name, error),
    })?;
    if options.json {
        print(json!({
            "name": name,
            "store": place.url,
            "token": record.token.to_string(),
            "ttl_ms": milliseconds(record.ttl),
        }))?;
    } else {
        print(format!(
            "{name}: free, and goes on after term {}\ntoken {}\nstore {}",
            record.token.term, record.token, place.url
        ))?;
    }
    say(format!(
        "{name}: whoever held the lost record must have been stopped before anybody runs under \
         this one: it cannot know of it"
    ));
    Ok(ExitCode::SUCCESS)
}

/// A record as it was read.
struct Seen {
    record: Snapshot,
    /// As `status` has them.
    words: String,
    /// Held, and the holder has stopped believing in it.
    has_run_out: bool,
}

impl Seen {
    /// Whether `to` acquired the lease after it was asked for; it may have ended since.
    fn is_taken(&self, asked: &Snapshot, to: Label<'_>) -> bool {
        self.record.token.term > asked.token.term && self.record.is_by(to)
    }
}

async fn look(place: &Place, name: &str) -> Result<Seen, Failure> {
    match records::read(place, name).await? {
        Found::Absent => Err(failure(name, Refusal::NoRecord.into())),
        Found::Entry { value, age } => {
            let record = records::decode(name, &value, &place.url)?;
            Ok(Seen {
                record: Snapshot::of(&record),
                words: status::words(&record, age),
                has_run_out: record.state.kind() == Kind::Held && status::has_run_out(&record, age),
            })
        }
    }
}

/// The store that should have the lease; none is created.
fn existing(option: &StoreOption, name: &str) -> Result<Place, Failure> {
    check(name)?;
    if let Some(place) = places::find(option.named())? {
        return Ok(place);
    }
    let url = places::url(option.named())?;
    Err(Failure::new(exit::REFUSED, format!("{name}: {}; {url} does not exist", Refusal::NoRecord)))
}

fn check(name: &str) -> Result<(), Failure> {
    Name::chosen(name).map(drop).map_err(|bad| Failure::configuration(format!("{name:?}: {bad}")))
}

fn operator<'a>(place: &'a Place, who: &str) -> Result<Operator<'a>, Failure> {
    Operator::new(&*place.store, who)
        .map_err(|error| Failure::configuration(format!("--by {who:?}: {error}")))
}

fn failure(name: &str, error: OperatorError) -> Failure {
    let code = match error {
        OperatorError::Refused(_) => exit::REFUSED,
        OperatorError::Misuse(_) | OperatorError::Record(_) | OperatorError::Gone(_) => {
            exit::CONFIGURATION
        }
        OperatorError::Unavailable(_)
        | OperatorError::InDoubt(_)
        | OperatorError::KeepsChanging
        | OperatorError::Host(_) => exit::UNREACHABLE,
    };
    Failure::new(code, format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use leasehold_core::token::Nonce;

    use super::*;

    #[test]
    fn only_a_waiver_that_surely_was_not_written_leaves_exclusivity() {
        let ended = Snapshot {
            state: Kind::Held,
            holder: "web-1".to_owned(),
            instance: Nonce(0xaa),
            token: "0123456789abcdef0123456789abcdef/7/00000000000000aa".parse().unwrap(),
            ttl: Duration::from_secs(3),
        };
        let why = || "no route".to_owned();
        let waits = "everybody waits 3.000 s (the old ttl)";
        let doubt = "it may be free at once, and then for up to 3.000 s";
        for (waived, grace, words) in [
            (None, ended.ttl, waits),
            (Some(Err(Refusal::Rule(rules::Refusal::NotForced).into())), ended.ttl, waits),
            (Some(Err(OperatorError::Unavailable(why()))), ended.ttl, waits),
            (Some(Err(OperatorError::InDoubt(why()))), Duration::ZERO, doubt),
            // The store may have gone after it was written.
            (Some(Err(OperatorError::Gone(why()))), Duration::ZERO, doubt),
            (Some(Ok(ended.clone())), Duration::ZERO, "free at once: for up to 3.000 s"),
        ] {
            let (found, outlook) = outlook(&ended, waived.as_ref());
            assert_eq!(found, grace, "{waived:?}");
            assert!(outlook.starts_with(words), "{outlook}");
        }
    }

    #[test]
    fn the_command_line_to_type_instead_survives_a_shell() {
        let typed = ["leasehold", "release", "job", "--reason", "it's stuck", "--store", "./l.db"];
        assert_eq!(
            with_holder(typed.map(str::to_owned).into_iter()),
            r"leasehold release --holder HOLDER job --reason 'it'\''s stuck' --store ./l.db"
        );
    }
}
