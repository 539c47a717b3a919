//! What would open the door to a simulated cluster: well-formed, and made up.

use crate::made_up::{MadeUp, pem};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::secret::Secret;
use model::task::Task;

/// Bytes of a made-up key, about as many as a real one has.
const KEY_BYTES: usize = 121;

/// Bytes of a made-up certificate.
const CERTIFICATE_BYTES: usize = 420;

/// The kubeconfig of the cluster that a task starts: the same whenever it is asked for.
pub(super) fn of(task: &Task) -> Secret {
    let (cluster, address) = (&task.cluster_name, task.machine.address);
    let mut random = MadeUp::of(&task.cluster.to_string());
    let mut made_up = |title: &str, len: usize| STANDARD.encode(pem(title, &random.bytes(len)));
    let authority = made_up("CERTIFICATE", CERTIFICATE_BYTES);
    let certificate = made_up("CERTIFICATE", CERTIFICATE_BYTES);
    let key = made_up("EC PRIVATE KEY", KEY_BYTES);
    Secret::from_text(format!(
        "# {cluster} is simulated: nobody answers at its address, and its keys open nothing.
apiVersion: v1
kind: Config
clusters:
  - name: {cluster}
    cluster:
      server: https://{address}:6443
      certificate-authority-data: {authority}
users:
  - name: {cluster}-admin
    user:
      client-certificate-data: {certificate}
      client-key-data: {key}
contexts:
  - name: {cluster}
    context:
      cluster: {cluster}
      user: {cluster}-admin
current-context: {cluster}
"
    ))
}
