//! The shapes of worlds: what was declared before and after, what is seen, what is under way.

use crate::declared::{Front, Hosts, Rules, Upkeep, front, hosts, rules, upkeep};
use model::task::{Kind, State};
use proptest::prelude::*;

/// What may be seen of one machine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sight {
    Unseen,
    Absent,
    Booting,
    Running,
    Node {
        ready: bool,
        cordoned: bool,
        gated: bool,
        old: bool,
    },
    Lost,
    /// Its machine is gone, and its node is not.
    Outlived,
}

pub(crate) fn sight() -> impl Strategy<Value = Sight> {
    prop_oneof![
        2 => Just(Sight::Unseen),
        1 => Just(Sight::Absent),
        1 => Just(Sight::Booting),
        2 => Just(Sight::Running),
        6 => (prop::bool::weighted(0.9), prop::bool::weighted(0.2), any::<(bool, bool)>())
            .prop_map(|(ready, cordoned, (gated, old))| {
                let gated = cordoned && gated;
                Sight::Node { ready, cordoned, gated, old }
            }),
        1 => Just(Sight::Lost),
        1 => Just(Sight::Outlived),
    ]
}

/// What a host says of itself, and whether that is as it should be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kit {
    Unknown,
    Bare,
    Keyed { old: bool },
    Meshed { told: bool, live: bool },
    Whole,
}

pub(crate) fn kit() -> impl Strategy<Value = Kit> {
    prop_oneof![
        1 => Just(Kit::Unknown),
        1 => Just(Kit::Bare),
        2 => any::<bool>().prop_map(|old| Kit::Keyed { old }),
        2 => any::<(bool, bool)>().prop_map(|(told, live)| Kit::Meshed { told, live }),
        6 => Just(Kit::Whole),
    ]
}

/// What is told of the member of etcd on a control machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    Votes,
    Sick,
    Learns,
    Missing,
}

fn voice() -> impl Strategy<Value = Voice> {
    prop_oneof![
        8 => Just(Voice::Votes),
        1 => Just(Voice::Sick),
        1 => Just(Voice::Learns),
        1 => Just(Voice::Missing),
    ]
}

/// What happens in the middle of a journey, when work is under way: the manifest becomes again what
/// it was first, and somebody may ask for another machine in the place of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// After how many rounds.
    pub(crate) after: u64,
    /// Which machine.
    pub(crate) replace: Option<usize>,
}

fn turn() -> impl Strategy<Value = Turn> {
    (0..12_u64, prop::option::of(0..24_usize)).prop_map(|(after, replace)| Turn { after, replace })
}

/// What becomes of work on those that come in place of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Luck {
    Good,
    /// It fails for good.
    Bad,
    /// It fails for good, and somebody else does it.
    Mended,
}

fn luck() -> impl Strategy<Value = Luck> {
    prop_oneof![
        6 => Just(Luck::Good),
        1 => Just(Luck::Bad),
        1 => Just(Luck::Mended),
    ]
}

/// What is so of a world that has lived before it was edited.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    /// Whether there are hardly more addresses than machines.
    pub(crate) tight: bool,
    /// For how many minutes those have not served that do not.
    pub(crate) sick: Vec<u8>,
}

fn past() -> impl Strategy<Value = Past> {
    let sick = prop::collection::vec(0..40_u8, 8);
    (any::<bool>(), sick).prop_map(|(tight, sick)| Past { tight, sick })
}

/// What else is so of a world.
#[derive(Debug, Clone)]
pub(crate) struct More {
    /// What etcd tells of its members, and whether it was asked after they were seen.
    pub(crate) etcd: Option<(bool, Vec<Voice>)>,
    pub(crate) turn: Option<Turn>,
    /// Whether somebody asked that nothing be begun.
    pub(crate) paused: bool,
    /// Whether machines are seen that are none of ours.
    pub(crate) strangers: bool,
    /// Where nobody had seen it before it was edited, there is none.
    pub(crate) past: Option<Past>,
    /// What becomes of the first work on those that come in place of others.
    pub(crate) lucks: Vec<Luck>,
}

