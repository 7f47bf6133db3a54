//! Where things are kept when nobody says otherwise.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use leasehold_host::store::{self, OpenError, Store};

use crate::exit::{self, Failure};

/// An opened store, and how it was named.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) store: Arc<dyn Store>,
}

/// Opens the store that was named, or this user's own.
pub(crate) fn open(named: Option<&str>) -> Result<Place, Failure> {
    let url = match named {
        Some(url) => url.to_owned(),
        None => own_store()?,
    };
    let store = store::open(&url).map_err(|error| match error {
        OpenError::Url(_) | OpenError::Refused(_) => Failure::configuration(error),
        OpenError::Unreachable(_) => Failure::new(exit::UNREACHABLE, error),
    })?;
    Ok(Place { url, store })
}

/// One file per user and machine, in the user's state folder.
fn own_store() -> Result<String, Failure> {
    let give_one = "give a store with --store sqlite:PATH";
    let folder = folder("XDG_STATE_HOME", ".local/state").ok_or_else(|| {
        Failure::configuration(format!(
            "HOME is no absolute path, so there is no default store: {give_one}"
        ))
    })?;
    let path = folder.join("leases.db");
    let Some(url) = path.to_str() else {
        let path = path.display();
        return Err(Failure::configuration(format!("{path} is not UTF-8: {give_one}")));
    };
    std::fs::create_dir_all(&folder).map_err(|error| {
        let folder = folder.display();
        Failure::new(exit::UNREACHABLE, format!("{folder} cannot be created: {error}; {give_one}"))
    })?;
    Ok(url.to_owned())
}

/// Where compiled code is cached between runs; without a place it is compiled anew every time.
pub(crate) fn code_cache() -> Option<PathBuf> {
    let folder = match env::var_os("LEASEHOLD_CACHE") {
        Some(folder) => PathBuf::from(folder),
        None => folder("XDG_CACHE_HOME", ".cache")?,
    };
    std::fs::create_dir_all(&folder).ok()?;
    std::fs::canonicalize(folder).ok()
}

fn folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set(variable).or_else(|| Some(set("HOME")?.join(in_home)))?;
    Some(base.join("leasehold"))
}
