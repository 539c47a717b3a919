# Runs a systemd host: begins it, begins it again when it reboots, and ends when it is shut down.
#
# We are the first process of a process namespace: whoever kills us cuts the power of the host. As with
# a lite host, nothing begins before somebody wrote down who we are.
#
# Arguments: the host's directory, its key, its name, its bridge, its address with prefix, its gateway, its
# hardware address.
set -eu
directory=$1
key=$2
name=$3
bridge=$4
address=$5
gateway=$6
hardware=$7

read -r line </proc/self/stat
# shellcheck disable=SC2086 # the fields of the line
set -- $line
echo "ready $1 ${22}"
exec 2>>"$directory/log"
mount --all --fstab "$directory/fstab" >&2
# From here on we look at processes by the numbers that we have for them.
mount -t proc proc /proc
# What nspawn notes about its containers ends with us.
mkdir -p /run/systemd
mount -t tmpfs -o mode=755 slipway /run/systemd
read -r word
[ "$word" = go ]
exec </dev/null >>"$directory/log"

# A control group of its own in every hierarchy: else the pods of all hosts would meet.
for procs in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do
    [ -e "$procs" ] || continue
    above=${procs%/cgroup.procs}
    own=$above/slipway-$key
    mkdir -p "$own"
    for set in cpuset.cpus cpuset.mems; do
        [ ! -e "$own/$set" ] || [ -n "$(cat "$own/$set")" ] || cat "$above/$set" >"$own/$set"
    done
    echo 0 >"$own/cgroup.procs"
done

while :; do
    # What the last boot left: control groups inside of ours, and the cable.
    find /sys/fs/cgroup -mindepth 2 -depth -type d -path "*/slipway-$key/*" -exec rmdir {} + || :
    ip link delete "vb-$key" 2>/dev/null || :
    status=0
    systemd-nspawn --quiet --keep-unit --register=no --console=pipe --kill-signal=SIGRTMIN+3 \
        --directory="$directory/root" --machine="$key" --hostname="$name" \
        --network-bridge="$bridge" --system-call-filter=@keyring \
        --resolv-conf=off --timezone=off --link-journal=no \
        --bind=/dev/net/tun --bind="$directory/disk/containerd:/var/lib/containerd" \
        --setenv="SLIPWAY_ADDRESS=$address" --setenv="SLIPWAY_GATEWAY=$gateway" \
        --setenv="SLIPWAY_HARDWARE=$hardware" \
        /bin/sh /usr/lib/slipway/init &
    # A host that was cut off stays so when it boots: its cable is a new one.
    if [ -e "$directory/partitioned" ]; then
        while kill -0 $! && ! ip link set "vb-$key" down 2>/dev/null; do sleep 0.02; done
    fi
    wait $! || status=$?
    [ "$status" -eq 133 ] || exit "$status"
done
