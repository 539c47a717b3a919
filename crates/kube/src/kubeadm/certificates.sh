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
for one in "$directory"/pki/*.crt "$directory"/pki/etcd/*.crt; do
    [ -r "$one" ] || continue
    printf '::slipway fact certificate %s %s\n' "${one#"$directory"/}" "$(first <"$one")"
done
# The kubelet renews its own.
for one in admin super-admin controller-manager scheduler; do
    [ -r "$directory/$one.conf" ] || continue
    text=$(sed -n 's/^ *client-certificate-data: *//p' "$directory/$one.conf" | head -n 1 | base64 -d 2>/dev/null | first)
    printf '::slipway fact certificate %s %s\n' "$one.conf" "$text"
done
