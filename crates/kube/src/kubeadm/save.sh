# Has etcd on this host write what it knows to a file, and looks whether that can be used. What an
# earlier attempt left is removed first.
#
# Set before: directory, manifest.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
umask 077
pki=/etc/kubernetes/pki/etcd
tools=/run/slipway-etcd
told() { echo "::slipway fact save $1"; exit 0; }
exec 9</run
flock -w 60 9 || {
    echo '::slipway failed HOST-005 another program of ours is still at work on this host'
    exit 1
}
unmount() {
    timeout 30 ctr -n k8s.io images unmount --rm "$tools" >/dev/null 2>&1
    rmdir "$tools" 2>/dev/null
}
unmount
rm -rf "$directory"
[ -e "$manifest" ] || told absent
image=$(sed -n 's/^ *image: *//p' "$manifest" | head -n 1)
mkdir -p "$directory" "$tools" || told no-room
size=$(du -sk /var/lib/etcd/member/snap 2>/dev/null | awk '{ print $1 }')
free=$(df -Pk "$directory" | awk 'NR == 2 { print $4 }')
[ "${free:-0}" -gt $((${size:-0} + 65536)) ] || told no-room
# The programs that fit this etcd are in its image.
timeout 60 ctr -n k8s.io images mount "$image" "$tools" >/dev/null || told silent
bin=$tools/usr/local/bin
said=$(timeout 600 "$bin/etcdctl" --endpoints https://127.0.0.1:2379 --cacert "$pki/ca.crt" \
    --cert "$pki/healthcheck-client.crt" --key "$pki/healthcheck-client.key" \
    --command-timeout 590s snapshot save "$directory/db" 2>&1 9>&-) || {
    printf '%s\n' "$said"
    unmount
    rm -rf "$directory"
    case $said in
    *'no space left'*) told no-room ;;
    *) told silent ;;
    esac
}
said=$(timeout 300 "$bin/etcdutl" snapshot status "$directory/db" -w simple 2>&1 9>&-) || {
    printf '%s\n' "$said"
    unmount
    rm -rf "$directory"
    told damaged
}
unmount
printf 'etcd told hash, revision, keys and size: %s\n' "$said"
told done
