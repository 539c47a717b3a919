# Tells the certificates of this control machine, without their keys: of each its name and its
# bytes, in base64 on one line. Changes nothing.
#
# Set before: directory.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
# The first certificate of a text, without its frame.
first() {
    sed -n '/BEGIN CERTIFICATE/,/END CERTIFICATE/{/-----/!p;/END CERTIFICATE/q;}' | tr -d '\n'
}
# Those that `kubeadm certs renew all` makes anew: authorities and what others put there stay as they are.
for one in apiserver apiserver-etcd-client apiserver-kubelet-client front-proxy-client \
    etcd/server etcd/peer etcd/healthcheck-client; do
    [ -r "$directory/pki/$one.crt" ] || continue
    printf '::slipway fact certificate %s %s\n' "pki/$one.crt" "$(first <"$directory/pki/$one.crt")"
done
# The kubelet renews its own.
for one in admin super-admin controller-manager scheduler; do
    [ -r "$directory/$one.conf" ] || continue
    text=$(sed -n 's/^ *client-certificate-data: *//p' "$directory/$one.conf" | head -n 1 | base64 -d 2>/dev/null | first)
    printf '::slipway fact certificate %s %s\n' "$one.conf" "$text"
done
