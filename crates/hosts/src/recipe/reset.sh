# Takes Kubernetes from a host, as `kubeadm reset` does, and what that leaves to people. Nobody is
# asked, neither kubeadm nor an API: both may be broken or gone. May be begun again at any point.
kctl() { timeout 60 ctr -n k8s.io "$@"; }

if [ "$sw_init" = systemd ] && systemctl cat kubelet >/dev/null 2>&1; then
    timeout 120 systemctl disable -q --now kubelet || exit 1
    systemctl reset-failed kubelet 2>/dev/null || :
fi
# What pods are called outside the cluster.
pods=/etc/systemd/system/slipway-pods.service
if [ -e "$pods" ]; then
    timeout 30 systemctl disable -q --now slipway-pods || exit 1
    rm -f "$pods" && systemctl daemon-reload || exit 1
fi

# Containers first: what they hold open cannot be removed.
if command -v ctr >/dev/null && timeout 10 ctr version >/dev/null 2>&1; then
    rounds=0
    while tasks=$(kctl tasks ls -q) && [ -n "$tasks" ] && [ "$rounds" -lt 50 ]; do
        rounds=$((rounds + 1))
        for one in $tasks; do
            # All of it and its first process: where controllers are set up in an unusual way, all
            # of it may be nobody, and whoever removes it would wait for that one.
            kctl tasks kill -a -s SIGKILL "$one" >/dev/null 2>&1
            kctl tasks kill -s SIGKILL "$one" >/dev/null 2>&1
            kctl tasks rm -f "$one" >/dev/null 2>&1
        done
        sleep 0.1
    done
    for one in $(kctl containers ls -q); do kctl containers rm "$one" >/dev/null || exit 1; done
    images=$(kctl images ls -q)
    # shellcheck disable=SC2086 # it is split on purpose
    [ -z "$images" ] || kctl images rm --sync $images >/dev/null || exit 1
    [ -z "$(kctl tasks ls -q)" ] || {
        echo 'containers of Kubernetes do not end'
        exit 1
    }
fi

# The deepest first.
# shellcheck disable=SC2013 # none has a space
for one in $(sed -E 's/^[^ ]+ ([^ ]+) .*/\1/' /proc/mounts | grep -E '^(/var/lib/kubelet/|/run/netns/cni-)' | sort -r); do
    umount "$one" 2>/dev/null || umount -l "$one" || exit 1
done
rm -f /run/netns/cni-*
for one in kube-ipvs0 kube-bridge nodelocaldns cni0 flannel.1 flannel-v6.1 vxlan.calico cilium_host cilium_net cilium_vxlan; do
    [ ! -e "/sys/class/net/$one" ] || ip link del "$one" || exit 1
done

# Rules of kube-proxy, of the kubelet and of networks of pods are known by their chains.
for one in iptables ip6tables; do
    command -v "$one-save" >/dev/null || continue
    rules=$("$one-save" 2>/dev/null) || continue
    case $rules in
    *KUBE-* | *CNI-* | *cali-* | *FLANNEL-* | *CILIUM_* | *SLIPWAY-PODS*)
        printf '%s\n' "$rules" | grep -v -e KUBE- -e CNI- -e cali- -e FLANNEL- -e CILIUM_ -e SLIPWAY-PODS |
            "$one-restore" || exit 1
        ;;
    esac
done
if command -v nft >/dev/null; then
    for one in ip ip6; do nft delete table "$one" kube-proxy 2>/dev/null || :; done
fi

rm -f /etc/cni/net.d/*slipway* /etc/cni/net.d/*-flannel.conflist /etc/cni/net.d/*-calico.conflist \
    /etc/cni/net.d/calico-kubeconfig /etc/cni/net.d/*-cilium.conf* || exit 1
# A directory may be a disk of its own: then it stays, and is empty.
for one in /etc/kubernetes /var/lib/kubelet /var/lib/etcd /var/lib/cni /run/kubernetes /run/flannel /var/log/pods /var/log/containers; do
    [ -d "$one" ] || continue
    rm -rf "${one:?}"/* "${one:?}"/.[!.]* || exit 1
    rmdir "$one" 2>/dev/null || :
done
sw_prune /etc/cni/net.d
rm -rf "$sw_home/kubernetes"
