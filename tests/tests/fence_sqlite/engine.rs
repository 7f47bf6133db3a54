//! Three programs that run statements.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use rusqlite::{Connection, params_from_iter};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::database::{error_message, open};
use crate::statement::Statement;

/// The first column of the first row, or the error's message.
pub(crate) type Answer = Result<Option<String>, String>;

/// Runs statements on a database, each in a transaction of its own.
pub(crate) type Engine = fn(&Path, &[Statement]) -> Vec<Answer>;

pub(crate) fn in_rusqlite(database: &Path, script: &[Statement]) -> Vec<Answer> {
    let connection = open(database);
    script.iter().map(|statement| execute(&connection, statement)).collect()
}

pub(crate) fn execute(connection: &Connection, statement: &Statement) -> Answer {
    let mut prepared = connection.prepare(statement.sql).map_err(|error| error.to_string())?;
    let arguments = statement.arguments.iter().map(|argument| match argument {
        Value::Null => rusqlite::types::Value::Null,
        Value::Number(number) => number.as_i64().map_or_else(
            || rusqlite::types::Value::Real(number.as_f64().expect("a number")),
            Into::into,
        ),
        Value::String(text) => rusqlite::types::Value::Text(text.clone()),
        other => panic!("no SQL value: {other}"),
    });
    let mut rows =
        prepared.query(params_from_iter(arguments)).map_err(|error| error_message(&error))?;
    let row = rows.next().map_err(|error| error_message(&error))?;
    Ok(row.map(|row| row.get(0).expect("a text")))
}

/// One statement a line: the shell names the line of an error, and gives each SELECT one line.
pub(crate) fn in_shell(database: &Path, script: &[Statement]) -> Vec<Answer> {
    let lines: Vec<_> = script.iter().map(literal).collect();
    assert!(lines.iter().all(|line| !line.contains('\n')));
    let output = shell(database, &[], &lines.join("\n"));
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    let mut errors: BTreeMap<usize, String> = errors
        .lines()
        .map(|error| {
            let place_and_text =
                error.split_once("near line ").and_then(|(_, rest)| rest.split_once(": "));
            let (line, text) = place_and_text.unwrap_or_else(|| panic!("the shell says: {error}"));
            let text = text.rsplit_once(" (").map_or(text, |(text, _code)| text);
            (line.parse().expect("a line number"), text.to_owned())
        })
        .collect();
    let rows = String::from_utf8(output.stdout).expect("UTF-8");
    let mut rows = rows.lines().map(str::to_owned);
    let answers =
        script.iter().enumerate().map(|(number, statement)| match errors.remove(&(number + 1)) {
            Some(error) => Err(error),
            None if statement.sql.starts_with("SELECT") => Ok(rows.next()),
            None => Ok(None),
        });
    answers.collect()
}

/// The statement with its arguments written out, as a shell script has to.
fn literal(statement: &Statement) -> String {
    let arguments: Vec<_> = statement
        .arguments
        .iter()
        .map(|argument| match argument {
            Value::Null => "NULL".to_owned(),
            Value::String(text) => format!(
                "'{}'",
                text.replace('\'', "''")
                    .replace('\0', "'||char(0)||'")
                    .replace('\n', "'||char(10)||'")
            ),
            other => other.to_string(),
        })
        .collect();
    let mut sql = String::new();
    let mut next = arguments.iter();
    for (number, part) in statement.sql.split('?').enumerate() {
        if number == 0 {
            sql.push_str(part);
        } else if let Some(rest) = part.strip_prefix('1') {
            sql.extend([&arguments[0], rest]);
        } else {
            sql.extend([next.next().expect("an argument"), part]);
        }
    }
    sql + ";"
}

/// The arguments are bound, as a program should.
pub(crate) fn in_python(database: &Path, script: &[Statement]) -> Vec<Answer> {
    const CODE: &str = "
import json, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in sys.stdin:
    sql, arguments = json.loads(line)
    try:
        row = database.execute(sql, arguments).fetchone()
        print(json.dumps({'row': row and row[0]}))
    except sqlite3.Error as error:
        print(json.dumps({'error': str(error)}))
";
    let lines: Vec<_> = script
        .iter()
        .map(|statement| json!([statement.sql, statement.arguments]).to_string())
        .collect();
    let output =
        program("python3", &["-c", CODE, database.to_str().expect("UTF-8")], &lines.join("\n"));
    success(&output);
    let answers = String::from_utf8(output.stdout).expect("UTF-8");
    let answers = answers.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).expect("JSON");
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["row"].as_str().map(str::to_owned)),
        }
    });
    answers.collect()
}

pub(crate) fn shell(database: &Path, options: &[&str], script: &str) -> Output {
    // Without a start file: a developer's own settings must not decide a test.
    let start = ["-batch", "-init", "/dev/null"];
    program("sqlite3", &[&start, options, &[database.to_str().expect("UTF-8")]].concat(), script)
}

pub(crate) fn program(name: &str, arguments: &[&str], input: &str) -> Output {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("input");
    File::create(&path)
        .and_then(|mut file| file.write_all(input.as_bytes()))
        .expect("the input is written");
    Command::new(name)
        .args(arguments)
        .stdin(File::open(&path).expect("the input"))
        .output()
        .unwrap_or_else(|error| panic!("{name} does not start ({error}): apt-get install {name}"))
}

pub(crate) fn success(output: &Output) {
    assert!(output.status.success(), "{}", message(output));
}

pub(crate) fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
