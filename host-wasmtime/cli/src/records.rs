//! Leases' records as a store has them.

use std::time::Duration;

use leasehold_core::label::Name;
use leasehold_core::record::{self, LeaseRecord};
use leasehold_core::token::Token;
use leasehold_host::store::{List, Read};

use crate::exit::{self, Failure};
use crate::places::{self, Place};

/// What stands under a lease's key.
pub(crate) enum Found {
    Absent,
    Entry { value: Vec<u8>, age: Age },
}

/// How long it has stood there, as the store tells.
#[derive(Clone, Copy)]
pub(crate) enum Age {
    Unknown,
    Known(Duration),
    /// Whoever wrote it is dead: its machine has rebooted.
    EarlierBoot,
}

impl Age {
    fn of(age_ns: Option<u64>) -> Self {
        match age_ns {
            None => Self::Unknown,
            Some(u64::MAX) => Self::EarlierBoot,
            Some(age_ns) => Self::Known(Duration::from_nanos(age_ns)),
        }
    }

    pub(crate) fn known(self) -> Option<Duration> {
        match self {
            Self::Known(age) => Some(age),
            Self::Unknown | Self::EarlierBoot => None,
        }
    }
}

impl Found {
    pub(crate) fn decoded(&self, name: &str) -> Result<(LeaseRecord<'_>, Age), String> {
        match self {
            Self::Absent => Err("the record was deleted while it was listed".to_owned()),
            Self::Entry { value, age } => match record::decode_named(name, value) {
                Ok(record) => Ok((record, *age)),
                Err(fault) => Err(fault.to_string()),
            },
        }
    }
}

pub(crate) async fn read(place: &Place, name: &str) -> Result<Found, Failure> {
    match place.store.read(&format!("lease/{name}")).await {
        Read::Absent => Ok(Found::Absent),
        Read::Entry { value, age_ns, .. } => Ok(Found::Entry { value, age: Age::of(age_ns) }),
        Read::Unavailable(why) | Read::Unknown(why) => Err(Failure::new(exit::UNREACHABLE, why)),
        Read::Gone(why) => Err(Failure::configuration(why)),
    }
}

pub(crate) async fn read_all(place: &Place) -> Result<Vec<(String, Found)>, Failure> {
    let keys = match place.store.list("lease/").await {
        List::Keys(keys) => keys,
        List::Unsupported => {
            return Err(Failure::configuration(format!(
                "{} cannot list its leases: give the name of one",
                place.url
            )));
        }
        List::Unavailable(why) => return Err(Failure::new(exit::UNREACHABLE, why)),
        List::Gone(why) => return Err(Failure::configuration(why)),
    };
    let mut all = Vec::new();
    for name in keys.iter().filter_map(|key| key.strip_prefix("lease/")) {
        all.push((name.to_owned(), read(place, name).await?));
    }
    Ok(all)
}

/// The token in the record of `name`, as it is now.
pub(crate) fn current(named: Option<&str>, name: &str) -> Result<Token, Failure> {
    Name::chosen(name).map_err(Failure::configuration)?;
    let url = places::url(named)?;
    let never = || {
        Failure::new(
            exit::REFUSED,
            format!(
                "{name}: there is no record in {url}: check the name and --store; if it was lost, \
                 put it back with `leasehold init`"
            ),
        )
    };
    let place = places::find(named)?.ok_or_else(never)?;
    match block_on(read(&place, name))?? {
        Found::Absent => Err(never()),
        Found::Entry { value, .. } => Ok(decode(name, &value, &url)?.token),
    }
}

/// Only what leasehold wrote is a record.
pub(crate) fn decode<'a>(
    name: &str,
    value: &'a [u8],
    store: &str,
) -> Result<LeaseRecord<'a>, Failure> {
    record::decode_named(name, value)
        .map_err(|fault| Failure::configuration(format!("lease/{name} in {store}: {fault}")))
}

/// A store answers through the runtime of whoever asks.
pub(crate) fn block_on<T>(answer: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(exit::UNREACHABLE, error))?;
    Ok(runtime.block_on(answer))
}
