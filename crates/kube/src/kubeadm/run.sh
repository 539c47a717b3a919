# Runs kubeadm once, unless it has done its work already. What an attempt before this one began and
# did not finish is taken back first: kubeadm does not go on where it ended.
#
# Set before: verb, skip, config, marker, version, shared.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
umask 022
begun=/var/lib/slipway/kubeadm-begun
if [ -e "$marker" ]; then
    echo '::slipway fact kubeadm 0'
    echo "::slipway unchanged kubeadm $verb"
    exit 0
fi
exec 9</run
flock -w 60 9 || {
    echo '::slipway failed HOST-005 another program of ours is still at work on this host'
    exit 1
}
if [ -e "$begun" ]; then
    echo 'an earlier attempt ended in the middle: taking back what it began'
    # Shared certificates came from elsewhere, and are there again already.
    pki=/run/slipway/pki
    rm -rf "$pki" && mkdir -p "${pki%/*}" && mkdir -m 700 "$pki" || exit 1
    [ "$verb" = init ] || [ ! -d /etc/kubernetes/pki ] || cp -a /etc/kubernetes/pki "$pki/" || exit 1
    timeout 180 kubeadm reset --force --skip-phases remove-etcd-member 9>&- 2>&1 || {
        rm -rf "$pki"
        echo '::slipway fact kubeadm 1'
        exit 0
    }
    rm -rf /var/lib/etcd /etc/kubernetes/pki
    [ ! -d "$pki/pki" ] || {
        # Only what is shared: the rest is made anew.
        mkdir -p /etc/kubernetes/pki/etcd
        for one in $shared; do
            [ ! -e "$pki/pki/$one" ] || cp -a "$pki/pki/$one" "/etc/kubernetes/pki/$one" || exit 1
        done
    }
    rm -rf "$pki"
fi
mkdir -p /var/lib/slipway && : >"$begun" && sync "$begun" || exit 1
set -- "$verb" --config "$config"
[ -z "$skip" ] || set -- "$@" --skip-phases "$skip"
# From 1.35 kubeadm takes hosts whose control groups are of version 1 for an error.
[ -e /sys/fs/cgroup/cgroup.controllers ] || set -- "$@" --ignore-preflight-errors SystemVerification
# The token that kubeadm makes for itself is nobody's business, however short it lives.
{
    status=0
    kubeadm "$@" 9>&- 2>&1 || status=$?
    echo "$status" >"$begun"
} | sed -u 's/Using token: .*/Using a token of its own/'
read -r status <"$begun" || status=unknown
if [ "$status" = 0 ]; then
    mkdir -p "${marker%/*}" && printf '%s\n' "$version" >"$marker.new" && sync "$marker.new" &&
        mv -f "$marker.new" "$marker" && rm -f "$begun" || exit 1
    echo "::slipway changed kubeadm $verb"
fi
echo "::slipway fact kubeadm $status"
