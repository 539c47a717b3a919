#!/bin/sh
# Keeps programs running where PID 1 is no service manager. Written by slipway.
#
# supervise start|stop|restart|reload|state NAME, supervise log NAME LINES, supervise boot
#
# /etc/slipway/services/NAME says what to run; /run/slipway holds who runs it; the log in
# /var/log/slipway is bounded. A process is known by its number and its start, so that a number
# that was given to somebody else is never signalled.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
umask 022
cd / || exit 1

verb=${1:-}
name=${2:-}
self=/usr/local/lib/slipway/supervise
definition=/etc/slipway/services/$name
state=/run/slipway/$name
log=/var/log/slipway/$name
log_limit=1048576

# Sets began to when process $1 started; fails where it is gone or only waits to be buried.
began() {
    began=
    IFS= read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    # shellcheck disable=SC2086 # it is split on purpose
    set -- ${stat##*) }
    [ "$1" != Z ] && [ "$1" != X ] || return 1
    began=${20}
}

# Sets pid, start and runs from the file $1; fails unless that very process is alive.
alive() {
    pid='' start='' runs=''
    [ -s "$1" ] || return 1
    read -r pid start runs <"$1" || return 1
    began "$pid" 2>/dev/null && [ "$began" = "$start" ]
}

note() {
    began "$2" || return 0
    printf '%s %s %s\n' "$2" "$began" "$3" >"$1.new" && mv -f "$1.new" "$1"
}

# Kills the process of the file $1 and all of its group, and sees it gone.
slay() {
    alive "$1" || return 0
    kill -s KILL -- "-$pid" 2>/dev/null
    polls=0
    while alive "$1" && [ "$polls" -lt 100 ]; do
        polls=$((polls + 1))
        sleep 0.05
    done
}

# Ends the process of the file $1: asks first, insists after ten seconds.
end() {
    alive "$1" || return 0
    kill -s TERM "$pid" 2>/dev/null
    polls=0
    while alive "$1"; do
        if [ "$polls" -ge 200 ]; then
            kill -s KILL "$pid" 2>/dev/null
        fi
        [ "$polls" -lt 400 ] || return 1
        polls=$((polls + 1))
        sleep 0.05
    done
}

start() {
    [ -f "$definition" ] || {
        echo "there is no service $name" >&2
        return 1
    }
    alive "$state.pid" && return 0
    # A supervisor that was killed leaves its program behind; two of them would fight.
    bury
    mkdir -p /run/slipway /var/log/slipway || return 1
    rm -f "$state.child" "$state.pid"
    setsid "$self" run "$name" </dev/null >/dev/null 2>&1 9>&- &
    polls=0
    until alive "$state.child"; do
        polls=$((polls + 1))
        [ "$polls" -lt 100 ] || return 1
        [ ! -s "$state.child" ] || return 0
        sleep 0.05
    done
}

# Ends what a supervisor left, with all that it had started.
bury() {
    group=
    alive "$state.child" && group=$pid
    end "$state.child" || return 1
    [ -z "$group" ] || kill -s KILL -- "-$group" 2>/dev/null
    slay "$state.log"
}

stop() {
    # The supervisor asks its program. If it must be killed itself, there was time enough.
    asked=
    if alive "$state.pid"; then asked=1; fi
    end "$state.pid" || return 1
    [ -z "$asked" ] || slay "$state.child"
    bury || return 1
    rm -f "$state.pid" "$state.child" "$state.log" "$state.pipe" "$state.lock"
    return 0
}

# Writes what the program says into the log, which is turned over when it is long. Where the disk
# is full its words are lost, and it is never held up.
keep() {
    while :; do
        size=$(stat -c %s "$log" 2>/dev/null) || size=0
        [ "$size" -lt "$log_limit" ] || mv -f "$log" "$log.1"
        dd bs=4096 count=64 status=none 2>/dev/null >>"$log" ||
            dd bs=4096 count=64 status=none of=/dev/null 2>/dev/null
    done
}

# The supervisor itself: one for each name, as long as the service is to run.
run() {
    exec 8>"$state.lock"
    flock -n 8 || exit 0
    note "$state.pid" "$$" 0
    rm -f "$state.pipe"
    mkfifo -m 600 "$state.pipe" || exit 1
    exec 3<>"$state.pipe"
    setsid "$self" keep "$name" <&3 3>&- 8>&- &
    logger=$!
    note "$state.log" "$logger" 0
    child='' ending='' runs=0 pause=0.2
    trap 'ending=1; [ -z "$child" ] || kill -s TERM "$child" 2>/dev/null' TERM INT HUP
    while [ -z "$ending" ]; do
        runs=$((runs + 1))
        read -r up _ </proc/uptime
        "$self" program "$name" >&3 2>&3 3>&- 8>&- &
        child=$!
        note "$state.child" "$child" "$runs"
        [ -z "$ending" ] || kill -s TERM "$child" 2>/dev/null
        while :; do
            status=0
            wait "$child" || status=$?
            began "$child" || break
        done
        # What it left running goes with it.
        kill -s KILL -- "-$child" 2>/dev/null
        child=
        [ -z "$ending" ] || break
        read -r now _ </proc/uptime
        [ $((${now%.*} - ${up%.*})) -lt 10 ] || pause=0.2
        printf 'slipway: %s ended with status %s, starts again in %s s\n' "$name" "$status" "$pause" >&3
        sleep "$pause" 8>&- 3>&- &
        wait "$!"
        case $pause in
        0.2) pause=0.5 ;;
        0.5) pause=1 ;;
        1) pause=2 ;;
        2) pause=5 ;;
        5) pause=10 ;;
        *) pause=30 ;;
        esac
    done
    kill -s KILL -- "-$logger" 2>/dev/null
    rm -f "$state.child" "$state.log" "$state.pipe" "$state.pid"
}

case $verb in
start) start ;;
stop) stop ;;
restart) stop && start ;;
reload)
    signal=HUP
    # shellcheck disable=SC1090 # the definition is ours
    . "$definition" && alive "$state.child" && kill -s "$signal" "$pid"
    ;;
state)
    if ! alive "$state.pid"; then
        echo stopped
    elif alive "$state.child"; then
        echo "running $pid.$start"
    else
        echo starting
    fi
    ;;
log)
    for part in "$log.1" "$log"; do [ ! -f "$part" ] || cat "$part"; done | tail -n "${3:-20}"
    ;;
boot)
    for definition in /etc/slipway/services/*; do
        [ ! -f "$definition" ] || "$self" start "${definition##*/}"
    done
    ;;
run) run ;;
keep) keep ;;
program)
    # shellcheck disable=SC1090 # the definition is ours
    . "$definition" && exec setsid "$@" </dev/null
    ;;
*)
    echo 'usage: supervise start|stop|restart|reload|state|log|boot NAME' >&2
    exit 2
    ;;
esac
