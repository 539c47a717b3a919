//! What can be set of an add-on, and what a value may be.

use super::AddonName;

/// One thing that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// What it is called in manifests.
    pub key: &'static str,
    /// What it may be.
    pub sort: Sort,
    /// What it is unless it is set.
    pub usual: &'static str,
}

/// What a value may be. Values are written into objects, so none has a letter that means
/// something there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A port.
    Port,
    /// How many there are, up to a few.
    Count,
    /// Yes or no.
    Flag,
    /// A whole path of a directory.
    Path,
    /// An amount of bytes, such as `10Gi`; nothing where there is none.
    Size,
    /// A span of time, such as `15d`.
    Span,
}

const fn setting(key: &'static str, sort: Sort, usual: &'static str) -> Setting {
    Setting { key, sort, usual }
}

impl AddonName {
    /// What can be set.
    pub const fn settings(self) -> &'static [Setting] {
        match self {
            Self::LocalPath => {
                const ALL: [Setting; 2] = [
                    setting("path", Sort::Path, "/opt/local-path-provisioner"),
                    setting("default", Sort::Flag, "true"),
                ];
                &ALL
            }
            Self::MetricsServer => {
                const ALL: [Setting; 3] = [
                    setting("replicas", Sort::Count, "1"),
                    setting("resolution", Sort::Span, "15s"),
                    setting("kubeletInsecureTls", Sort::Flag, "false"),
                ];
                &ALL
            }
            Self::NodeExporter => {
                const ALL: [Setting; 1] = [setting("port", Sort::Port, "9100")];
                &ALL
            }
            Self::Prometheus => {
                const ALL: [Setting; 2] = [
                    setting("retention", Sort::Span, "15d"),
                    setting("storage", Sort::Size, ""),
                ];
                &ALL
            }
            Self::Flannel
            | Self::Calico
            | Self::Cilium
            | Self::Longhorn
            | Self::KubeStateMetrics
            | Self::Dashboard => &[],
        }
    }
}

impl Sort {
    /// Whether a text is such a value.
    pub fn fits(self, text: &str) -> bool {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u32>().ok().filter(|_| digits)
        };
        let of_units = |units: &[&str]| {
            let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
            let count = &text[..text.len() - rest.len()];
            units.contains(&rest) && number(count).is_some_and(|count| count > 0)
        };
        match self {
            Self::Port => number(text).is_some_and(|port| (1..=65_535).contains(&port)),
            Self::Count => number(text).is_some_and(|count| (1..=9).contains(&count)),
            Self::Flag => matches!(text, "true" | "false"),
            Self::Path => {
                let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
                text.len() > 1
                    && text.starts_with('/')
                    && text.bytes().all(letter)
                    && !text.split('/').any(|part| part == "..")
            }
            Self::Size => of_units(&["Mi", "Gi", "Ti"]),
            Self::Span => of_units(&["s", "m", "h", "d", "w", "y"]),
        }
    }

    /// What is allowed, for messages.
    pub const fn allowed(self) -> &'static str {
        match self {
            Self::Port => "a port",
            Self::Count => "a number from 1 to 9",
            Self::Flag => "true or false",
            Self::Path => "a whole path of A-Z, a-z, 0-9, `.`, `_`, `-` and `/`",
            Self::Size => "a size such as 500Mi or 10Gi",
            Self::Span => "a span of time such as 30s, 12h or 15d",
        }
    }
}

/// Whether a text can be the version of an add-on: it becomes a part of names of images, files and
/// addresses.
pub(crate) fn is_version(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let begins = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    text.len() <= 40
        && begins(text.strip_prefix('v').unwrap_or(text))
        && text.bytes().all(letter)
        && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_could_be_set() {
        for name in AddonName::ALL {
            for one in name.settings() {
                let none = one.sort == Sort::Size && one.usual.is_empty();
                assert!(none || one.sort.fits(one.usual), "{name} {one:?}");
            }
        }
    }

    #[test]
    fn no_value_means_more_than_it_says() {
        for (sort, good, bad) in [
            (Sort::Port, "9100", "0"),
            (Sort::Port, "65535", "65536"),
            (Sort::Count, "9", "10"),
            (Sort::Flag, "false", "no"),
            (Sort::Path, "/srv/volumes-1", "/srv/../etc"),
            (Sort::Path, "/srv", "/srv/$(id)"),
            (Sort::Size, "10Gi", "10"),
            (Sort::Size, "1Ti", "0Gi"),
            (Sort::Span, "15d", "15 d"),
            (Sort::Span, "30s", "s"),
        ] {
            assert!(sort.fits(good), "{good}");
            assert!(!sort.fits(bad), "{bad}");
        }
    }

    #[test]
    fn a_version_stays_within_its_place() {
        for good in ["v1.9.1", "0.8.0", "v2.0.0-rc.1", "v0.0.32"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "v", "latest", "v1/2", "v1..2", "v1 2", "v1:2", "vv1"] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
