//! The versions we have tried, one line each: what a file is called, and what must be in it.
//!
//! This table alone decides which version a host gets; a new version is a new line, and the
//! change of [`ENVOY`]. It stands by itself, so that the tools that fill a mirror for tests
//! read the same lines.

/// One file that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// Its name in mirrors.
    pub name: &'static str,
    /// What must be in it, as 64 hexadecimal digits.
    pub sha256: &'static str,
    /// Its bytes.
    pub size: u64,
}

/// The version of the proxy on load balancer machines.
pub const ENVOY: &str = "1.40.0";

/// Every file that we know.
pub const PINS: &[Pin] = &[
    Pin {
        name: "envoy/1.40.0/linux-amd64/envoy",
        sha256: "8aa137a7d00994ce43f613556f5a120709229f63bedb86eedde5ccbc402c2b80",
        size: 106_905_560,
    },
    Pin {
        name: "envoy/1.40.0/linux-arm64/envoy",
        sha256: "03cacc952561635c0b7d2a829291f341dadbebc32050475efbe7321b1bbe18c2",
        size: 103_837_096,
    },
];

/// The line of a name.
pub fn find(name: &str) -> Option<&'static Pin> {
    PINS.iter().find(|pin| pin.name == name)
}
