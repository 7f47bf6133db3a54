//! Labels for those who give none, with what a label cannot hold replaced.

use std::env;

/// HOST:PID.
pub(crate) fn this_process() -> String {
    format!("{}:{}", host(), std::process::id())
}

/// USER@HOST.
pub(crate) fn this_user() -> String {
    let user = ["USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok());
    #[cfg(unix)]
    let user = user.unwrap_or_else(|| format!("uid{}", rustix::process::getuid().as_raw()));
    #[cfg(not(unix))]
    let user = user.unwrap_or_else(|| "somebody".to_owned());
    format!("{}@{}", fit(&user), host())
}

fn host() -> String {
    #[cfg(unix)]
    let host = fit(&rustix::system::uname().nodename().to_string_lossy());
    #[cfg(not(unix))]
    let host = "localhost".to_owned();
    host
}

/// Short enough for a label to have two of it.
fn fit(text: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "._-".contains(*letter);
    text.chars().map(|letter| if is_plain(&letter) { letter } else { '-' }).take(60).collect()
}

#[cfg(test)]
mod tests {
    use leasehold_core::label::Label;

    use super::*;

    #[test]
    fn what_a_label_cannot_hold_is_replaced() {
        assert_eq!(fit("J\u{f6}rg Example"), "J-rg-Example");
        assert_eq!(fit(&"x".repeat(200)).len(), 60);
        for label in [this_process(), this_user()] {
            Label::new(&label).unwrap();
        }
    }
}
