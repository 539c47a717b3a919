# Takes Kubernetes off this host, which is no node any more. Its member of etcd was removed before.
#
# Set before: marker.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
if [ ! -e /etc/kubernetes/kubelet.conf ] && [ ! -e "$marker" ]; then
    echo '::slipway unchanged node'
    echo '::slipway fact kubeadm 0'
    exit 0
fi
exec 9</run
flock -w 60 9 || {
    echo '::slipway failed HOST-005 another program of ours is still at work on this host'
    exit 1
}
status=0
timeout 300 kubeadm reset --force --skip-phases remove-etcd-member 9>&- 2>&1 || status=$?
[ "$status" = 0 ] || {
    echo "::slipway fact kubeadm $status"
    exit 0
}
rm -rf /etc/kubernetes /run/slipway/pki /var/lib/etcd /etc/cni/net.d/10-slipway.conflist /var/lib/cni
# Rules for services that lead nowhere any more.
for one in iptables ip6tables; do
    command -v "$one-save" >/dev/null || continue
    rules=$("$one-save" 2>/dev/null) || continue
    case $rules in
    *KUBE-*) printf '%s\n' "$rules" | grep -v KUBE- | "$one-restore" || exit 1 ;;
    esac
done
rm -f /var/lib/slipway/kubeadm-begun "$marker"
echo '::slipway changed node'
echo '::slipway fact kubeadm 0'
