//! What may be decided about a run. What is not decided goes well.

use leasehold_core::time::MILLISECOND_NS;

/// One entry of a tape. One whose target does not exist changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// What happens to one message.
    Fate(Message, Fate),
    /// What happens to the world, at a true time.
    Fault(u64, Fault),
}

/// The name of a message: the same in every run that sends it, whatever else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// What it is about.
    pub kind: Kind,
    /// Who sends it.
    pub node: u8,
    /// Which start of that node's process.
    pub life: u16,
    /// Which of this kind in that life, from 1.
    pub number: u32,
}

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A request to the store, and its answer. Its number is its operation's.
    Request,
    /// A seal, and its verdict.
    Seal,
    /// A holder's effect, and a refusal.
    Effect,
    /// The word to the work that it has to end, and its word that it has: `there_ns` is what ending
    /// takes.
    Drain,
}

/// What happens to a message and its answer. Spans in nanoseconds; none: lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The sender is paused for so long between its decision and the sending.
    pub pause_ns: u64,
    /// The way there. Longer than the sender waits: it is performed late.
    pub there_ns: Option<u64>,
    /// What the other side does.
    pub service: Service,
    /// The way back.
    pub back_ns: Option<u64>,
    /// The answer comes a second time, so much later.
    pub again_ns: Option<u64>,
}

/// How a store serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// As it should.
    Performed,
    /// No byte leaves the sender, and it knows that.
    Unavailable,
    /// Not performed; the store says: ask again.
    Undecided,
    /// Not performed; the store says that a condition failed.
    Conflict,
    /// Performed; the store says that it does not know.
    Unknown,
}

impl Fate {
    /// Performed and answered within two milliseconds.
    pub const WELL: Self = Self {
        pause_ns: 0,
        there_ns: Some(MILLISECOND_NS),
        service: Service::Performed,
        back_ns: Some(MILLISECOND_NS),
        again_ns: None,
    };
}

/// Something that happens to the world. Spans in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process stands still: messages wait, in and out.
    Pause {
        /// Whose.
        node: u8,
        /// How long.
        for_ns: u64,
    },
    /// The computer sleeps.
    Suspend {
        /// Which.
        node: u8,
        /// How long.
        for_ns: u64,
    },
    /// The virtual machine is frozen with both clocks. No clock is within its bound then.
    Freeze {
        /// Which.
        node: u8,
        /// How long.
        for_ns: u64,
    },
    /// The process dies and starts again, as another instance.
    Crash {
        /// Whose.
        node: u8,
        /// When it starts again.
        down_ns: u64,
    },
    /// The wall clock is set.
    StepWall {
        /// Whose.
        node: u8,
        /// Forth, or back.
        by_ns: i64,
    },
    /// The oscillator changes its rate.
    Rate {
        /// Whose.
        node: u8,
        /// Parts per billion above true time.
        ppb: i64,
    },
    /// The image moves to another computer, whose monotonic clock is behind, and the host is told.
    Migrate {
        /// Which.
        node: u8,
        /// How far behind.
        back_ns: u64,
    },
    /// The way between a node and the store is cut.
    Cut {
        /// Whose.
        node: u8,
        /// Requests are lost.
        requests: bool,
        /// Answers are lost.
        answers: bool,
        /// How long.
        for_ns: u64,
    },
    /// The store is restored from a copy.
    Restore {
        /// So many writes old.
        back: u8,
        /// Whether it gives version numbers out again.
        repeats: bool,
    },
    /// A replica of the store takes over. A good store loses nothing.
    FailOver,
    /// Somebody deletes the record.
    Delete,
    /// Somebody edits the record, and it is none any more.
    Spoil,
    /// An operator wishes a hand-off, in the record.
    Ask {
        /// To whom.
        to: u8,
    },
    /// An operator ends whoever holds the lease.
    Force {
        /// And frees the record at once, which waives exclusivity.
        now: bool,
    },
    /// A host is told to give the lease up.
    Resign {
        /// Whose.
        node: u8,
        /// To whom.
        to: Option<u8>,
    },
    /// A host is told to stop.
    Stop {
        /// Whose.
        node: u8,
    },
    /// A host hears that the record changed.
    Hint {
        /// Whose.
        node: u8,
        /// What else it hears.
        content: Hinted,
    },
    /// The memory image of a node runs a second time, on a node of its own.
    Twin {
        /// Whose.
        node: u8,
    },
    /// The resource is slow.
    Slow {
        /// So much longer on every way there.
        by_ns: u64,
        /// How long.
        for_ns: u64,
    },
    /// The resource is restored from a copy, and recovered before it opens.
    RestoreResource {
        /// So many seals old.
        back: u8,
    },
}

/// What a hint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hinted {
    /// Nothing but that something changed.
    Nothing,
    /// What the record is.
    Fresh,
    /// What the record was before its last change.
    Stale,
}
