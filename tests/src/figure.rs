//! What a benchmark says, for `cargo xtask bench` to read.

/// Prints one measured figure as a line of four words: its name, its unit, how many units, and how
/// many of what it is compared with, `-` where that is nothing.
pub fn print(name: &str, unit: &str, ours: u64, beside: Option<u64>) {
    let beside = beside.map_or_else(|| "-".to_owned(), |beside| beside.to_string());
    println!("{name} {unit} {ours} {beside}");
}
