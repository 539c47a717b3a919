//! Passwords of databases where people keep them: `PGPASSWORD`, and the file `~/.pgpass`.

use model::secret::Secret;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// More than any file of passwords has.
const BYTES_MAX: u64 = 1 << 20;

/// The password for a database, where somebody has written it down.
pub(super) fn find(url: &str) -> Option<Secret> {
    let given = std::env::var("PGPASSWORD").ok();
    if let Some(given) = given.filter(|text| !text.is_empty()) {
        return Some(Secret::from_text(given));
    }
    let file = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let file = file.or_else(|| Some(std::env::home_dir()?.join(".pgpass")))?;
    let there = std::fs::metadata(&file).ok()?;
    // As psql does: what others can read is no place for a password.
    if !there.is_file() || there.len() > BYTES_MAX || there.mode() & 0o077 != 0 {
        return None;
    }
    let text = Secret::from(std::fs::read(file).ok()?);
    let wanted = store::Store::parts(url)?;
    look_up(text.expose_text()?, &wanted)
}

/// The password of the first line that fits: `host:port:database:user:password`, each of the first
/// four a `*` or a word in which a backslash stands before colons and backslashes.
fn look_up(text: &str, wanted: &[String; 4]) -> Option<Secret> {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((fields, password)) = fields(line) else {
            continue;
        };
        let fits = |(field, wanted): (&String, &String)| field == "*" || field == wanted;
        if fields.iter().zip(wanted).all(fits) {
            return Some(Secret::from_text(password));
        }
    }
    None
}

fn fields(line: &str) -> Option<([String; 4], String)> {
    let mut fields: Vec<String> = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let more = fields.len() < 5;
        match letter {
            '\\' => fields.last_mut()?.extend(letters.next()),
            ':' if more => fields.push(String::new()),
            other => fields.last_mut()?.push(other),
        }
    }
    let password = fields.pop()?;
    Some((fields.try_into().ok()?, password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let wanted = ["db", "5432", "octopod", "octo"].map(str::to_owned);
        let found = |text: &str| {
            let found = look_up(text, &wanted)?;
            found.expose_text().map(str::to_owned)
        };
        for (text, password) in [
            ("db:5432:octopod:octo:s3cret", Some("s3cret")),
            ("*:*:*:*:any", Some("any")),
            ("other:*:*:*:a\n*:*:octopod:octo:b:c", Some("b:c")),
            (
                "# db:5432:octopod:octo:no\ndb:5432:octopod:octo:a\\:b\\\\",
                Some("a:b\\"),
            ),
            ("db:5432:octopod", None),
            ("db:5433:octopod:octo:x", None),
            ("", None),
        ] {
            assert_eq!(found(text).as_deref(), password, "{text}");
        }
    }
}
