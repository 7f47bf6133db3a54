//! What was found out about a store, for people who have to act on it.

/// One thing that was looked at, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: a name for scripts, the same in every version.
    pub name: &'static str,
    /// What came of it.
    pub outcome: Outcome,
    /// What was seen, in words.
    pub saw: String,
    /// What follows and what to do; empty where nothing does.
    pub advice: String,
}

impl Finding {
    /// The store is as it has to be.
    #[must_use]
    pub fn holds(name: &'static str, saw: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Holds, saw: saw.into(), advice: String::new() }
    }

    /// Leases work, but not always, or not against everyone.
    #[must_use]
    pub fn warning(name: &'static str, saw: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Warning, saw: saw.into(), advice: advice.into() }
    }

    /// The store must not keep leases.
    #[must_use]
    pub fn broken(name: &'static str, saw: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Broken, saw: saw.into(), advice: advice.into() }
    }

    /// Nobody knows, and why.
    #[must_use]
    pub fn not_tried(name: &'static str, why: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::NotTried, saw: why.into(), advice: String::new() }
    }
}

/// What came of a look at one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it has to be.
    Holds,
    /// It may be meant so; leases work within limits.
    Warning,
    /// Two holders, or a lost record, are possible without anybody's crash.
    Broken,
    /// It was not looked at.
    NotTried,
}

impl Outcome {
    /// Its name for scripts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Warning => "warning",
            Self::Broken => "broken",
            Self::NotTried => "not_tried",
        }
    }
}
