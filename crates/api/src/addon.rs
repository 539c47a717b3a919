//! Add-ons of one cluster on the wire: what should be there, and what was seen.

use model::addon::{AddonFact, AddonName};
use model::cluster::Desired;
use model::observed::Observed;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An add-on of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonView {
    /// Which.
    pub name: String,
    /// The version that should be there; null when it should not be there at all.
    pub version: Option<String>,
    /// How it was last seen to be.
    pub state: AddonState,
    /// The version that was seen; null when it was not there.
    pub seen: Option<String>,
    /// What is wrong with it; null when nothing is.
    pub trouble: Option<String>,
}

/// How an add-on was last seen to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddonState {
    /// Not there, as far as anybody has looked.
    Missing,
    /// There, and not as it should be, or not all of it.
    Changing,
    /// There as it should be, and does its work.
    Well,
    /// There as it should be, and does not do its work.
    Unwell,
    /// There, and should not be.
    Leaving,
}

impl AddonState {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Changing => "changing",
            Self::Well => "well",
            Self::Unwell => "unwell",
            Self::Leaving => "leaving",
        }
    }
}

impl AddonView {
    /// What should be there in its order, then what should not.
    pub fn all(desired: &Desired, observed: &Observed) -> Vec<Self> {
        let seen = |name: AddonName| observed.addons.as_ref()?.0.get(&name);
        let wished = desired.addons.iter().map(|addon| {
            let fact = seen(addon.name);
            let state = match fact {
                None => AddonState::Missing,
                Some(fact) if !fact.is(addon) => AddonState::Changing,
                Some(fact) if fact.wrong.is_some() => AddonState::Unwell,
                Some(_) => AddonState::Well,
            };
            Self::new(addon.name, Some(addon.version.clone()), (state, fact))
        });
        let others = observed.addons.iter().flat_map(|(seen, _)| seen);
        let unwished =
            others.filter(|(name, _)| !desired.addons.iter().any(|addon| addon.name == **name));
        let unwished =
            unwished.map(|(name, fact)| Self::new(*name, None, (AddonState::Leaving, Some(fact))));
        wished.chain(unwished).collect()
    }

    fn new(
        name: AddonName,
        version: Option<String>,
        (state, fact): (AddonState, Option<&AddonFact>),
    ) -> Self {
        Self {
            name: name.as_str().to_owned(),
            version,
            state,
            seen: fact.map(|fact| fact.version.clone()),
            trouble: fact.and_then(|fact| fact.wrong.clone()),
        }
    }
}

impl std::fmt::Display for AddonView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = self.version.as_ref().or(self.seen.as_ref());
        let version = version.map_or("", String::as_str);
        write!(f, "{} {version}, {}", self.name, self.state.as_str())?;
        if let (AddonState::Changing, Some(seen)) = (self.state, &self.seen)
            && seen != version
        {
            write!(f, " from {seen}")?;
        }
        match &self.trouble {
            Some(trouble) => write!(f, ": {trouble}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_add_on_is_told_in_one_line() {
        let view = |state, seen: Option<&str>, trouble: Option<&str>| {
            let view = AddonView {
                name: "node-exporter".to_owned(),
                version: Some("v1.10.2".to_owned()),
                state,
                seen: seen.map(str::to_owned),
                trouble: trouble.map(str::to_owned),
            };
            view.to_string()
        };
        assert_eq!(
            view(AddonState::Missing, None, None),
            "node-exporter v1.10.2, missing"
        );
        assert_eq!(
            view(AddonState::Changing, Some("v1.9.1"), None),
            "node-exporter v1.10.2, changing from v1.9.1"
        );
        assert_eq!(
            view(
                AddonState::Unwell,
                Some("v1.10.2"),
                Some("0 of 1 pods serve")
            ),
            "node-exporter v1.10.2, unwell: 0 of 1 pods serve"
        );
    }
}
