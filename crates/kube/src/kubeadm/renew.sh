# Makes all certificates of this control machine anew, but for those of the authorities, and starts its
# parts of the control plane again, one after the other, so that they use them. May be begun again at any
# point: the marker is there until all of them were started.
#
# Set before: marker.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
exec 9</run
flock -w 60 9 || {
    echo '::slipway failed HOST-005 another program of ours is still at work on this host'
    exit 1
}
mkdir -p "${marker%/*}" && : >"$marker" || exit 1
status=0
kubeadm certs renew all 9>&- 2>&1 || status=$?
echo "::slipway fact kubeadm $status"
[ "$status" = 0 ] || exit 0
# The container of a part of the control plane that runs.
running() {
    timeout 20 ctr -n k8s.io tasks ls 2>/dev/null | awk '$3 == "RUNNING" { print $1 }' >"$marker.tasks"
    timeout 20 ctr -n k8s.io containers ls -q \
        "labels.\"io.kubernetes.container.name\"==$1,labels.\"io.kubernetes.pod.namespace\"==kube-system" |
        grep -Fxf "$marker.tasks" | head -n 1
}
# Ends it; the kubelet starts another one.
again() {
    old=$(running "$1")
    tries=0
    now=$old
    while [ -z "$now" ] || [ "$now" = "$old" ]; do
        case $tries in
        0) [ -z "$old" ] || timeout 20 ctr -n k8s.io tasks kill -s SIGTERM "$old" >/dev/null 2>&1 ;;
        60) [ -z "$old" ] || timeout 20 ctr -n k8s.io tasks kill -s SIGKILL "$old" >/dev/null 2>&1 ;;
        180)
            echo "::slipway failed HOST-021 the kubelet does not start $1 again"
            exit 1
            ;;
        esac
        tries=$((tries + 1))
        sleep 1
        now=$(running "$1")
    done
    echo "::slipway changed $1"
}
for part in etcd kube-apiserver kube-controller-manager kube-scheduler; do
    again "$part"
done
rm -f "$marker.tasks" "$marker"
