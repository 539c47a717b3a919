//! What can go wrong with control scripts: a code, a sentence, a hint, and who must act.

driver::kinds! {
    /// A script that is not there.
    Missing = "SCRIPT-001", Person, "put it into the directory of the scripts, executable";
    /// A file that cannot be run.
    NotExecutable = "SCRIPT-002", Person, "make it executable (`chmod +x`), and see that its first line names an interpreter that is there (`#!/bin/sh`)";
    /// A directory of scripts that is none.
    NoDirectory = "SCRIPT-003", Person, "correct the directory in the project's settings: an absolute path on the server's machine, which the server may enter";
    /// A script that took too long.
    Hung = "SCRIPT-004", Slipway, "find out what the script waits for, or give it more time in the project's settings; looks are made again by themselves";
    /// A script that ended badly instead of telling something.
    Failed = "SCRIPT-005", Slipway, "what the script complained about is what to mend; looks are made again by themselves";
    /// A script that printed something else than it should.
    Garbage = "SCRIPT-006", Person, "have the script print what it should on standard output, and all else on standard error";
    /// A script that printed something that is no text.
    NotText = "SCRIPT-015", Person, "have the script print UTF-8 on standard output, for instance by `iconv -t utf-8`";
    /// A script that printed more than anybody can use.
    Flood = "SCRIPT-007", Person, "have the script print less on standard output";
    /// Something secret, and no way to hand it over.
    NoDelivery = "SCRIPT-008", Person, "say in the project's settings how scripts are given what is secret (`secretDelivery`), or take the secret settings back";
    /// A secret setting without a value.
    NoSecret = "SCRIPT-009", Person, "set it again with `slipway env update NAME --secret`";
    /// A secret that cannot be opened now.
    SecretAway = "SCRIPT-010", Slipway, "looks are made again by themselves; ask again for anything else";
    /// A secret that no argument and no variable can hold.
    UnfitSecret = "SCRIPT-011", Person, "set a value that is text without NUL, or have secrets delivered as files";
    /// More settings than a program can be given.
    TooLong = "SCRIPT-012", Person, "give the environment fewer or shorter settings; the system limits the arguments of a program";
    /// A cluster of ours, and no way to it.
    NoWay = "SCRIPT-014", Slipway, "see that the cluster of the project's settings is there and ready (`slipway why cluster NAME`); looks are made again by themselves, ask again for anything else";
    /// This machine could not even try.
    OurSide = "SCRIPT-013", Slipway, "see on the server's machine that there are room, memory and file descriptors to spare; looks are made again by themselves, ask again for anything else";
}

impl From<Error> for driver::Error {
    fn from(error: Error) -> Self {
        Self {
            attempted: format!("{} ({})", error.what, error.kind.code()),
            hint: error.kind.hint().to_owned(),
        }
    }
}
