//! What a SQLite store knows about itself.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, MAIN_DB};

use super::advice::code;
use super::database::Database;
use super::filesystem::Disk;
use crate::store::Finding;

/// Asks this very connection, and the file system below it.
pub(super) fn inspect(database: &Database) -> Vec<Finding> {
    let Database { connection, files, disk, .. } = database;
    let mut findings = vec![
        integrity(database),
        durability(connection).unwrap_or_else(|error| {
            Finding::not_tried("durability", format!("SQLite does not tell: {error}"))
        }),
        writable(connection),
        file_system(*disk),
    ];
    findings.extend(of_the_file(files.path()));
    findings
}

fn integrity(database: &Database) -> Finding {
    const NAME: &str = "integrity";
    let advice = "restore it, or name another file; stop whoever uses it first";
    let checked =
        database.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match checked {
        Ok(ok) if ok == "ok" => Finding::holds(NAME, "SQLite finds the database whole"),
        Ok(damage) => {
            // It may take several lines.
            let damage = damage.split_whitespace().collect::<Vec<_>>().join(" ");
            Finding::broken(NAME, format!("the database is damaged: {damage}"), advice)
        }
        Err(error) if is_damage(&error) => Finding::broken(NAME, database.explain(&error), advice),
        Err(error) => Finding::not_tried(NAME, database.explain(&error)),
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(code(error), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// What a commit of this connection survives.
fn durability(connection: &Connection) -> rusqlite::Result<Finding> {
    const NAME: &str = "durability";
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let (synchronous, fullfsync) = (number("synchronous")?, number("fullfsync")?);
    let saw = format!("journal_mode {journal}, synchronous {synchronous}, fullfsync {fullfsync}");
    Ok(if journal == "wal" && synchronous >= FULL && fullfsync == 1 {
        Finding::holds(NAME, format!("every commit is synced to the disk ({saw})"))
    } else {
        let advice = "a power cut could take a term back: somebody changes the journal mode of \
                      this database; leave it at wal";
        Finding::broken(NAME, saw, advice)
    })
}

const FULL: i64 = 2;

fn writable(connection: &Connection) -> Finding {
    const NAME: &str = "writable";
    match connection.is_readonly(MAIN_DB) {
        Ok(false) => Finding::holds(NAME, "this user may write to it"),
        Ok(true) => Finding::broken(
            NAME,
            "the database is read-only for this user",
            "no lease can be taken: give write permission on it, its -wal and -shm",
        ),
        Err(error) => Finding::not_tried(NAME, format!("SQLite does not tell: {error}")),
    }
}

fn file_system(disk: Disk) -> Finding {
    const NAME: &str = "file-system";
    match disk {
        Disk::Local => Finding::holds(NAME, "the file lies on a disk of this machine"),
        Disk::Unknown => Finding::warning(
            NAME,
            "nothing tells that this file system keeps its files through a reboot (a tmpfs, such \
             as /dev/shm, does not)",
            "after the loss of the file every lease begins a new lineage, which fences that are \
             sealed refuse: keep the store on a disk",
        ),
        Disk::Shared(kind) => Finding::warning(
            NAME,
            format!("the file lies on {kind}, accepted by ?unsafe-filesystem"),
            "SQLite's locks need not hold there, so that two holders are possible: use a disk of \
             this machine",
        ),
    }
}

#[cfg(unix)]
fn of_the_file(path: &Path) -> Vec<Finding> {
    vec![unix::permissions(path), unix::space(path)]
}

#[cfg(not(unix))]
fn of_the_file(_: &Path) -> Vec<Finding> {
    let why = "this system is not asked";
    vec![Finding::not_tried("permissions", why), Finding::not_tried("space", why)]
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::io;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use rustix::fs::statvfs;

    use crate::store::Finding;

    const WRITABLE_BY_GROUP: u32 = 0o020;
    const WRITABLE_BY_ALL: u32 = 0o002;
    /// Of a folder: only its owner may remove a file.
    const STICKY: u32 = 0o1000;
    /// Far more than a log of leases, but not than what fills a disk meanwhile.
    const LITTLE_KIB: u64 = 16 * 1024;

    pub(super) fn permissions(path: &Path) -> Finding {
        const NAME: &str = "permissions";
        let mode = |path: &Path| fs::metadata(path).map(|found| found.permissions().mode());
        let modes = || -> io::Result<_> { Ok((mode(path)?, mode(path.parent().unwrap_or(path))?)) };
        let (file, folder) = match modes() {
            Ok(modes) => modes,
            Err(error) => return Finding::not_tried(NAME, error.to_string()),
        };
        let octal = file & 0o7777;
        if file & WRITABLE_BY_ALL != 0 {
            return Finding::warning(
                NAME,
                format!("every user of this machine may write to the file (mode {octal:04o})"),
                format!(
                    "each of them can take any lease, or end it: chmod o-w {}*",
                    path.display()
                ),
            );
        }
        if folder & WRITABLE_BY_ALL != 0 && folder & STICKY == 0 {
            let folder = path.parent().unwrap_or(path).display();
            return Finding::warning(
                NAME,
                format!("every user of this machine may replace the file: {folder} is open to all"),
                format!("each of them can end all leases: chmod o-w {folder}"),
            );
        }
        let who = if file & WRITABLE_BY_GROUP == 0 { "its owner" } else { "its owner and group" };
        Finding::holds(NAME, format!("only {who} may write to the file (mode {octal:04o})"))
    }

    pub(super) fn space(path: &Path) -> Finding {
        match statvfs(path) {
            Ok(disk) => free(disk.f_bavail.saturating_mul(disk.f_frsize) / 1024),
            Err(error) => Finding::not_tried("space", error.to_string()),
        }
    }

    fn free(free_kib: u64) -> Finding {
        let saw = format!("{} MiB are free on the disk", free_kib / 1024);
        if free_kib < LITTLE_KIB {
            let advice = "on a full disk no lease can be renewed, and all work is ended: free some";
            return Finding::warning("space", saw, advice);
        }
        Finding::holds("space", saw)
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::store::Outcome;

        #[test]
        fn less_than_16_mib_free_is_a_warning() {
            assert_eq!(free(16 * 1024).outcome, Outcome::Holds);
            let little = free(16 * 1024 - 1);
            assert_eq!(little.outcome, Outcome::Warning);
            assert_eq!(little.saw, "15 MiB are free on the disk");
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::OpenFlags;

    use super::*;
    use crate::store::Outcome;

    #[test]
    fn a_connection_whose_commits_a_power_cut_takes_back_is_broken() {
        let directory = tempfile::tempdir().unwrap();
        let connection = Connection::open(directory.path().join("leases.db")).unwrap();
        let outcome = |settings: &str| {
            connection.execute_batch(settings).unwrap();
            durability(&connection).unwrap().outcome
        };
        let sound = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = 1;";
        assert_eq!(outcome(sound), Outcome::Holds);
        for weak in ["synchronous = NORMAL", "fullfsync = 0", "journal_mode = DELETE"] {
            assert_eq!(outcome(&format!("{sound} PRAGMA {weak}")), Outcome::Broken, "{weak}");
        }
        assert_eq!(outcome(&format!("{sound} PRAGMA synchronous = EXTRA")), Outcome::Holds);
    }

    #[test]
    fn a_connection_that_cannot_write_is_broken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE t (x)").unwrap();
        assert_eq!(writable(&connection).outcome, Outcome::Holds);
        let reader = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        assert_eq!(writable(&reader).outcome, Outcome::Broken);
    }

    #[test]
    fn a_shared_file_system_that_was_accepted_is_a_warning() {
        let shared = file_system(Disk::Shared("NFS"));
        assert_eq!(shared.outcome, Outcome::Warning);
        assert_eq!(shared.saw, "the file lies on NFS, accepted by ?unsafe-filesystem");
    }
}
