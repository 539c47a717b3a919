# What a systemd host needs before systemd, so that Kubernetes runs on it as on any machine.
set -eu

# They come read-only, and container runtimes make groups in them.
while read -r _ at kind options _; do
    case $kind:$options in
    cgroup:ro* | cgroup2:ro*) mount -o remount,rw,bind "$at" || : ;;
    esac
done </proc/self/mounts

# The kubelet insists on these; this way the machine's own stay as they are.
mkdir -p /run/slipway
settle() {
    [ -e "/proc/sys/$1" ] || return 0
    file=/run/slipway/$(echo "$1" | tr / .)
    echo "$2" >"$file"
    mount --bind "$file" "/proc/sys/$1"
}
settle vm/overcommit_memory 1
settle vm/panic_on_oom 0
settle kernel/panic 10
settle kernel/panic_on_oops 1
[ ! -e /dev/kmsg ] || rm -f /dev/kmsg || mount --bind /dev/null /dev/kmsg
[ -e /dev/kmsg ] || ln -s null /dev/kmsg

ip -batch - <<END
link set lo up
link set host0 name eth0 address $SLIPWAY_HARDWARE
address add $SLIPWAY_ADDRESS dev eth0
link set eth0 up
route add default via $SLIPWAY_GATEWAY
END
unset SLIPWAY_ADDRESS SLIPWAY_GATEWAY SLIPWAY_HARDWARE
exec /lib/systemd/systemd
