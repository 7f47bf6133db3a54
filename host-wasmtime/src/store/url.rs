//! What a person may type for a store, and what it means.

use std::path::{self, PathBuf};

use super::OpenError;
use super::sqlite::Options;

/// The file that a URL names, and how to open it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) path: PathBuf,
    pub(super) options: Options,
}

/// With a scheme it is a URL: `%XX` is decoded, `?` begins the options. What starts with `/`, `./`
/// or `../` is a path, taken literally. Nothing else is guessed.
pub(super) fn parse(url: &str) -> Result<Location, OpenError> {
    if is_path(url) {
        return Ok(Location { path: PathBuf::from(url), options: Options::default() });
    }
    match url.split_once(':') {
        Some(("sqlite", rest)) => sqlite(rest),
        Some(("memory", _)) => bad(
            "memory: is no place for a lease: no other process sees it; use sqlite:PATH (in tests, Memory::new())",
        ),
        Some((scheme, _)) => bad(format!(
            "the store scheme {scheme:?} is unknown to this build; use sqlite:PATH (a path of its own starts with / or ./)"
        )),
        None if url.is_empty() => bad("the store is empty; use sqlite:PATH or ./PATH"),
        None => bad(format!(
            "the store {url:?} names no scheme; for a file write ./{url} or sqlite:{url}"
        )),
    }
}

/// The same location by a name that holds in every working directory.
pub(super) fn absolute(url: &str) -> Result<String, OpenError> {
    let Location { path, options } = parse(url)?;
    if path.is_absolute() {
        return Ok(url.to_owned());
    }
    let absolute = path::absolute(&path).map_err(|error| {
        OpenError::Unreachable(format!(
            "{url} cannot be found from the working directory: {error}; name the store by its whole path"
        ))
    })?;
    let Some(path) = absolute.to_str() else {
        return bad(format!(
            "{url} lies in {}, whose name is not UTF-8, and the name of a store is; work in another directory",
            absolute.display()
        ));
    };
    if is_path(url) && is_path(path) {
        return Ok(path.to_owned());
    }
    let host = if path.starts_with('/') { "//" } else { "" };
    // A URL is not the place to give up the disk's word.
    let Options { busy: _, unsafe_filesystem, unsafe_no_sync: _ } = options;
    let query = if unsafe_filesystem { "?unsafe-filesystem" } else { "" };
    Ok(format!("sqlite:{host}{}{query}", percent_encoded(path)))
}

/// Whether it is taken literally.
fn is_path(url: &str) -> bool {
    ["/", "./", "../"].iter().any(|start| url.starts_with(start))
}

fn sqlite(rest: &str) -> Result<Location, OpenError> {
    if rest.contains('#') {
        return bad(format!(
            "sqlite:{rest} has a #, and a store has no parts; for a # in a file's name write %23"
        ));
    }
    let (path, query) =
        rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    let path = match path.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => {
            return bad(format!(
                "sqlite:{path} names a host, and SQLite has none; write sqlite:///ABSOLUTE/PATH or sqlite:PATH"
            ));
        }
        None => path,
    };
    let path = percent_decoded(path)?;
    match path.as_str() {
        "" => bad("sqlite: names no file; use sqlite:PATH"),
        ":memory:" => {
            bad("sqlite::memory: is no place for a lease: no other process sees it; name a file")
        }
        _ => Ok(Location { path: PathBuf::from(path), options: options(query)? }),
    }
}

fn options(query: Option<&str>) -> Result<Options, OpenError> {
    let mut options = Options::default();
    for option in query.into_iter().flat_map(|query| query.split('&')) {
        match option {
            "unsafe-filesystem" => options.unsafe_filesystem = true,
            _ => {
                return bad(format!(
                    "the option {option:?} of a sqlite: store is unknown; there is ?unsafe-filesystem, without a value \
                     (for a ? in a file's name write %3F)"
                ));
            }
        }
    }
    Ok(options)
}

fn percent_decoded(text: &str) -> Result<String, OpenError> {
    let mut parts = text.split('%');
    let mut bytes = Vec::from(parts.next().unwrap_or_default());
    for part in parts {
        let byte = part.get(..2).filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match byte.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(0) => return bad(format!("{text:?} holds %00, which no path may")),
            Some(byte) => bytes.push(byte),
            None => {
                return bad(format!(
                    "{text:?} holds a % that is no %XX; for a percent sign write %25"
                ));
            }
        }
        bytes.extend(part.bytes().skip(2));
    }
    String::from_utf8(bytes)
        .or_else(|_| bad(format!("{text:?} is not UTF-8 once its %XX are decoded")))
}

