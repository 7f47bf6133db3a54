//! `leasehold run`: the front, which holds the lease and has the keeper run the command.

#[cfg(unix)]
mod events;
#[cfg(unix)]
mod front;
#[cfg(unix)]
mod held;
#[cfg(unix)]
mod hold;
#[cfg(unix)]
mod outcome;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod wait;
#[cfg(unix)]
mod work;

use std::process::ExitCode;
use std::time::Duration;

use leasehold_core::label::{Label, Name};
use leasehold_core::token::Token;
use leasehold_host::fence::Resource;

use crate::exit::Failure;
use crate::labels::this_process;
use crate::options;

/// From the last SIGKILL to `valid_until`: what killing takes on a busy machine.
pub(crate) const KILL_BUDGET: Duration = Duration::from_millis(500);

/// What to run under which lease, checked as far as it can be before anything starts.
#[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has a keeper"))]
struct Plan {
    options: options::Run,
    holder: String,
    resources: Vec<Resource>,
    /// Where to tell what happens.
    #[cfg(unix)]
    events: Option<std::fs::File>,
    /// The token under which this process itself was started, by a `run` around it.
    under: Option<Token>,
}

impl Plan {
    fn check(options: options::Run) -> Result<Self, Failure> {
        Name::chosen(&options.name)
            .map_err(|bad| Failure::configuration(format!("{:?}: {bad}", options.name)))?;
        let holder = options.holder.clone().unwrap_or_else(this_process);
        Label::new(&holder)
            .map_err(|bad| Failure::configuration(format!("--holder {holder:?}: {bad}")))?;
        let resources =
            options.seal.iter().map(|text| Resource::parse(text)).collect::<Result<_, _>>();
        let resources =
            resources.map_err(|error| Failure::configuration(format!("--seal: {error}")))?;
        let under = std::env::var("LEASEHOLD_TOKEN").ok().and_then(|token| token.parse().ok());
        // Before this process opens anything that could be taken for what it was given.
        #[cfg(unix)]
        let events = options.events.as_deref().map(events::open).transpose()?;
        Ok(Self {
            options,
            holder,
            resources,
            #[cfg(unix)]
            events,
            under,
        })
    }
}

#[cfg(unix)]
pub(crate) fn run(options: options::Run) -> Result<ExitCode, Failure> {
    front::run(Plan::check(options)?)
}

#[cfg(not(unix))]
pub(crate) fn run(options: options::Run) -> Result<ExitCode, Failure> {
    Plan::check(options)?;
    Err(Failure::configuration(
        "`run` needs Unix: use the library `leasehold-host` or the npm package here",
    ))
}
