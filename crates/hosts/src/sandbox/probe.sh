# Tries once, in namespaces that end with us, all that a sandbox host is made of.
set -e
ip link add swprobe0 type bridge
ip link add swprobe1 type veth peer name swprobe2
mount -t tmpfs slipway /mnt
mkdir /mnt/lower /mnt/upper /mnt/work /mnt/root
options=lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work
mount -t overlay overlay -o "$options$1" /mnt/root
chown 1:1 /mnt/root
