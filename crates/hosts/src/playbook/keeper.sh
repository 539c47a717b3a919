# Keeps one run of a program: DIRECTORY PROGRAM WORD…, in a session of its own.
#
# Standard input stays open for as long as somebody waits for the run. A line means that the agent
# has its key and the program may start; the end, for whatever reason, that nobody waits any more.
# However the run ends, everything that it started is ended too. Ansible puts what it starts into
# sessions of their own, so all of it is found by a word in its environment, which this shell and
# the agent do not have.
set -u
umask 077
dir=$1
shift
agent=

sweep() {
    [ -z "$agent" ] || kill -KILL "$agent"
    # What is just being started is seen at the second look, so it takes two that find nothing.
    looks=0
    empty=0
    while [ "$empty" -lt 2 ] && [ "$looks" -lt 200 ]; do
        looks=$((looks + 1))
        empty=$((empty + 1))
        # shellcheck disable=SC2013 # these paths have no blanks
        for one in $(grep -lsF -e "SLIPWAY_PLAYBOOK_RUN=$dir" /proc/[0-9]*/environ); do
            empty=0
            one=${one%/environ}
            kill -KILL "${one#/proc/}"
        done
    done
    rm -rf -- "$dir"
}

# A signal ends the wait below, and the rest is done as ever.
trap : HUP INT PIPE TERM
exec 3<&0 </dev/null
ssh-agent -D -a "$dir/agent" >/dev/null 3<&- &
agent=$!
status=1
if read -r go <&3; then
    SLIPWAY_PLAYBOOK_RUN=$dir "$@" 3<&- &
    run=$!
    {
        while read -r go; do :; done
        kill -KILL "$run"
    } <&3 3<&- >/dev/null 2>&1 &
    watch=$!
    # What it says is for whoever waits; this shell has nothing to say, and nobody to hear it.
    exec 3<&- >/dev/null 2>&1
    wait "$run"
    status=$?
    kill -KILL "$watch"
fi
exec >/dev/null 2>&1
sweep
exit "$status"
