//! What would open the machines of a cluster: made up, and it says so.

use crate::made_up::{MadeUp, pem};
use model::id::ClusterId;
use model::secret::Secret;

/// Bytes of the made-up public half, as many as a real one has.
const PUBLIC_BYTES: usize = 51;

/// Bytes of the made-up private half.
const PRIVATE_BYTES: usize = 256;

/// The public half of the key of a cluster: the same whenever it is asked for.
pub(crate) fn public(cluster: ClusterId) -> String {
    let body = MadeUp::of(&format!("public key of {cluster}")).base64(PUBLIC_BYTES);
    format!("ssh-ed25519 {body} simulated key of {cluster}")
}

/// The private half: the same whenever it is asked for.
pub(super) fn private(cluster: ClusterId) -> Secret {
    let mut random = MadeUp::of(&format!("private key of {cluster}"));
    let body = pem("SIMULATED PRIVATE KEY", &random.bytes(PRIVATE_BYTES));
    Secret::from_text(format!(
        "# A simulated key of {cluster}: it opens machines of the simulated world, and no others.\n{body}"
    ))
}
