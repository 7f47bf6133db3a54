//! What no compiler checks: words that must not be in the project.

use std::fs;
use std::process::Command;

use crate::Outcome;
use crate::workspace::{Workspace, output};

/// Written in two pieces, since this file is checked too.
const BANNED: [(&str, &str); 9] = [
    (concat!("/wo", "rk/"), "a path of somebody's machine"),
    (concat!("/ro", "ot/"), "a path of somebody's machine"),
    (concat!("/ho", "me/"), "a path of somebody's machine"),
    (concat!("crates", ".io"), "a registry host: the project builds from any mirror"),
    (concat!("npmjs", ".org"), "a registry host: the project builds from any mirror"),
    (concat!("npmjs", ".com"), "a registry host: the project builds from any mirror"),
    (concat!("pypi", ".org"), "a registry host: the project builds from any mirror"),
    (concat!("todo", "!("), "unfinished work"),
    (concat!("unimplemented", "!("), "unfinished work"),
];

/// Cargo writes it, and names its registry in it.
const EXEMPT: [&str; 1] = ["Cargo.lock"];

/// Looks through every file that git has or would take.
pub(crate) fn banned_words(workspace: &Workspace) -> Outcome {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let files = output(git.current_dir(&workspace.root))?;
    let mut found = Vec::new();
    for file in files.split_terminator('\0').filter(|file| !EXEMPT.contains(file)) {
        // A file that git still lists may be deleted here.
        let Ok(bytes) = fs::read(workspace.root.join(file)) else { continue };
        for (number, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            for (word, what) in BANNED.iter().filter(|(word, _)| line.contains(word)) {
                found.push(format!("{file}:{}: `{word}`: {what}", number + 1));
            }
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("\n").into()) }
}
