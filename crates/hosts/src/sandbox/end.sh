# Ends a host: `halt` cuts its power and keeps its disk, `remove` leaves nothing of it.
#
# Arguments: the wish, the host's directory, its key.
set -u
wish=$1
directory=$2
key=$3

# Whether the process that was written down still lives; another with its number began at another time.
alive() {
    read -r line 2>/dev/null <"/proc/$1/stat" || return 1
    began=$2
    # shellcheck disable=SC2086 # the fields of the line, of which the second may hold blanks
    set -- ${line##*) }
    [ "$1" != Z ] && [ "$1" != X ] && [ "${20}" = "$began" ]
}

# Without its record a host is half-made, and the next to look removes it.
[ "$wish" != remove ] || rm -f "$directory/record.json"

if [ -f "$directory/init" ] && read -r pid start <"$directory/init"; then
    if alive "$pid" "$start"; then
        kill -KILL "$pid"
        while alive "$pid" "$start"; do sleep 0.01; done
    fi
    rm -f "$directory/init"
fi

ip link delete "vb-$key" 2>/dev/null

# Its processes leave their groups only when the kernel is done with them.
left() {
    for group in "/sys/fs/cgroup/slipway-$key" /sys/fs/cgroup/*/"slipway-$key"; do
        [ -d "$group" ] && return 0
    done
    return 1
}
rounds=500
while left; do
    for group in "/sys/fs/cgroup/slipway-$key" /sys/fs/cgroup/*/"slipway-$key"; do
        [ -d "$group" ] && find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
    done
    left || break
    rounds=$((rounds - 1))
    [ "$rounds" -gt 0 ] || { echo "its control groups are still in use" >&2; exit 1; }
    sleep 0.02
done

[ "$wish" = remove ] || exit 0
if grep -q " $directory/disk " /proc/self/mounts; then
    umount -l "$directory/disk" || exit 1
fi
rm -rf --one-file-system "$directory" || rm -rf --one-file-system "$directory"
