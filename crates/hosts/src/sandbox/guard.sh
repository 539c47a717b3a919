# Ends all hosts of a sandbox when whoever opened it ends, however that happens.
#
# That one holds the other end of our standard input. Our standard output is its lock: nobody else
# opens the sandbox before we are done.
#
# Arguments: the directory of the sandbox, its bridge.
directory=$1
bridge=$2
trap '' INT HUP TERM
while read -r _; do :; done

for host in "$directory"/hosts/*; do
    [ -d "$host" ] && sh "$directory/programs/end.sh" remove "$host" "${host##*/}" &
done
wait
ip link delete "$bridge" 2>/dev/null
# What the machine had before systemd hosts needed more.
if [ -f "$directory/watches" ]; then
    cat "$directory/watches" >/proc/sys/fs/inotify/max_user_instances
    rm -f "$directory/watches"
fi
rm -rf "$directory/hosts" "$directory/programs"
