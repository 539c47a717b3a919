//! The server through its door: requests in, answers out, on a store in memory.

#[cfg(test)]
mod access;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod environments;
#[cfg(test)]
mod events;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod guests;
#[cfg(test)]
mod intents;
#[cfg(test)]
mod kubeconfig;
#[cfg(test)]
mod kubernetes;
#[cfg(test)]
mod lists;
mod lives;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod manifests;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod mirror;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod projects;
#[cfg(test)]
mod reader;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod system;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod world;
