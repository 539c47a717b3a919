# Starts the kubelet of this node again, once for each wish: the API that it knows has gone back in
# time.
#
# Set before: wish.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
done=/var/lib/slipway/restored
if [ -e "$done" ] && [ "$(cat "$done")" = "$wish" ]; then
    echo '::slipway unchanged kubelet'
    echo '::slipway fact restore done'
    exit 0
fi
timeout 60 systemctl restart kubelet || exit 1
mkdir -p "${done%/*}" && printf '%s' "$wish" >"$done" && sync "$done" || exit 1
echo '::slipway changed kubelet'
echo '::slipway fact restore done'
