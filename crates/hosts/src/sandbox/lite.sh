# The first process of a lite host, as long as it still sees the machine's files.
#
# It runs in namespaces of its own and waits for a line: whoever started us first writes down who we
# are, so that no host can live that nobody knows of. Without that line we end, and everything with us.
#
# Arguments: the host's directory, its name, its address with prefix, its gateway.
set -eu
directory=$1
name=$2
address=$3
gateway=$4

# This is still the machine's /proc: it shows us as the machine does.
read -r line </proc/self/stat
# shellcheck disable=SC2086 # the fields of the line
set -- $line
echo "ready $1 ${22}"
exec 2>>"$directory/log"

# Every start is another boot.
read -r boot </proc/sys/kernel/random/uuid
echo "$boot" >"$directory/boot_id"
mount --all --fstab "$directory/fstab" >&2
# In a user namespace the kernel takes it from the program alone.
echo "$name" 2>/dev/null >/proc/sys/kernel/hostname || hostname "$name"

read -r word
[ "$word" = go ]
ip -batch - <<END
link set lo up
address add $address dev eth0
link set eth0 up
route add default via $gateway
END
# Whoever waited for it may have gone; the next one finds us alive.
trap '' PIPE
echo up 2>/dev/null || :
exec </dev/null >>"$directory/log"

cd "$directory/root"
pivot_root . .
umount -l .
cd /
exec /bin/sh /usr/lib/slipway/init
