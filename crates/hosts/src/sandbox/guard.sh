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
# What the machine had before hosts needed more.
restore() {
    [ -f "$directory/$1" ] || return 0
    cat "$directory/$1" >"/proc/sys/$2"
    rm -f "$directory/$1"
}
restore watches fs/inotify/max_user_instances
restore neighbours-soft net/ipv4/neigh/default/gc_thresh2
restore neighbours net/ipv4/neigh/default/gc_thresh3
rm -rf "$directory/hosts" "$directory/programs"
