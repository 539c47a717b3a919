//! What can go wrong with a repository: a code, a sentence, a hint, and who must act.

driver::kinds! {
    /// The repository is not there.
    NotFound = "CLOUD-001", Person, "see that the repository is there under this name; one that is not open to everybody needs a secret (`secretRef`)";
    /// The repository lets us not in.
    Refused = "CLOUD-002", Person, "give the secret of the repository a token that may read it: `slipway secret set NAME token`";
    /// The repository has no tag or branch of that name.
    NoReference = "CLOUD-003", Person, "push the tag or the branch, or name another in the manifest";
    /// The repository does not answer.
    Unreachable = "CLOUD-004", Slipway, "looks again by itself; machines that run need no repository";
    /// This machine has no git.
    NoGit = "CLOUD-005", Person, "install git where Slipway runs";
}
