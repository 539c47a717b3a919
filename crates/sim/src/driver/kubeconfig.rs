//! What would open the door to a simulated cluster: well-formed, and made up.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::secret::Secret;
use model::task::Task;

/// Bytes of a made-up key, about as many as a real one has.
const KEY_BYTES: usize = 121;

/// Bytes of a made-up certificate.
const CERTIFICATE_BYTES: usize = 420;

/// Characters per line of a key in text form.
const LINE: usize = 64;

/// The kubeconfig of the cluster that a task starts: the same whenever it is asked for.
pub(super) fn of(task: &Task) -> Secret {
    let (cluster, address) = (&task.cluster_name, task.machine.address);
    let mut random = fastrand::Rng::with_seed(seed(&task.cluster.to_string()));
    let mut made_up = |title: &str, len: usize| {
        let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(len).collect();
        STANDARD.encode(pem(title, &bytes))
    };
    let authority = made_up("CERTIFICATE", CERTIFICATE_BYTES);
    let certificate = made_up("CERTIFICATE", CERTIFICATE_BYTES);
    let key = made_up("EC PRIVATE KEY", KEY_BYTES);
    Secret::from_text(format!(
        "apiVersion: v1
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

/// A number that another text would hardly give.
fn seed(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn pem(title: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: Vec<_> = text
        .as_bytes()
        .chunks(LINE)
        .map(String::from_utf8_lossy)
        .collect();
    format!(
        "-----BEGIN {title}-----\n{}\n-----END {title}-----\n",
        lines.join("\n")
    )
}
