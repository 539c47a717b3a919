//! Values that only have to look right: the same for the same text, whenever they are asked for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Characters per line of a key in text form.
const LINE: usize = 64;

/// Bytes that stand for something secret, from a text that names it.
pub(crate) struct MadeUp(fastrand::Rng);

impl MadeUp {
    /// What stands for the thing of that name.
    pub(crate) fn of(text: &str) -> Self {
        Self(fastrand::Rng::with_seed(seed(text)))
    }

    /// The next bytes.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.0.u8(..)).take(len).collect()
    }

    /// The next bytes, in base64.
    pub(crate) fn base64(&mut self, len: usize) -> String {
        STANDARD.encode(self.bytes(len))
    }
}

/// A number that another text would hardly give.
fn seed(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Bytes between two lines that say what they are.
pub(crate) fn pem(title: &str, bytes: &[u8]) -> String {
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
