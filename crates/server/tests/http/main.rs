//! The server through its door: requests in, answers out, on a store in memory.

mod access;
mod events;
mod intents;
mod lists;
mod manifests;
mod openapi;
mod pages;
mod plans;
mod refusals;
mod system;
mod world;
