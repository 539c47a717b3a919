//! The program as a whole, from the outside: started, used, killed, and started badly.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do, and say what they saw"
)]

mod bad_start;
mod full_disk;
mod kill;
mod server;
