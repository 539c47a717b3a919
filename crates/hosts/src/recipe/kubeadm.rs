//! What the checks of kubeadm and the kubelet ask of a host: tools, programs for the network of
//! pods, and no swap; and how all of it is taken back.
//!
//! kubeadm 1.33 to 1.36 refuses a host without `losetup`, `mount`, `cp`, a container runtime and
//! forwarding of IPv4, and warns of swap, with which the kubelet does not start. The other tools
//! are those that kubelet and kube-proxy call, and that the packages of Kubernetes depend on.

use crate::recipe::item::Item;

/// Packages of Debian and Ubuntu alike.
const PACKAGES: [&str; 8] = [
    "conntrack",
    "containernetworking-plugins",
    "ethtool",
    "iproute2",
    "iptables",
    "kmod",
    "mount",
    "socat",
];

/// What every node of Kubernetes gets besides a container runtime.
pub fn kubeadm_requirements() -> Vec<Item> {
    vec![
        Item::packages(&PACKAGES),
        command("links to the programs of pod networks", LINKED, LINK),
        command("no swap", UNSWAPPED, UNSWAP),
    ]
}

/// Takes that back.
pub(crate) fn given_back() -> Vec<Item> {
    vec![
        command("links to the programs of pod networks", UNLINKED, UNLINK),
        command("swap", SWAPPED, SWAP),
    ]
}

fn command(name: &str, unless: &str, run: &str) -> Item {
    Item::Command {
        name: name.to_owned(),
        unless: unless.to_owned(),
        run: run.to_owned(),
    }
}

/// Container runtimes look for such programs where those that pods bring are installed, packages of
/// the distribution put theirs elsewhere. What is there already stays.
const LINKED: &str = r#"for one in /usr/lib/cni/*; do
    [ ! -x "$one" ] || [ -e "/opt/cni/bin/${one##*/}" ] || exit 1
done"#;

const LINK: &str = r#"sw_parents /opt/cni/bin
for one in /usr/lib/cni/*; do
    to=/opt/cni/bin/${one##*/}
    if [ ! -x "$one" ] || [ -e "$to" ]; then continue; fi
    sw_remember "$sw_home/links" "$to"
    ln -sfn "$one" "$to" || exit 1
done"#;

const UNLINKED: &str = r#"[ ! -e "$sw_home/links" ]"#;

/// In a directory that we made there is nothing but what came after us, also of pods.
const UNLINK: &str = r#"while read -r one; do
    [ ! -L "$one" ] || rm -f "$one" || exit 1
done <"$sw_home/links"
sw_slurp "$sw_home/directories"
case $sw_line$sw_all in
*"$sw_line/opt/cni/bin$sw_line"*) rm -rf /opt/cni/bin || exit 1 ;;
esac
sw_prune /opt/cni/bin
rm -f "$sw_home/links""#;

/// What swaps to a place that is not here swaps for somebody else: a container sees its machine's.
const UNSWAPPED: &str = r#"for one in $(sed '1d;s/[[:space:]].*//' /proc/swaps); do [ ! -e "$one" ] || exit 1; done
! grep -qsE '^[[:space:]]*[^#[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+swap[[:space:]]' /etc/fstab"#;

/// The file first: after a reboot in between nothing swaps.
const UNSWAP: &str = r#"pattern='^[[:space:]]*[^#[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+swap[[:space:]]'
if grep -qsE "$pattern" /etc/fstab; then
    sw_beside /etc/fstab
    { cp -p /etc/fstab "$sw_new" && sed -E "s/$pattern/# slipway: &/" /etc/fstab >"$sw_new" && mv -fT "$sw_new" /etc/fstab; } || exit 1
    [ "$sw_init" != systemd ] || timeout 60 systemctl daemon-reload || exit 1
fi
for one in $(sed '1d;s/[[:space:]].*//' /proc/swaps); do
    [ -e "$one" ] || continue
    sw_remember "$sw_home/swaps" "$one"
    timeout 600 swapoff "$one" || exit 1
done"#;

const SWAPPED: &str = r#"[ ! -e "$sw_home/swaps" ] && ! grep -qs '^# slipway: ' /etc/fstab"#;

/// A place that cannot be swapped to any more is not worth keeping a host for.
const SWAP: &str = r#"if grep -qs '^# slipway: ' /etc/fstab; then
    sw_beside /etc/fstab
    { cp -p /etc/fstab "$sw_new" && sed 's/^# slipway: //' /etc/fstab >"$sw_new" && mv -fT "$sw_new" /etc/fstab; } || exit 1
    [ "$sw_init" != systemd ] || timeout 60 systemctl daemon-reload || exit 1
fi
sw_slurp "$sw_home/swaps"
for one in $sw_all; do
    if [ ! -e "$one" ] || grep -qs "^$one[[:space:]]" /proc/swaps; then continue; fi
    timeout 60 swapon "$one" || echo "$one cannot be swapped to any more"
done
rm -f "$sw_home/swaps""#;
