//! The transition table, as data: the machine moves only by its rows.

/// Where an [`Elector`](super::Elector) is. Whether the store is down or at fault stands beside
/// the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The record is to be read.
    Observing,
    /// Somebody else holds the lease.
    Standby,
    /// The record may be taken: a conditional write is due or in flight.
    Campaigning,
    /// That write's outcome is in doubt: the record is re-read.
    Confirming,
    /// Elected; the resources are being sealed. Nothing may start or finish.
    Sealing,
    /// Work may start.
    Leading,
    /// Nothing starts; the work is being ended.
    Draining,
    /// The work is over; the record is being released.
    Releasing,
    /// For good.
    Stopped,
}

/// Why an [`Elector`](super::Elector) moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The record was read, and somebody holds it.
    Occupied,
    /// The record may be taken: absent, released, or silent for its window.
    Free,
    /// The campaign's write has no clear answer.
    InDoubt,
    /// The re-read shows that nothing of the campaign has been applied.
    Unapplied,
    /// The campaign's write was applied.
    Won,
    /// It was applied, but too late to act, or after a wish to stop.
    WonInVain,
    /// What was known of the record is void: read again.
    Unsettled,
    /// Every resource of the lease is sealed.
    Sealed,
    /// The term is over for whatever reason.
    Demoted,
    /// The work has ended and the record may be ours to release.
    Drained,
    /// Nothing is left to do for this term.
    Ended,
    /// The wish to stop, once nothing is held.
    Stop,
}

/// Every transition: from, why, to.
pub const TABLE: &[(State, Cause, State)] = {
    use Cause::*;
    use State::*;
    &[
        (Observing, Occupied, Standby),
        (Observing, Free, Campaigning),
        (Observing, Stop, Stopped),
        (Standby, Free, Campaigning),
        (Standby, Unsettled, Observing),
        (Standby, Stop, Stopped),
        (Campaigning, Won, Sealing),
        (Campaigning, WonInVain, Releasing),
        (Campaigning, InDoubt, Confirming),
        (Campaigning, Unsettled, Observing),
        (Campaigning, Stop, Stopped),
        (Confirming, Won, Sealing),
        (Confirming, WonInVain, Releasing),
        (Confirming, Unapplied, Campaigning),
        (Confirming, Unsettled, Observing),
        (Sealing, Sealed, Leading),
        (Sealing, Demoted, Draining),
        (Leading, Demoted, Draining),
        (Draining, Drained, Releasing),
        (Draining, Ended, Observing),
        (Releasing, Ended, Observing),
    ]
};

/// The state after `cause`; none where the table has no row.
#[must_use]
pub fn next(from: State, cause: Cause) -> Option<State> {
    let row = TABLE.iter().find(|row| row.0 == from && row.1 == cause)?;
    Some(row.2)
}
