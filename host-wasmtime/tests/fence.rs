//! What the host says of a fence that it must not or cannot work on.
#![cfg(target_os = "linux")]

mod store_support;

use std::fs;
use std::path::PathBuf;

use leasehold_core::fence::{self, Advance, FenceRow};
use leasehold_core::token::Token;
use leasehold_host::fence::{FenceError, Resource};
use store_support::{by_hand, directory};
use tempfile::TempDir;

#[test]
fn a_name_that_cannot_be_named_again_is_refused() {
    for name in ["a#b", "#", "a\nb", "a\0b", "\u{7f}", "\u{85}"] {
        let error = Resource::new("./payments.db", name).unwrap_err();
        assert!(matches!(&error, FenceError::Misuse(why) if why.contains("without #")), "{error}");
    }
    let resource = Resource::new("./pay#ments.db", "zahlungen: äöü / 7").unwrap();
    assert_eq!(Resource::parse(&resource.to_string()), Ok(resource));
}

#[test]
fn a_newer_fence_is_left_to_a_newer_program() {
    let (_directory, path, resource) = fenced();
    by_hand(&path)
        .execute_batch("UPDATE leasehold_schema SET version = 2 WHERE part = 'fence'")
        .unwrap();
    assert_misuse(&resource, "written by a newer leasehold (schema 2, this one knows 1); update");
}

#[test]
fn an_impossible_version_of_the_fence_is_refused() {
    let (_directory, path, resource) = fenced();
    for version in ["'one'", "NULL", "0"] {
        by_hand(&path)
            .execute_batch(&format!(
                "DROP TABLE leasehold_schema; CREATE TABLE leasehold_schema (part PRIMARY KEY, version);
                 INSERT INTO leasehold_schema VALUES ('fence', {version})"
            ))
            .unwrap();
        assert_misuse(&resource, "restore leasehold_schema");
    }
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let (_directory, path, resource) = unfenced();
    let text = b"name,term\n".repeat(100);
    fs::write(&path, &text).unwrap();
    assert_misuse(&resource, "is no SQLite database, and was left as it is; name another file");
    assert_eq!(fs::read(&path).unwrap(), text);
}

#[test]
fn tables_that_are_not_a_fences_are_refused() {
    let (_directory, path, resource) = unfenced();
    by_hand(&path)
        .execute_batch(
            "CREATE TABLE leasehold_schema (x); CREATE VIEW leasehold_floor AS SELECT 1 AS x",
        )
        .unwrap();
    assert_misuse(&resource, "has tables that are not as leasehold makes them");
}

#[test]
fn a_database_with_a_second_name_is_refused() {
    let (directory, path, resource) = fenced();
    fs::hard_link(&path, directory.path().join("second.db")).unwrap();
    assert_misuse(&resource, "has a second name (hard link)");
}

#[test]
fn a_locked_database_is_named_with_the_remedy() {
    let (_directory, path, resource) = fenced();
    let other = by_hand(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = resource.seal(token(), false).unwrap_err();
    assert!(
        matches!(&error, FenceError::Database(why)
            if why.contains("stayed locked by another connection for 2000 ms; end the long")),
        "{error}"
    );
}

#[test]
fn a_read_only_database_is_named_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt;
    store_support::respect_permissions();
    let (_directory, path, resource) = fenced();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let advice = "give this user write permission";
    for error in [resource.init().unwrap_err(), resource.seal(token(), false).unwrap_err()] {
        assert!(matches!(&error, FenceError::Database(why) if why.contains(advice)), "{error}");
    }
    assert_eq!(resource.state().unwrap().unwrap().floor, 0);
}

/// The verbs that move the floor give the core's verdicts, and leave what the core leaves.
#[test]
fn what_the_database_decides_is_what_the_core_decides() {
    let texts = ["a/1/b", "a/3/b", "a/3/c", "a/5/b", "a/2000000/b", "d/3/b"];
    let tokens = texts.map(|text| {
        let mut parts = text.split('/');
        let mut part = |digits| parts.next().unwrap().repeat(digits);
        format!("{}/{}/{}", part(32), part(1), part(16)).parse::<Token>().unwrap()
    });
    let sealed =
        FenceRow { lineage: tokens[1].lineage, nonce: tokens[1].nonce, floor: 3, ..FenceRow::NEW };
    let rows =
        [None, Some(FenceRow::NEW), Some(sealed), Some(FenceRow { retired: true, ..sealed })];
    let (_directory, path, resource) = fenced();
    let put = |row: Option<FenceRow>| {
        by_hand(&path).execute_batch("DELETE FROM leasehold_fence").unwrap();
        let Some(FenceRow { lineage, floor, nonce, retired, seq }) = row else { return };
        let (lineage, nonce) = match floor {
            0 => (String::new(), String::new()),
            _ => (lineage.to_string(), nonce.to_string()),
        };
        by_hand(&path)
            .execute(
                "INSERT INTO leasehold_fence VALUES ('payments', ?, ?, ?, ?, ?)",
                (lineage, floor.cast_signed(), nonce, retired, seq.cast_signed()),
            )
            .unwrap();
    };
    for row in rows {
        for token in tokens {
            let left = |next: Option<FenceRow>| next.or(row).map(|row| (row.floor, row.retired));
            let kept = || resource.state().unwrap().map(|state| (state.floor, state.retired));
            let advance = Advance::default();
            put(row);
            let (verdict, next) = fence::seal(row.as_ref(), token, advance);
            assert_eq!((resource.seal(token, false), kept()), (Ok(verdict), left(next)));
            put(row);
            let (verdict, next) = fence::recover(row.as_ref(), token);
            assert_eq!((resource.recover(token), kept()), (Ok(verdict), left(next)));
            put(row);
            let (verdict, next) = fence::adopt(row.as_ref(), token);
            let before = row.filter(|row| row.floor > 0).map(|_| tokens[1]);
            assert_eq!((resource.adopt(token), kept()), (Ok((verdict, before)), left(next)));
            put(row);
            let (verdict, next) = fence::retire(row.as_ref(), token);
            assert_eq!((resource.retire(token), kept()), (Ok(verdict), left(next)));
        }
    }
}

/// Neither created nor changed nor looked at.
fn assert_misuse(resource: &Resource, expected: &str) {
    let errors = [
        resource.init().unwrap_err(),
        resource.seal(token(), false).unwrap_err(),
        resource.recover(token()).unwrap_err(),
        resource.adopt(token()).unwrap_err(),
        resource.retire(token()).unwrap_err(),
        resource.state().unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(&error, FenceError::Misuse(why) if why.contains(expected)), "{error:?}");
    }
}

fn fenced() -> (TempDir, PathBuf, Resource) {
    let (directory, path, resource) = unfenced();
    assert!(resource.init().unwrap());
    (directory, path, resource)
}

fn unfenced() -> (TempDir, PathBuf, Resource) {
    let directory = directory();
    let path = directory.path().join("payments.db");
    fs::write(&path, b"").unwrap();
    let resource = Resource::new(path.to_str().unwrap(), "payments").unwrap();
    (directory, path, resource)
}

fn token() -> Token {
    format!("{}/1/{}", "a".repeat(32), "b".repeat(16)).parse().unwrap()
}