fn more() -> impl Strategy<Value = More> {
    let etcd = (any::<bool>(), prop::collection::vec(voice(), 10));
    (
        prop::option::of(etcd),
        prop::option::of(turn()),
        prop::bool::weighted(0.05),
        any::<bool>(),
        prop::option::of(past()),
        prop::collection::vec(luck(), 12),
    )
        .prop_map(|(etcd, turn, paused, strangers, past, lucks)| More {
            etcd,
            turn,
            paused,
            strangers,
            past,
            lucks,
        })
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) front: (Front, Front),
    /// Whether there is a key that opens its machines.
    pub(crate) access: bool,
    pub(crate) kits: Vec<Kit>,
    pub(crate) control: (u32, u32),
    pub(crate) compute: (u32, u32),
    pub(crate) hosts: (Hosts, Hosts),
    pub(crate) upgrade: bool,
    pub(crate) delete: bool,
    pub(crate) sights: Vec<Sight>,
    /// In how many days certificates of control machines end.
    pub(crate) ends: Vec<Option<u8>>,
    pub(crate) work: Vec<Option<(Kind, State)>>,
    /// Who holds a row of the ledger, by right or by mistake.
    pub(crate) rows: Vec<bool>,
    pub(crate) rules: (Rules, Rules),
    pub(crate) upkeep: (Upkeep, Upkeep),
    /// Machines of other clusters of the group that are out of service.
    pub(crate) elsewhere: u8,
    /// Whether the provider's account and the keys of given machines are missing.
    pub(crate) missing: (bool, bool),
    pub(crate) more: More,
}

/// An unfinished task, or none.
pub(crate) fn work() -> impl Strategy<Value = Option<(Kind, State)>> {
    let state = prop_oneof![
        Just(State::Waiting),
        Just(State::Running),
        Just(State::Stuck)
    ];
    let kind = prop_oneof![
        Just(Kind::Create),
        Just(Kind::Join),
        Just(Kind::Tend),
        Just(Kind::Drain),
        Just(Kind::Leave),
        Just(Kind::Delete),
        Just(Kind::Key),
        Just(Kind::Equip),
        Just(Kind::Mesh),
        Just(Kind::Balance),
        Just(Kind::Init),
        Just(Kind::Install),
        Just(Kind::Clear),
        Just(Kind::Snapshot),
        Just(Kind::Restore),
        Just(Kind::Renew),
        Just(Kind::Expose),
        Just(Kind::Shut),
    ];
    prop::option::weighted(0.2, (kind, state))
}

#[expect(
    clippy::too_many_lines,
    reason = "a line for each thing that a world may have"
)]
pub(crate) fn world() -> impl Strategy<Value = World> {
    let odd = prop_oneof![Just(1_u32), Just(3), Just(5)];
    (
        odd.clone(),
        odd,
        1..6_u32,
        1..6_u32,
        any::<bool>(),
        prop::bool::weighted(0.1),
        (hosts(), hosts()),
        prop::collection::vec(sight(), 24),
        prop::collection::vec(work(), 24),
        prop::collection::vec(prop::bool::weighted(0.15), 24),
        (
            ((rules(), rules()), (upkeep(), upkeep())),
            0..2_u8,
            (prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
            ((any::<bool>(), prop::bool::weighted(0.4)), front(), front()),
            any::<bool>(),
            prop::collection::vec(kit(), 24),
            prop::collection::vec(prop::option::of(0..60_u8), 24),
            more(),
        ),
    )
        .prop_map(
            |(
                c1,
                c2,
                w1,
                w2,
                upgrade,
                delete,
                hosts,
                sights,
                work,
                rows,
                (
                    (rules, upkeep),
                    elsewhere,
                    missing,
                    ((real, cloud), before, after),
                    access,
                    kits,
                    ends,
                    more,
                ),
            )| {
                let cloud = real && cloud;
                let front = |front| Front {
                    real,
                    cloud,
                    ..front
                };
                World {
                    front: (front(before), front(after)),
                    access,
                    kits,
                    control: (c1, c2),
                    compute: (w1, w2),
                    hosts,
                    upgrade,
                    delete,
                    sights,
                    ends,
                    work,
                    rows,
                    rules,
                    upkeep,
                    elsewhere,
                    missing,
                    more,
                }
            },
        )
}
