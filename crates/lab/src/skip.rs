//! How a test says that it cannot run here.

use std::fs::File;
use std::io::Write;

/// Names the file that `cargo xtask test` reads the skips from.
const SKIPS: &str = "SLIPWAY_SKIPS";

/// Says why a test did not run, to whoever reads its output and to `cargo xtask test`.
///
/// A reason that begins with `not possible here:` is accepted in CI; any other is a failure there.
#[expect(
    clippy::print_stdout,
    reason = "a test that is skipped must say so on its output"
)]
pub fn skip(test: &str, reason: &str) {
    println!("SKIPPED {test}: {reason}");
    let Some(path) = std::env::var_os(SKIPS) else {
        return;
    };
    let told = File::options()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| writeln!(file, "{test}: {reason}"));
    if let Err(error) = told {
        println!(
            "could not tell {} about it: {error}",
            path.to_string_lossy()
        );
    }
}
