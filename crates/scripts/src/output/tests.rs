//! What scripts print, good and bad, and any bytes at all.

use super::*;
use proptest::prelude::*;

fn settings(printed: &str) -> String {
    match defaults(printed.as_bytes()) {
        Ok(told) => {
            let told = told.iter();
            let each = told.map(|(key, value)| format!("{key}={:?}", value.as_str()));
            each.collect::<Vec<_>>().join(" ")
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn settings_are_csv() {
    assert_eq!(
        settings("ingress.enabled,true\nimage.tag,\n\"motd\",\"hello, \"\"world\"\"\"\n"),
        r#"ingress.enabled="true" image.tag="" motd="hello, \"world\"""#
    );
    assert_eq!(
        settings("\r\n a . b ,1\r\n\r\n  \r\n\"c\",\"x\r\ny\"\r\nd,4"),
        r#"a.b="1" c="x\r\ny" d="4""#
    );
    assert_eq!(settings("a,1\na,2\n"), r#"a="1""#);
    assert_eq!(settings("\u{feff}a,1\n"), r#"a="1""#);
    assert_eq!(settings(""), "");
    assert_eq!(settings("a,\"\""), r#"a="""#);
}

#[test]
fn what_is_wrong_with_settings_is_told_with_its_place() {
    for (printed, why) in [
        (
            "a,1\nb\n",
            "line 2, column 1: one column, and there should be two: a name, a comma, and the rest",
        ),
        (
            "a,1,2\n",
            "line 1, column 1: 3 columns, and there should be two; what has a comma in it stands in double quotes",
        ),
        (
            "a,1\nb,\"x\n\ny",
            "line 2, column 3: a quote that is never closed",
        ),
        (
            "a,b\"c\n",
            "line 1, column 4: a quote within a field that does not begin with one",
        ),
        (
            "a,\"b\"c\n",
            "line 1, column 6: more text after a closing quote",
        ),
        ("a,1\n..,2\n", "line 2, column 1: key is empty"),
        (
            "a=b,2\n",
            "line 1, column 1: key `ab` has '=', which keys cannot have",
        ),
        (
            "a,x\0y\n",
            "line 1, column 3: value has a NUL at position 1, which no program can be given",
        ),
    ] {
        assert_eq!(settings(printed), why);
    }
    let error = defaults(b"a,1\nb,\xff\n").unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 3: not UTF-8");
    let flood = vec![b'x'; BYTES_MAX + 1];
    let error = defaults(&flood).unwrap_err();
    assert!(error.why.starts_with("more than 4194304 bytes"), "{error}");
    let many = "a,1\n".repeat(ROWS_MAX + 1);
    assert_eq!(
        settings(&many),
        "line 50001, column 1: more than 50000 rows"
    );
}

#[test]
fn keys_are_lines() {
    let read = |printed: &str| keys(printed.as_bytes());
    assert_eq!(
        read("a.b\n\n\"c\",d\r\na.b\n e").unwrap(),
        ["a.b", "\"c\",d", "e"]
    );
    assert_eq!(read("a\nb=c\n").unwrap_err().line, 2);
}

#[test]
fn links_have_a_name_and_an_address() {
    let read = |printed: &str| links(printed.as_bytes());
    let found = read("app,https://orange.example\n,\"https://a.example/?q=1,2\"\n").unwrap();
    let found: Vec<_> = found.iter().map(|link| (&*link.name, &*link.url)).collect();
    assert_eq!(
        found,
        [
            ("app", "https://orange.example"),
            ("", "https://a.example/?q=1,2")
        ]
    );
    for bad in ["app,\n", "a,JavaScript:alert(1)\n", "a,\"b\nc\"\n", "a\n"] {
        assert!(read(bad).is_err(), "{bad}");
    }
    assert!(read(&"a,b\n".repeat(LINKS_MAX + 1)).is_err());
}

#[test]
fn logs_are_legible_whatever_was_printed() {
    assert_eq!(legible(b"a\0b\xffc"), "a\u{fffd}b\u{fffd}c");
}

#[test]
fn secrets_are_taken_out() {
    let redactor = Redactor::new(["sword".to_owned(), "swordfish".to_owned()]);
    assert_eq!(redactor.clean("a swordfish, a sword"), "a ***, a ***");
    let key = "-----BEGIN KEY-----\nabcdefgh\nij\n-----END KEY-----\n".to_owned();
    let redactor = Redactor::new([key, String::new(), "x".to_owned()]);
    assert_eq!(redactor.clean("  abcdefgh\\n"), "  ***\\n");
    assert_eq!(redactor.clean("ij"), "***");
    assert_eq!(redactor.clean("x=1"), "***=1");
}

#[test]
fn short_lines_of_secrets_are_taken_out() {
    let redactor = Redactor::new(["abc\ndef\n".to_owned()]);
    assert_eq!(redactor.clean("abc\ndef"), "***\n***");
    assert_eq!(redactor.clean("-pabc def"), "-p*** ***");
    // Beside longer ones they are, where they are no part of another word.
    let redactor = Redactor::new(["{\n\"user\": \"ana\",\npw\n}".to_owned()]);
    assert_eq!(redactor.clean("pw"), "***");
    assert_eq!(redactor.clean("{pw=pw}"), "{***=***}");
    assert_eq!(redactor.clean("pwd, npw, {}"), "pwd, npw, {}");
}

#[test]
fn what_a_cut_leaves_of_a_secret_is_taken_out() {
    let redactor = Redactor::new(["swordfish".to_owned(), "größe".to_owned()]);
    assert_eq!(redactor.before_cut("a swordfis"), "a ");
    assert_eq!(redactor.before_cut("a gr\u{fffd}"), "a ");
    assert_eq!(redactor.before_cut("a fish"), "a fish");
    assert_eq!(redactor.after_cut("wordfish b"), " b");
    assert_eq!(redactor.after_cut("\u{fffd}ße b"), " b");
    assert_eq!(redactor.after_cut("a fish"), "a fish");
    assert_eq!(Redactor::default().before_cut("all of it"), "all of it");
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(printed in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(defaults(&printed));
        drop(keys(&printed));
        drop(links(&printed));
        prop_assert!(!legible(&printed).contains('\0'));
    }

    #[test]
    fn what_looks_like_csv_makes_no_reader_panic(printed in "[a.\",=\r\n ]{0,60}") {
        if let Ok(told) = defaults(printed.as_bytes()) {
            prop_assert!(told.iter().count() <= printed.lines().count());
        }
        drop(links(printed.as_bytes()));
    }

    #[test]
    fn what_is_written_as_csv_is_read_again(rows in proptest::collection::btree_map("[a-z]{1,8}(\\.[a-z_-]{1,8}){0,3}", "[^\0]{0,20}", 0..20)) {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let printed: String = rows.iter().map(|(key, value)| format!("{},{}\r\n", quoted(key), quoted(value))).collect();
        let told = defaults(printed.as_bytes()).unwrap();
        let told: std::collections::BTreeMap<_, _> = told.iter().map(|(key, value)| (key.to_string(), value.as_str().to_owned())).collect();
        prop_assert_eq!(told, rows);
    }
}
