//! The program as a whole, from the outside: started, used, killed, and started badly.

mod bad_start;
mod full_disk;
mod kill;
mod server;
