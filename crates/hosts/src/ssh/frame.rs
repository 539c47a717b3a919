//! The frame around a program: runs all of it or nothing, and leaves nothing behind.
//!
//! A shell that reads from standard input runs what it has got so far, so a text that is cut off
//! would be executed half. The frame is an assignment of the whole text, a function, and in the
//! last line the call: whatever is cut off, the call is missing.
//!
//! Standard input stays open while the program runs, and a watcher on the host reads it. Its end,
//! for whatever reason, means that nobody waits for the program any more: the watcher then kills
//! every process of the session.

use zeroize::Zeroizing;

/// What standard input is for, once the text has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Its end ends the program, whose own standard input is empty.
    Watched,
    /// The program reads it.
    Fed,
}

/// Told by the frame when the text has arrived and is about to run.
pub(super) const BEGAN: &str = "::slipway began";

/// Told by a program that reads standard input: what comes now will not be taken for text.
pub(super) const READY: &str = "::slipway ready";

/// What the SSH server is asked to execute; `exec` makes it the head of its session, whatever
/// shell the user has.
pub(super) fn command(user: &str) -> &'static str {
    if user == "root" {
        "exec /bin/sh -s"
    } else {
        "exec sudo -n /bin/sh -s"
    }
}

/// Before the text: a quote that only the end of the text closes.
const HEAD: &str = "slipway_text='";

/// What is run around the text.
///
/// `slipway_sid` is the session if it is surely ours: its head is this shell, or the sudo that
/// started it. An odd SSH server may start us in its own session, which must not be killed: then
/// it is empty, and only descendants are. The parent is spared, it ends with this shell; and this
/// shell is spared, so that its end tells that all the others are gone.
const BODY: &str = r#"'
slipway_watch() {
  trap '' HUP INT TERM
  while read -r slipway_line; do :; done
  kill -USR1 "$$"
  read -r slipway_me slipway_line </proc/self/stat
  slipway_dead=" $$ "
  slipway_more=1
  while [ "$slipway_more" = 1 ]; do
    slipway_more=0
    for slipway_p in /proc/[0-9]*; do
      { read -r slipway_line <"$slipway_p/stat"; } 2>/dev/null || continue
      slipway_p=${slipway_p#/proc/}
      case "$slipway_p" in "$$" | "$PPID" | "$slipway_me") continue ;; esac
      set -- ${slipway_line##*) }
      [ "$1" != Z ] || continue
      if [ -n "$slipway_sid" ]; then
        [ "$4" = "$slipway_sid" ] || continue
      else
        case "$slipway_dead" in *" $2 "*) ;; *) continue ;; esac
      fi
      kill -9 "$slipway_p" || continue
      slipway_dead="$slipway_dead$slipway_p "
      slipway_more=1
    done
  done
}
slipway_session() {
  slipway_sid=
  read -r slipway_line </proc/self/stat || return 0
  set -- ${slipway_line##*) }
  case "$4" in
    "$$") slipway_sid=$4 ;;
    "$PPID") read -r slipway_line <"/proc/$PPID/comm" && [ "$slipway_line" = sudo ] && slipway_sid=$4 ;;
  esac
}
slipway_all() {
  cd /
  exec 3<&0
  LC_ALL=C.UTF-8
  export LC_ALL
  echo '::slipway began'
"#;

/// How a watched program is run. In the foreground, because what a shell runs in the background
/// ignores interrupts, and so would every service that the program starts.
const WATCHED: &str = r#"  slipway_session 2>/dev/null
  slipway_ended=
  trap 'slipway_ended=1' USR1
  slipway_watch <&3 3<&- >/dev/null 2>&1 &
  slipway_watcher=$!
  (
    trap - USR1
    eval "unset slipway_text
$slipway_text"
  ) </dev/null 3<&-
  slipway_status=$?
  if [ -n "$slipway_ended" ]; then
    wait "$slipway_watcher"
  else
    kill -9 "$slipway_watcher"
  fi 2>/dev/null
  exit "$slipway_status"
}
slipway_all
"#;

