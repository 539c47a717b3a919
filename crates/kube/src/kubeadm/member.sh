# Asks the member of etcd on this host for all members, and has the one removed that is named.
#
# Set before: name, peer (both empty where nobody is to go).
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
pki=/etc/kubernetes/pki/etcd
id=$(timeout 20 ctr -n k8s.io containers ls -q 'labels."io.kubernetes.container.name"==etcd' | while read -r one; do
    timeout 20 ctr -n k8s.io tasks ls 2>/dev/null | awk -v id="$one" '$1 == id && $3 == "RUNNING" { print id }'
done | head -n 1)
if [ -z "$id" ]; then
    echo '::slipway fact etcd silent'
    exit 0
fi
etcdctl() {
    timeout 30 ctr -n k8s.io tasks exec --exec-id "slipway-$$-$1-$2" "$id" etcdctl \
        --endpoints https://127.0.0.1:2379 --cacert "$pki/ca.crt" \
        --cert "$pki/healthcheck-client.crt" --key "$pki/healthcheck-client.key" \
        --command-timeout 20s "$@"
}
# ID, state, name, peers, clients, whether it only learns.
list=$(etcdctl member list -w simple 2>&1) || {
    printf '%s\n' "$list"
    echo '::slipway fact etcd silent'
    exit 0
}
if [ -n "$name$peer" ]; then
    gone=$(printf '%s\n' "$list" | awk -F ', ' -v name="$name" -v peer="$peer" '$3 == name || $4 == peer { print $1 }')
    for one in $gone; do
        said=$(etcdctl member remove "$one" 2>&1) || {
            printf '%s\n' "$said"
            echo '::slipway fact etcd refused'
            exit 0
        }
        printf '%s\n' "$said"
        echo "::slipway changed member $name"
    done
    [ -n "$gone" ] || echo "::slipway unchanged member $name"
fi
# Who only looks is also told how each of them is; one that is not well fails the question.
[ -n "$name$peer" ] || etcdctl endpoint health --cluster --command-timeout 3s 2>&1 |
    while IFS= read -r line; do printf '::slipway fact health %s\n' "$line"; done
printf '%s\n' "$list" | while IFS= read -r line; do printf '::slipway fact member %s\n' "$line"; done
echo '::slipway fact etcd answers'
