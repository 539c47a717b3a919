//! What the database of an Octopod looks like to whoever reads it.

/// Statements that make its tables in an empty database.
pub const TABLES: &str = include_str!("octopod/tables.sql");
