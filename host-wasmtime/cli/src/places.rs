//! Where things are kept when nobody says otherwise.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold_host::store::{self, Found, OpenError, Store};

use crate::exit::{self, Failure};

/// An opened store.
pub(crate) struct Place {
    /// Its name as it was given, for people.
    pub(crate) url: String,
    /// Its name from every working directory, for the command.
    pub(crate) absolute: String,
    pub(crate) store: Arc<dyn Store>,
}

/// Opens the store that was named, or this user's own, and creates it if it is not there yet.
pub(crate) fn open(named: Option<&str>) -> Result<Place, Failure> {
    let url = url(named)?;
    if named.is_none() {
        create_folder(&url)?;
    }
    let absolute = store::absolute(&url).map_err(failure)?;
    let store = store::open(&url).map_err(failure)?;
    Ok(Place { url, absolute, store })
}

/// Opens the store that was named, or this user's own, if it is there; a question creates nothing.
pub(crate) fn find(named: Option<&str>) -> Result<Option<Place>, Failure> {
    if exists(named)? { open(named).map(Some) } else { Ok(None) }
}

/// Whether the store that was named, or this user's own, is there; nothing is created.
pub(crate) fn exists(named: Option<&str>) -> Result<bool, Failure> {
    let url = url(named)?;
    // This user's own has no folder either before its first use.
    if named.is_none() && !Path::new(&url).exists() {
        return Ok(false);
    }
    Ok(store::find(&url).map_err(failure)? == Found::Store)
}

/// The name of a store: as it was given, or of the one file that each user has on a machine.
pub(crate) fn url(named: Option<&str>) -> Result<String, Failure> {
    if let Some(url) = named {
        return Ok(url.to_owned());
    }
    let folder = folder("XDG_STATE_HOME", ".local/state").ok_or_else(|| {
        Failure::configuration(format!(
            "HOME is no absolute path, so there is no default store: {GIVE_ONE}"
        ))
    })?;
    let path = folder.join("leases.db");
    let url = path.to_str().ok_or_else(|| {
        Failure::configuration(format!("{} is not UTF-8: {GIVE_ONE}", path.display()))
    })?;
    Ok(url.to_owned())
}

const GIVE_ONE: &str = "give a store with --store sqlite:PATH";

pub(crate) fn create_folder(file: &str) -> Result<(), Failure> {
    let folder = Path::new(file).parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(|error| {
        let folder = folder.display();
        Failure::new(exit::UNREACHABLE, format!("{folder} cannot be created: {error}; {GIVE_ONE}"))
    })
}

fn failure(error: OpenError) -> Failure {
    match error {
        OpenError::Url(_) | OpenError::Refused(_) => Failure::configuration(error),
        OpenError::Missing(_) | OpenError::Unreachable(_) => Failure::new(exit::UNREACHABLE, error),
    }
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
