# Brings the member of etcd on this host to what a snapshot says, step by step: look, stop, load,
# start, clean. Each step may be cut off anywhere, and is gone on with by the next attempt.
#
# Set before: verb, wish, lift, directory, manifests, name, peer, members.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
umask 077
data=/var/lib/etcd
done=/var/lib/slipway/restored
tools=/run/slipway-etcd
parts='kube-apiserver kube-controller-manager kube-scheduler etcd'
told() { echo "::slipway fact restore $1"; exit 0; }
mark() { : >"$directory/$1" && sync "$directory/$1" && sync "$directory"; }
exec 9</run
flock -w 60 9 || {
    echo '::slipway failed HOST-005 another program of ours is still at work on this host'
    exit 1
}
if [ -e "$done" ] && [ "$(cat "$done")" = "$wish" ]; then
    [ "$verb" != clean ] || rm -rf "$data/slipway-old" "$data/slipway-new" "$directory"
    echo "::slipway unchanged $verb"
    told done
fi
[ "$verb" != look ] || told open
[ -d "$directory" ] || told missing
before=$(cat "$directory/wish" 2>/dev/null)
if [ "$before" != "$wish" ]; then
    # What an earlier wish stopped and did not start again stays as it is; its data is of no use.
    if [ -z "$before" ] || [ -e "$directory/started" ]; then
        rm -rf "$data/slipway-old" "$directory/started" "$directory/stopped"
    fi
    rm -rf "$data/slipway-new" "$directory/built" "$directory/loaded"
    printf '%s' "$wish" >"$directory/wish" && sync "$directory/wish" || told no-room
fi
unmount() {
    timeout 30 ctr -n k8s.io images unmount --rm "$tools" >/dev/null 2>&1
    rmdir "$tools" 2>/dev/null
}
running() {
    timeout 20 ctr -n k8s.io containers ls -q "labels.\"io.kubernetes.container.name\"==$1" |
        while read -r one; do
            timeout 20 ctr -n k8s.io tasks ls 2>/dev/null |
                awk -v id="$one" '$1 == id && $3 == "RUNNING" { print id }'
        done
}
if [ "$verb" = stop ] && [ ! -e "$directory/stopped" ]; then
    if [ ! -x "$directory/etcdutl" ]; then
        from=$manifests/etcd.yaml
        [ -e "$from" ] || from=$directory/manifests/etcd.yaml
        [ -e "$from" ] || told absent
        image=$(sed -n 's/^ *image: *//p' "$from" | head -n 1)
        unmount
        mkdir -p "$tools"
        timeout 60 ctr -n k8s.io images mount "$image" "$tools" >/dev/null || told no-tools
        cp "$tools/usr/local/bin/etcdutl" "$directory/etcdutl.new" || { unmount; told no-room; }
        unmount
        chmod 0700 "$directory/etcdutl.new" && sync "$directory/etcdutl.new" || told no-room
        mv "$directory/etcdutl.new" "$directory/etcdutl" || exit 1
    fi
    size=$(du -k "$directory/db" | awk '{ print $1 }')
    free=$(df -Pk "$data" | awk 'NR == 2 { print $4 }')
    [ "${free:-0}" -gt $((2 * ${size:-0} + 131072)) ] || told no-room
    mkdir -p "$directory/manifests" || exit 1
    # Who asks etcd goes before it.
    for part in $parts; do
        [ ! -e "$manifests/$part.yaml" ] || mv "$manifests/$part.yaml" "$directory/manifests/" || exit 1
    done
    left=150
    for part in $parts; do
        while ids=$(running "$part") && [ -n "$ids" ]; do
            [ "$left" -gt 0 ] || told still-runs
            # Where no kubelet looks after them, nobody else ends them.
            [ "$left" -gt 60 ] || for id in $ids; do
                timeout 20 ctr -n k8s.io tasks kill -s SIGTERM "$id" 9>&-
            done
            left=$((left - 1))
            sleep 1
        done
    done
    mark stopped || exit 1
    echo '::slipway changed stop'
fi
if [ "$verb" = load ] && [ ! -e "$directory/loaded" ]; then
    new=$data/slipway-new
    old=$data/slipway-old
    if [ ! -e "$directory/built" ]; then
        rm -rf "$new"
        said=$(timeout 600 "$directory/etcdutl" snapshot restore "$directory/db" --data-dir "$new" \
            --name "$name" --initial-advertise-peer-urls "$peer" --initial-cluster "$members" \
            --initial-cluster-token "$wish" --bump-revision "$lift" --mark-compacted 2>&1 9>&-) || {
            printf '%s\n' "$said"
            rm -rf "$new"
            case $said in
            *'no space left'*) told no-room ;;
            *) told damaged ;;
            esac
        }
        printf '%s\n' "$said" | tail -n 3
        sync -f "$new"
        mark built || exit 1
    fi
    if [ -d "$new/member" ]; then
        [ -e "$old" ] || [ ! -e "$data/member" ] || mv "$data/member" "$old" || exit 1
        # What is there besides was begun by nobody.
        rm -rf "$data/member"
        mv "$new/member" "$data/member" && sync "$data" || exit 1
    fi
    [ -d "$data/member" ] || told damaged
    rm -rf "$new"
    mark loaded || exit 1
    echo '::slipway changed load'
fi
if [ "$verb" = start ] && [ ! -e "$directory/started" ]; then
    for part in $parts; do
        [ ! -e "$directory/manifests/$part.yaml" ] ||
            mv "$directory/manifests/$part.yaml" "$manifests/" || exit 1
    done
    timeout 60 systemctl restart kubelet 9>&- || told no-kubelet
    mark started || exit 1
    echo '::slipway changed start'
fi
if [ "$verb" = clean ]; then
    printf '%s' "$wish" >"$done.new" && sync "$done.new" && mv "$done.new" "$done" || exit 1
    rm -rf "$data/slipway-old" "$data/slipway-new" "$directory"
    echo '::slipway changed clean'
fi
told "$verb"
