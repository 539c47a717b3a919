# The first process of a lite host: what must run at boot, and sshd for ever.
#
# Waiting for one child takes every other that has ended along, so nothing stays a zombie.
umask 022
mkdir -p /run/sshd /run/lock
trap '' INT HUP

[ ! -x /usr/local/lib/slipway/supervise ] || /usr/local/lib/slipway/supervise boot &

for program in /etc/slipway/boot.d/*; do
    [ -x "$program" ] && "$program" &
done

while :; do
    /usr/sbin/sshd -D -e &
    wait $!
    sleep 0.2
done
