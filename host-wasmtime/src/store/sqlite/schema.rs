//! Which version of leasehold wrote a part of a database: one row a part in `leasehold_schema`.

use rusqlite::{Connection, OptionalExtension as _};

/// The version of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The part was never written.
    Absent,
    /// The version it was written by.
    Version(i64),
    /// Somebody put something else there.
    NoNumber,
}

impl Part {
    /// The part `name` of a database.
    pub(crate) fn of(connection: &Connection, name: &str) -> rusqlite::Result<Self> {
        if !has(connection, "leasehold_schema")? {
            return Ok(Self::Absent);
        }
        let select = "SELECT version FROM leasehold_schema WHERE part = ?";
        let version = connection.query_row(select, [name], |row| {
            Ok(row.get_ref(0)?.as_i64().map_or(Self::NoNumber, Self::Version))
        });
        Ok(version.optional()?.unwrap_or(Self::Absent))
    }

    /// Fails, in words that follow the database's name, where this code, of version `known`, must
    /// not touch the part.
    pub(crate) fn suits(self, known: i64) -> Result<(), String> {
        match self {
            Self::Absent => Ok(()),
            Self::Version(version) if version == known => Ok(()),
            Self::Version(newer) if newer > known => Err(format!(
                "was written by a newer leasehold (schema {newer}, this one knows {known}); update this program"
            )),
            Self::Version(other) => {
                Err(format!("has the impossible schema version {other}; restore leasehold_schema"))
            }
            Self::NoNumber => {
                Err("has a schema version that is no whole number; restore leasehold_schema"
                    .to_owned())
            }
        }
    }
}

/// Whether the database has anything of this name; tables, views and indexes share their names.
pub(crate) fn has(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let select = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE)";
    connection.query_row(select, [name], |row| row.get(0))
}

/// Whether nobody has put anything into the database yet.
pub(crate) fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    let select = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)";
    connection.query_row(select, [], |row| row.get(0))
}