/// The opposite, for what would not be read as part of a path.
fn percent_encoded(path: &str) -> String {
    path.replace('%', "%25").replace('?', "%3F").replace('#', "%23")
}

fn bad<T>(why: impl Into<String>) -> Result<T, OpenError> {
    Err(OpenError::Url(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(url: &str) -> String {
        parse(url).unwrap().path.to_str().unwrap().to_owned()
    }

    fn refusal(url: &str) -> String {
        match parse(url).unwrap_err() {
            OpenError::Url(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_sqlite_url_names_a_relative_or_an_absolute_path() {
        assert_eq!(path("sqlite:leases.db"), "leases.db");
        assert_eq!(path("sqlite:./a/leases.db"), "./a/leases.db");
        assert_eq!(path("sqlite:/var/lib/leases.db"), "/var/lib/leases.db");
        assert_eq!(path("sqlite:///var/lib/leases.db"), "/var/lib/leases.db");
    }

    #[test]
    fn a_url_is_percent_decoded_and_a_path_is_not() {
        assert_eq!(path("sqlite:a%20b%3F%23%25%c3%a9.db"), "a b?#%é.db");
        assert_eq!(path("./a%20b?#.db"), "./a%20b?#.db");
    }

    #[test]
    fn the_one_option_is_read() {
        assert!(parse("sqlite:a.db?unsafe-filesystem").unwrap().options.unsafe_filesystem);
        assert!(!parse("sqlite:a.db").unwrap().options.unsafe_filesystem);
    }

    #[test]
    fn whatever_names_no_store_is_refused_with_the_remedy() {
        for (url, remedy) in [
            ("", "use sqlite:PATH"),
            ("leases.db", "write ./leases.db or sqlite:leases.db"),
            ("memory:", "no other process sees it"),
            ("sqlite::memory:", "no other process sees it"),
            ("postgres://db/ops", "\"postgres\" is unknown"),
            ("C:\\leases.db", "\"C\" is unknown"),
            ("sqlite:", "names no file"),
            ("sqlite:?unsafe-filesystem", "names no file"),
            ("sqlite://host/leases.db", "names a host"),
            ("sqlite:a.db?", "\"\" of a sqlite: store is unknown"),
            ("sqlite:a.db?mode=ro", "\"mode=ro\" of a sqlite: store is unknown"),
            ("sqlite:a.db?unsafe-filesystem=1", "without a value"),
            ("sqlite:a.db#payments", "write %23"),
            ("sqlite:100%.db", "write %25"),
            ("sqlite:a%+1.db", "write %25"),
            ("sqlite:a%é.db", "write %25"),
            ("sqlite:a%00.db", "which no path may"),
            ("sqlite:a%ff.db", "not UTF-8"),
        ] {
            assert!(refusal(url).contains(remedy), "{url}: {}", refusal(url));
        }
    }

    #[test]
    fn an_absolute_name_means_the_same_in_every_directory() {
        let odd = "% ? # & %41 %3F + ~ ' \" \\ é \n : //b/./c/../d.db";
        let mut names = vec![odd.to_owned(), "a.db".to_owned(), "..".to_owned(), "...".to_owned()];
        names.extend((1..=0x7F_u8).map(|byte| format!("a{}b", char::from(byte))));
        for name in names {
            let urls = ["", "?unsafe-filesystem"].into_iter().flat_map(|options| {
                ["sqlite:", "sqlite:./", "sqlite:/x/", "sqlite:///", "sqlite:////"]
                    .map(|start| format!("{start}{}{options}", percent_encoded(&name)))
            });
            let paths = ["./", "../", "/", "//", "/x/../"].map(|start| format!("{start}{name}"));
            for url in urls.chain(paths) {
                let (here, everywhere) = (parse(&url).unwrap(), absolute(&url).unwrap());
                let again = parse(&everywhere).unwrap();
                assert!(again.path.is_absolute(), "{url:?}: {everywhere:?}");
                assert_eq!(again.path, path::absolute(&here.path).unwrap(), "{everywhere:?}");
                assert_eq!(again.options, here.options, "{url:?}");
                assert_eq!(is_path(&everywhere), is_path(&url), "{url:?}");
                assert_eq!(absolute(&everywhere).unwrap(), everywhere);
            }
        }
        assert!(matches!(absolute("leases.db"), Err(OpenError::Url(_))));
    }
}
