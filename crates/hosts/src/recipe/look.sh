# What is to be seen of a host, with three forks at most.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
cd / || exit 1

sw_fact() { printf '::slipway fact %s %s\n' "$1" "$2"; }
for sw_tool in stat date; do
    command -v "$sw_tool" >/dev/null || {
        printf '::slipway failed HOST-008 the program %s is missing\n' "$sw_tool"
        exit 1
    }
done
sw_read() {
    sw_read=
    IFS= read -r sw_read 2>/dev/null <"$1" || :
}

# A host that is a namespace shares the boot id of its machine; the start of its init tells.
sw_read /proc/1/stat
# shellcheck disable=SC2086 # it is split on purpose
set -- ${sw_read##*) }
sw_read /proc/sys/kernel/random/boot_id
sw_fact boot "$sw_read.${20:-}"
sw_read /proc/sys/kernel/osrelease
sw_fact kernel "$sw_read"
sw_system
sw_fact system "${sw_os:-unknown} $sw_os_version"
sw_read /proc/uptime
sw_fact uptime "${sw_read%% *}"
if [ -d /run/systemd/system ]; then sw_init=systemd; else sw_init=lite; fi
sw_fact level "$sw_init"
sw_read /etc/slipway/prepared
sw_fact prepared "$sw_read"
while read -r sw_path sw_all sw_free; do
    sw_fact "disk.$sw_path" "$sw_free $sw_all"
done <<END
$(stat -f -c '%n %b %a' / /var)
END

sw_names=
for sw_one in /var/lib/slipway/services/*; do
    [ -f "$sw_one" ] || continue
    sw_read "$sw_one"
    case $sw_read in
    stopped* | kept*) ;;
    *) sw_names="$sw_names ${sw_one##*/}" ;;
    esac
done
# Sets sw_state to whether the process that the file $1 names is the one that was started.
sw_alive() {
    sw_state=stopped
    [ -s "$1" ] || return 0
    read -r sw_pid sw_start sw_runs <"$1" || return 0
    sw_read "/proc/$sw_pid/stat"
    [ -n "$sw_read" ] || return 0
    # shellcheck disable=SC2086 # it is split on purpose
    set -- ${sw_read##*) }
    [ "$1" = Z ] || [ "${20:-}" != "$sw_start" ] || sw_state=running
}
case $sw_init$sw_names in
systemd | lite) ;;
systemd*)
    # shellcheck disable=SC2086 # it is split on purpose
    sw_states=$(systemctl is-active $sw_names 2>/dev/null)
    # shellcheck disable=SC2086 # it is split on purpose
    set -- $sw_names
    while read -r sw_state; do
        [ "$#" -gt 0 ] || break
        [ "$sw_state" = active ] || [ "$sw_state" = reloading ] || sw_state=stopped
        [ "$sw_state" = stopped ] || sw_state=running
        sw_fact "service.$1" "$sw_state"
        shift
    done <<END
$sw_states
END
    ;;
*)
    for sw_one in $sw_names; do
        sw_alive "/run/slipway/$sw_one.child"
        sw_fact "service.$sw_one" "$sw_state"
    done
    ;;
esac
sw_fact clock "$(date +%s.%N)"