/// How a program that reads standard input is run: it notices the end by itself.
const FED: &str = r#"  (
    eval "unset slipway_text
$slipway_text"
  ) <&3 3<&-
  exit "$?"
}
slipway_all
"#;

/// The text as it is sent; wiped when dropped, because it may hold secrets.
pub(super) fn framed(text: &str, input: Input) -> Zeroizing<Vec<u8>> {
    let end = match input {
        Input::Watched => WATCHED,
        Input::Fed => FED,
    };
    let quotes = text.bytes().filter(|&byte| byte == b'\'').count();
    // All at once: a buffer that grows leaves copies behind that nobody wipes.
    let size = HEAD.len() + text.len() + 3 * quotes + BODY.len() + end.len();
    let mut framed = Zeroizing::new(Vec::with_capacity(size));
    framed.extend_from_slice(HEAD.as_bytes());
    for (number, part) in text.split('\'').enumerate() {
        if number > 0 {
            framed.extend_from_slice(br"'\''");
        }
        framed.extend_from_slice(part.as_bytes());
    }
    framed.extend_from_slice(BODY.as_bytes());
    framed.extend_from_slice(end.as_bytes());
    framed
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Output, Stdio};

    use super::*;

    /// What a shell makes of it; in a session of its own, as under an SSH server.
    fn shell(text: &[u8], wait: bool) -> Output {
        let mut child = Command::new("setsid")
            .args(["-w", "/bin/sh", "-s"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text).unwrap();
        if wait {
            let output = child.wait_with_output().unwrap();
            drop(stdin);
            return output;
        }
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    #[test]
    fn whatever_is_cut_off_nothing_is_run() {
        let directory = tempfile::tempdir().unwrap();
        let witness = directory.path().join("ran");
        let text = format!(
            "echo it\\''s' here >{0}\necho 'and' it\\'s there >>{0}\n",
            witness.display()
        );
        for input in [Input::Watched, Input::Fed] {
            let whole = framed(&text, input);
            // The call without its line's end is a whole call.
            let last = whole.len() - 1;
            let step = |cut: &usize| *cut < 300 || *cut > last - 300 || cut.is_multiple_of(37);
            for cut in (0..last).filter(step) {
                shell(&whole[..cut], false);
                assert!(!witness.exists(), "ran when cut at {cut} of {last}");
            }
            shell(&whole, input == Input::Watched);
            let told = std::fs::read_to_string(&witness).unwrap();
            assert_eq!(told, "it's here\nand it's there\n");
            std::fs::remove_file(&witness).unwrap();
        }
    }

    #[test]
    fn the_status_is_that_of_the_program() {
        let ended = shell(&framed("echo one; exit 7", Input::Watched), true);
        assert_eq!(ended.status.code(), Some(7));
        assert_eq!(ended.stdout, b"::slipway began\none\n");
        assert_eq!(ended.stderr, b"");
        let ended = shell(&framed("if", Input::Watched), true);
        assert_eq!(ended.status.code(), Some(2));
    }

    #[test]
    fn the_end_of_input_ends_all_but_what_was_set_apart() {
        let text = "sleep 1111 & echo $!; timeout 1111 sleep 1111 & echo $!
            (sleep 1111 & echo $!); setsid sleep 1111 & echo $!; sleep 1111; echo never";
        let mut child = Command::new("setsid")
            .args(["-w", "/bin/sh", "-s"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&framed(text, Input::Watched)).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let told: Vec<String> = lines.take(5).map(Result::unwrap).collect();
        drop(stdin);
        child.wait().unwrap();
        let lives = |pid: &String| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        let lives: Vec<bool> = told.iter().skip(1).map(lives).collect();
        Command::new("kill")
            .args(["-9", &told[4]])
            .status()
            .unwrap();
        assert_eq!(lives, [false, false, false, true], "{told:?}");
    }
}
