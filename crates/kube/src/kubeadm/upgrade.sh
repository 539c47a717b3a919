# Upgrades what kubeadm runs on this node, unless that was done already. kubeadm itself may be begun
# again at any point.
#
# Set before: verb, how, skip, marker, version, images, full.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
now=
[ ! -e "$marker" ] || read -r now <"$marker"
if [ "$now" = "$version" ]; then
    echo '::slipway fact kubeadm 0'
    echo "::slipway unchanged kubeadm $verb"
    exit 0
fi
exec 9</run
flock -w 60 9 || {
    echo '::slipway failed HOST-005 another program of ours is still at work on this host'
    exit 1
}
# Above this the kubelet takes images away to make room, also those that the upgrade is about to need
# and that nobody can pull again: kubeadm would wait for its pods, give up, and not get back either.
room=$(stat -f -c '%b %a' "$images" 2>/dev/null || stat -f -c '%b %a' /) || exit 1
used=$(((${room% *} - ${room#* }) * 100 / ${room% *}))
if [ "$used" -ge "$full" ]; then
    echo "::slipway failed HOST-006 the disk of images is $used % full, and from $full % on the kubelet takes away images that the upgrade needs"
    exit 1
fi
# kubeadm would have a Job run somewhere first. This node is out of service, another one may not
# have the image of the next version, and perhaps there is no other.
ignored=CreateJob
[ -e /sys/fs/cgroup/cgroup.controllers ] || ignored=$ignored,SystemVerification
status=0
case $how in
apply) set -- apply "$version" --yes ;;
*) set -- node ;;
esac
[ -z "$skip" ] || set -- "$@" --skip-phases "$skip"
kubeadm upgrade "$@" --ignore-preflight-errors "$ignored" 9>&- 2>&1 || status=$?
if [ "$status" = 0 ]; then
    printf '%s\n' "$version" >"$marker.new" && sync "$marker.new" && mv -f "$marker.new" "$marker" || exit 1
    echo "::slipway changed kubeadm $verb"
fi
echo "::slipway fact kubeadm $status"
