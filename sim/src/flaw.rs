//! Bugs and missing layers outside the core: what a store, a host or a resource might do wrong.

/// One thing that is wrong in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The resource has no fence: it accepts every effect.
    NoFence,
    /// The guard is 0, on clocks that were declared finer than they are.
    NoGuard,
    /// The host says that the work has ended while it is still running.
    NoDrain,
    /// The host says that the resource is sealed, and seals nothing: the floor rises with the
    /// first effect.
    NoSeal,
    /// The store writes whatever the condition says.
    StoreIgnoresConditions,
    /// The store loses its last write when it fails over.
    StoreLosesLastWrite,
    /// The store answers reads from a replica that lags behind by some seconds.
    StoreReadsStale,
    /// A host that was paused sends the effect that it had ready, without asking again. There is
    /// no fence.
    HostSendsUnasked,
    /// A host says that the resource is sealed when the seal is on its way.
    HostSealsLater,
    /// A restarted process that led before goes on with its work.
    HostRemembersLeading,
    /// The resource opens after a restore without having been recovered.
    ResourceForgetsFloor,
}

impl Flaw {
    /// The layers that can be left out, one at a time.
    pub const LAYERS: &'static [Self] =
        &[Self::NoFence, Self::NoGuard, Self::NoDrain, Self::NoSeal];

    /// The bugs of stores, hosts and resources.
    pub const BUGS: &'static [Self] = &[
        Self::StoreIgnoresConditions,
        Self::StoreLosesLastWrite,
        Self::StoreReadsStale,
        Self::HostSendsUnasked,
        Self::HostSealsLater,
        Self::HostRemembersLeading,
        Self::ResourceForgetsFloor,
    ];

    /// The variant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoFence => "NoFence",
            Self::NoGuard => "NoGuard",
            Self::NoDrain => "NoDrain",
            Self::NoSeal => "NoSeal",
            Self::StoreIgnoresConditions => "StoreIgnoresConditions",
            Self::StoreLosesLastWrite => "StoreLosesLastWrite",
            Self::StoreReadsStale => "StoreReadsStale",
            Self::HostSendsUnasked => "HostSendsUnasked",
            Self::HostSealsLater => "HostSealsLater",
            Self::HostRemembersLeading => "HostRemembersLeading",
            Self::ResourceForgetsFloor => "ResourceForgetsFloor",
        }
    }
}
