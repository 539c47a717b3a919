# Services, through systemd where it is PID 1, else through our own supervision.

sw_supervise=/usr/local/lib/slipway/supervise

# Sets sw_now to running, stopped or absent, and sw_main to what tells one run from another.
sw_systemd_state() {
    sw_now=stopped
    sw_main=
    sw_reload=
    sw_enabled=
    while IFS='=' read -r sw_key sw_value; do
        case $sw_key=$sw_value in
        LoadState=not-found) sw_now=absent ;;
        ActiveState=active | ActiveState=reloading) sw_now=running ;;
        ActiveState=activating) sw_now=starting ;;
        NeedDaemonReload=yes) sw_reload=1 ;;
        UnitFileState=enabled* | UnitFileState=static | UnitFileState=indirect) sw_enabled=1 ;;
        InvocationID=*) sw_main=$sw_value ;;
        esac
    done <<END
$(systemctl show -p LoadState -p ActiveState -p NeedDaemonReload -p UnitFileState -p InvocationID "$1.service")
END
}

sw_systemd_do() {
    # A unit file that was just written is not known until systemd reads its files again.
    if [ -n "$sw_reload" ] || [ "$sw_now" = absent ]; then timeout 60 systemctl daemon-reload; fi
    case $1 in
    restart) timeout 60 systemctl -q enable "$2.service" 2>/dev/null ;;
    stop) timeout 60 systemctl -q disable "$2.service" 2>/dev/null ;;
    esac
    case $1 in
    again) set -- restart "$2" ;;
    esac
    timeout 120 systemctl "$1" "$2.service"
}

sw_systemd_log() { timeout 10 journalctl -q --no-pager -o cat -n "$2" -u "$1.service" 2>/dev/null; }

sw_own_state() {
    sw_reload=
    sw_enabled=1
    sw_now=absent
    sw_main=
    [ -f "/etc/slipway/services/$1" ] || return 0
    sw_now=$("$sw_supervise" state "$1" 2>/dev/null) || sw_now=stopped
    sw_main=${sw_now#* }
    sw_now=${sw_now%% *}
}

sw_own_do() {
    case $1 in
    again) set -- restart "$2" ;;
    esac
    "$sw_supervise" "$1" "$2" 9>&-
}

sw_own_log() { "$sw_supervise" log "$1" "$2"; }

# Fails unless a service that was just started stays up for half a second.
sw_stays() {
    sw_polls=0
    sw_run_of=
    while [ "$sw_polls" -lt 5 ]; do
        sleep 0.1
        "sw_${sw_init}_state" "$1"
        case $sw_now in
        running) [ "$sw_main" = "${sw_run_of:-$sw_main}" ] || sw_died "$1" ;;
        starting) [ -z "$sw_run_of" ] || sw_died "$1" ;;
        *) sw_died "$1" ;;
        esac
        [ "$sw_now" != running ] || sw_run_of=$sw_main
        sw_polls=$((sw_polls + 1))
    done
    [ -n "$sw_run_of" ] || sw_died "$1"
}

# Tells the last lines of a service's log and fails.
sw_died() {
    sw_last=
    while IFS= read -r sw_one; do
        [ -z "$sw_one" ] || sw_last=$sw_one
        printf '| %s\n' "$sw_one"
    done <<END
$("sw_${sw_init}_log" "$1" 20)
END
    sw_fail HOST-015 "the service $1 does not stay up${sw_last:+: $sw_last}"
}

sw_begin() {
    "sw_${sw_init}_do" "$1" "$2" || sw_died "$2"
    sw_stays "$2"
}

# Remembers, before it is first changed, how a service was that neither we nor a package of ours
# brought: whoever had it running has it running again when the host is given back.
sw_note_before() {
    if [ "$sw_init" = own ] || [ -n "$sw_had" ]; then return 0; fi
    if [ -e "/etc/systemd/system/$1.service" ] || [ -e "$sw_home/before/$1" ]; then return 0; fi
    sw_slurp "$sw_home/packages"
    case $sw_line$sw_all in
    *"$sw_line$1$sw_line"*) sw_keep "$sw_home/before/$1" ours ;;
    *) sw_keep "$sw_home/before/$1" "$sw_now$sw_enabled" ;;
    esac
}

# A service: name and state. One that is owed a restart gets it, whenever we died.
sw_service() {
    sw_slurp "$sw_home/services/$1"
    sw_had=${sw_all%"$sw_line"}
    sw_owed=
    [ ! -e "$sw_home/owed/$1" ] || sw_owed=1
    "sw_${sw_init}_state" "$1"
    sw_did=0
    case $2 in
    running)
        if [ "$sw_now" = absent ] && [ "$sw_init" = own ]; then
            sw_fact "service.$1" 'is left out: nothing here can run it'
        elif [ "$sw_now$sw_owed" != running ] || [ "$sw_had" != running ] || [ -z "$sw_enabled" ]; then
            sw_note_before "$1"
            sw_begin restart "$1"
            sw_keep "$sw_home/services/$1" running
            sw_did=1
        fi
        ;;
    kept)
        if [ "$sw_now$sw_owed" = running1 ]; then
            sw_begin again "$1"
            sw_did=1
        fi
        ;;
    stopped | absent) sw_halt "$1" "$2" ;;
    esac
    [ -z "$sw_owed" ] || rm -f "$sw_home/owed/$1"
    sw_told "service $1"
}

sw_halt() {
    if [ "$sw_now" = running ] || [ "$sw_now" = starting ] || { [ "$sw_init" = systemd ] && [ "$sw_now$sw_enabled" = stopped1 ]; }; then
        "sw_${sw_init}_do" stop "$1" || sw_died "$1"
        "sw_${sw_init}_state" "$1"
        [ "$sw_now" != running ] || sw_fail HOST-015 "the service $1 does not stop"
        sw_did=1
    fi
    case $2 in
    stopped)
        [ "$sw_now" = absent ] || sw_keep "$sw_home/services/$1" stopped
        return 0
        ;;
    esac
    for sw_one in "/etc/systemd/system/$1.service" "/etc/slipway/services/$1" "$sw_home/services/$1" "/var/log/slipway/$1" "/var/log/slipway/$1.1"; do
        [ -e "$sw_one" ] || continue
        rm -f "$sw_one" || sw_why "${sw_one%/*}" 0 "removing $sw_one"
        sw_did=1
    done
    [ ! -d /var/log/slipway ] || rmdir /var/log/slipway 2>/dev/null || :
    if [ "$sw_init$sw_did" = systemd1 ]; then timeout 60 systemctl daemon-reload; fi
}
