//! What a verb of the guard answered, for people and scripts.

use std::fmt;
use std::process::ExitCode;

use leasehold_core::fence::{AdoptVerdict, RecoverVerdict, RetireVerdict, SealVerdict};
use leasehold_core::token::Token;
use leasehold_host::fence::Resource;
use serde_json::{Value, json};

use crate::exit::{self, Failure, print};

/// What a verb of the guard answered.
pub(super) struct Answer {
    pub(super) token: Token,
    pub(super) verdict: &'static str,
    pub(super) refused: Option<Refused>,
    /// After the verdict, where it is no refusal.
    pub(super) words: String,
    /// Fields of this verb alone.
    pub(super) more: Value,
}

impl Answer {
    pub(super) fn report(self, resource: &Resource, json: bool) -> Result<ExitCode, Failure> {
        let Self { token, verdict, refused, words, more } = self;
        if json {
            let mut answer = json!({
                "resource": resource.to_string(),
                "token": token.to_string(),
                "verdict": verdict,
                "floor": refused.and_then(Refused::floor).map(|floor| floor.to_string()),
            });
            if let (Value::Object(answer), Value::Object(more)) = (&mut answer, more) {
                answer.extend(more);
            }
            print(answer)?;
        } else if refused.is_none() {
            print(format!("{resource}: {verdict}{words}"))?;
        }
        let Some(refused) = refused else { return Ok(ExitCode::SUCCESS) };
        let code = match refused {
            Refused::NoResource => exit::CONFIGURATION,
            _ => exit::REFUSED,
        };
        Err(Failure::new(code, format!("{resource}: {verdict}: {refused}")))
    }
}

/// Why a verb of the guard changed nothing; the verbs share these.
#[derive(Clone, Copy)]
pub(super) enum Refused {
    NoResource,
    Gone { floor: u64 },
    ForeignLineage,
    NotSealed { floor: u64 },
    Fenced { floor: u64 },
    Collision { floor: u64 },
    Implausible,
}

impl Refused {
    pub(super) fn seal(verdict: SealVerdict) -> Option<Self> {
        Some(match verdict {
            SealVerdict::NoResource => Self::NoResource,
            SealVerdict::Gone { floor } => Self::Gone { floor },
            SealVerdict::ForeignLineage => Self::ForeignLineage,
            SealVerdict::Fenced { floor } => Self::Fenced { floor },
            SealVerdict::Collision { floor } => Self::Collision { floor },
            SealVerdict::Implausible => Self::Implausible,
            SealVerdict::Sealed { .. } | SealVerdict::AlreadySealed { .. } => return None,
        })
    }

    pub(super) fn recover(verdict: RecoverVerdict) -> Option<Self> {
        Some(match verdict {
            RecoverVerdict::NoResource => Self::NoResource,
            RecoverVerdict::Gone { floor } => Self::Gone { floor },
            RecoverVerdict::ForeignLineage => Self::ForeignLineage,
            RecoverVerdict::Kept { .. } | RecoverVerdict::Recovered { .. } => return None,
        })
    }

    pub(super) fn adopt(verdict: AdoptVerdict) -> Option<Self> {
        Some(match verdict {
            AdoptVerdict::NoResource => Self::NoResource,
            AdoptVerdict::Gone { floor } => Self::Gone { floor },
            AdoptVerdict::Fenced { floor } => Self::Fenced { floor },
            AdoptVerdict::Collision { floor } => Self::Collision { floor },
            AdoptVerdict::AlreadySealed { .. } | AdoptVerdict::Adopted { .. } => return None,
        })
    }

    pub(super) fn retire(verdict: RetireVerdict) -> Option<Self> {
        Some(match verdict {
            RetireVerdict::NoResource => Self::NoResource,
            RetireVerdict::NotSealed { floor } => Self::NotSealed { floor },
            RetireVerdict::ForeignLineage => Self::ForeignLineage,
            RetireVerdict::Gone { floor } => Self::Gone { floor },
            RetireVerdict::Fenced { floor } => Self::Fenced { floor },
            RetireVerdict::Collision { floor } => Self::Collision { floor },
            RetireVerdict::AlreadyRetired | RetireVerdict::Retired => return None,
        })
    }

    fn floor(self) -> Option<u64> {
        match self {
            Self::Gone { floor }
            | Self::NotSealed { floor }
            | Self::Fenced { floor }
            | Self::Collision { floor } => Some(floor),
            Self::NoResource | Self::ForeignLineage | Self::Implausible => None,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResource => f.write_str(
                "there is no such resource: create it with `leasehold fence init`, or restore its \
                 row",
            ),
            Self::Gone { .. } => {
                f.write_str("the resource was retired: it takes no writes any more")
            }
            Self::ForeignLineage => f.write_str(
                "the resource obeys another lease: check the store and the lease's name. If its \
                 lease's record was lost: `leasehold init NAME --after TOKEN`, with the token that \
                 `leasehold fence status` shows, before anybody runs under the new record. Else \
                 `leasehold fence adopt` binds it to this lease",
            ),
            Self::NotSealed { floor: 0 } => {
                f.write_str("no token has sealed it: seal it with this one first")
            }
            Self::NotSealed { floor } => write!(
                f,
                "the last seal is that of term {floor}: name that token, or seal it with this one \
                 first"
            ),
            Self::Fenced { floor } => write!(f, "a later holder has sealed it, with term {floor}"),
            Self::Collision { floor } => write!(
                f,
                "another holder has sealed it with the same term {floor}: the lease store was \
                 rolled back"
            ),
            Self::Implausible => f.write_str(
                "the term is implausibly far above the resource's floor: check the token",
            ),
        }
    }
}
