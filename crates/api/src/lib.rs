//! The public contract: what people and programs say to a server, and what it answers.
//!
//! Wire types are promises. They are plain structs of their own, apart from the nouns of
//! `model`, so that the inside can change without breaking anybody. Conversions go outward
//! with `From`; inward everything passes admission in the server. Field names are in camel
//! case, times are RFC 3339, and request bodies refuse fields that nobody reads.
//!
//! [`Client`] has one method per route and is the only door that the command line uses.
//!
//! **Invariant:** this crate depends on `model` alone (`docs/dependencies.txt`): whoever
//! speaks the contract needs neither the planner nor the store.

pub mod addon;
pub mod argument;
pub mod audit;
pub mod backup;
pub mod client;
pub mod cluster;
pub mod environment;
pub mod event;
pub mod guest;
pub mod intent;
pub mod kubernetes;
pub mod machine;
pub mod manifest;
pub mod page;
pub mod plan;
pub mod problem;
pub mod project;
pub mod recovery;
pub mod secret;
pub mod simulation;
pub mod snapshot;
pub mod sse;
pub mod task;
pub mod time;
pub mod token;

pub use addon::{AddonState, AddonView};
pub use audit::{AuditView, Broken, Verification};
pub use client::{Client, Events, LogSignal, Signal, TaskLog};
pub use cluster::{
    CauseView, ClusterGeneration, ClusterHead, ClusterState, ClusterSummary, ClusterView, HeldView,
    LoadBalancerView, NewerModulesView, Owner, Ready, WhyView,
};
pub use environment::{
    ActionDetail, ActionKind, ActionState, ActionView, BusyView, CancelledView, CheckedView,
    CloneRequest, ConfigurationView, DefaultsView, DeliveryState, DeliveryView, EditKind,
    EditLevels, EditView, EnvironmentAccepted, EnvironmentChangeRequest, EnvironmentRequest,
    EnvironmentSettings, EnvironmentSettingsView, EnvironmentStatus, EnvironmentView, ExitView,
    ExtendRequest, Hidden, ImportAction, ImportEnvironment, ImportOutcome, ImportRequest,
    ImportView, ImportedView, KeysOfLevelView, KnownSettingView, LinkView, OutputEnd,
    OutputLineView, OutputStream, OutputView, RedeployRequest, SeenView, SettingLevel,
    SettingSource, SettingType, SettingView, StatusChangeView, TrialView,
};
pub use event::EventView;
pub use guest::{GuestRequest, GuestView};
pub use intent::{IntentRequest, IntentView, WishRequest, WishView};
pub use kubernetes::{
    CertificatesSeen, ControlPlaneSeen, EndpointMachine, EndpointView, EtcdMember, KubernetesView,
};
pub use machine::{
    ChangeView, HardwareView, HostSeen, JumpHostView, MachineDesired, MachineSeen, MachineState,
    MachineView, NodeSeen, OriginView, Role, Simulated,
};
pub use manifest::{Accepted, GenerationView, ManifestGeneration, ManifestState, ManifestView};
pub use model::language;
pub use page::Listed;
pub use plan::{
    JourneyBlock, JourneyCluster, JourneyCost, JourneyDisturbed, JourneyMonth, JourneyPace,
    JourneyStep, JourneyView, JourneyWait, WaitKind,
};
pub use problem::{Exit, FaultView, Problem};
pub use project::{ProjectRequest, ProjectView, Quota, Used};
pub use recovery::RecoveryView;
pub use secret::{ClosedView, KeyView, KeysView, SecretRequest, SecretView};
pub use simulation::SimulationView;
pub use snapshot::{RestoredView, SnapshotView, SnapshotsView};
pub use task::{Effect, LogEnd, LogLine, LogView, TaskKind, TaskState, TaskView};
pub use time::Time;
pub use token::{TokenMade, TokenRequest, TokenRole, TokenState, TokenView};
