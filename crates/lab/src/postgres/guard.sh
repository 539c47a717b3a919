# Owns one PostgreSQL server and its directory for as long as standard input is open.
#
# Whoever started us holds the other end and closes it by ending, however that happens: then the
# server is stopped and the directory removed. Until then each line is a wish, and each wish gets
# one line as its answer. Being the parent of the server we can never signal somebody else's process.
#
# Arguments: the directory, the directory of the programs, then settings for the server.
directory=$1
programs=$2
shift 2

# The server must not read our wishes, and nobody else needs our standard error.
exec 3<&0 </dev/null 2>>"$directory/log"
server=

# Looks into /proc because a dead child that was not waited for still takes signals.
alive() {
    read -r line <"/proc/$1/stat" || return 1
    case $line in *") Z "*) return 1 ;; esac
}

# Waits for the end of the server; after ten seconds it is killed.
ended() {
    rounds=500
    while alive "$server"; do
        [ "$rounds" -gt 0 ] || kill -KILL "$server"
        rounds=$((rounds - 1))
        sleep 0.02
    done
    wait "$server"
    server=
}

stop() {
    [ -n "$server" ] || return
    kill -INT "$server"
    ended
}

# As the machine losing power: the sessions die with the server, not a moment later.
crash() {
    [ -n "$server" ] || return
    sessions=$(cat "/proc/$server/task/$server/children")
    kill -KILL "$server"
    for session in $sessions; do
        kill -KILL "$session"
    done
    ended
    for session in $sessions; do
        while alive "$session"; do sleep 0.02; done
    done
}

if "$programs/initdb" --pgdata="$directory/data" --username=postgres --auth=trust --encoding=UTF8 \
    --locale=C --no-sync >>"$directory/log" 3<&-; then
    echo made
else
    echo failed
fi

while read -r wish port <&3; do
    case $wish in
    begin)
        "$programs/postgres" -D "$directory/data" -p "$port" -k "$directory" "$@" \
            >>"$directory/log" 3<&- &
        server=$!
        echo "$server"
        ;;
    stop)
        stop
        echo stopped
        ;;
    crash)
        crash
        echo crashed
        ;;
    esac
done

stop
# What a killed server could not give back to the kernel.
if [ -f "$directory/data/postmaster.pid" ]; then
    ipcrm -m "$(sed -n '7s/.* //p' "$directory/data/postmaster.pid")"
fi
cd /
rm -rf "$directory"
