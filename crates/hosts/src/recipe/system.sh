# Operating system, prepared marker, kernel settings and modules.

# Sets sw_os and sw_os_version from os-release, which is read and never run.
sw_system() {
    sw_os=
    sw_os_version=
    for sw_release in /etc/os-release /usr/lib/os-release; do
        [ -r "$sw_release" ] || continue
        while IFS='=' read -r sw_key sw_value; do
            sw_value=${sw_value#[\"\']}
            sw_value=${sw_value%[\"\']}
            case $sw_key in
            ID) sw_os=$sw_value ;;
            VERSION_ID) sw_os_version=$sw_value ;;
            esac
        done <"$sw_release"
        break
    done
}

# Fails on a system that we do not know. Debian's testing has no version: it is newer.
sw_supported() {
    sw_system
    sw_major=${sw_os_version%%.*}
    case $sw_major in
    *[!0-9]*) sw_major=0 ;;
    esac
    case $sw_os in
    debian) [ "${sw_major:-99}" -lt 12 ] || return 0 ;;
    ubuntu) [ "${sw_major:-0}" -lt 22 ] || return 0 ;;
    esac
    sw_fail HOST-009 "the system is ${sw_os:-unknown} ${sw_os_version:-without a version}, which we do not know how to prepare"
}

sw_false() { sw_fail HOST-016 "the prepared marker promises $1"; }

# Whether the host is still to be prepared for $1: without a marker the system must be one that we
# know; a marker must keep what it promises and promise what $2 lists.
sw_unprepared() {
    sw_marker=/etc/slipway/prepared.d/image
    if [ ! -e "$sw_marker" ]; then
        sw_supported
        return 0
    fi
    sw_slurp "$sw_marker"
    case $sw_all in
    "slipway-prepared-1$sw_line"*) ;;
    *) sw_fail HOST-016 'the prepared marker does not begin with slipway-prepared-1' ;;
    esac
    case $sw_line$sw_all in
    *"${sw_line}purpose $1$sw_line"*) ;;
    *) sw_fail HOST-016 "the prepared marker does not name the purpose $1" ;;
    esac
    for sw_tool in $2; do
        case $sw_line$sw_all in
        *"${sw_line}program $sw_tool$sw_line"*) ;;
        *) sw_fail HOST-016 "the prepared marker does not promise the program $sw_tool, which a $1 needs" ;;
        esac
    done
    while read -r sw_word sw_name sw_value; do
        case $sw_word in
        slipway-prepared-1 | purpose | '' | '#'*) ;;
        program) command -v "$sw_name" >/dev/null || sw_false "the program $sw_name, which is not there" ;;
        file) [ -f "$sw_name" ] || sw_false "the file $sw_name, which is not there" ;;
        module) sw_loaded "$sw_name" || sw_false "the kernel module $sw_name, which is not loaded" ;;
        sysctl)
            sw_knob "$sw_name"
            [ "$sw_live" = "$sw_value" ] || sw_false "$sw_name = $sw_value, but it is ${sw_live:-missing}"
            ;;
        *) sw_false "\"$sw_word\", a word that we do not know" ;;
        esac
    done <"$sw_marker"
    sw_fact prepared-by image
    return 1
}

sw_knobs=

# Sets sw_at to the file of a setting.
sw_knob_at() {
    sw_at=/proc/sys
    sw_left=$1.
    while [ -n "$sw_left" ]; do
        sw_at=$sw_at/${sw_left%%.*}
        sw_left=${sw_left#*.}
    done
}

# Reads many settings at once, for sw_knob.
sw_sysctls() {
    sw_paths=
    for sw_one in "$@"; do
        sw_knob_at "$sw_one"
        sw_paths="$sw_paths $sw_at"
    done
    # shellcheck disable=SC2086 # it is split on purpose
    sw_knobs=$sw_line$(grep -s '' /dev/null $sw_paths)$sw_line
}

# Sets sw_at to the file of a setting, and sw_live to its value with single spaces. A builtin
# cannot read it: it takes one byte at a time, and the kernel gives a number at once or not. With
# a second word it is read anew.
sw_knob() {
    sw_knob_at "$1"
    sw_live=
    case ${2-$sw_knobs} in
    *"$sw_line$sw_at:"*)
        sw_live=${sw_knobs#*"$sw_line$sw_at:"}
        sw_live=${sw_live%%"$sw_line"*}
        ;;
    *) [ ! -r "$sw_at" ] || sw_live=$(cat "$sw_at" 2>/dev/null) ;;
    esac
    set -f
    # shellcheck disable=SC2086 # it is split on purpose
    set -- $sw_live
    set +f
    sw_live=$*
}

# Whether the live value $1 does for the wish $2; with $3 at-least a higher one does, too.
sw_enough() {
    [ "$1" != "$2" ] || return 0
    [ "$3" = at-least ] || return 1
    case $1 in
    '' | *[!0-9]*) return 1 ;;
    esac
    # A number of more digits is larger, also where the shell cannot count that far.
    [ "${#1}" -le "${#2}" ] || return 0
    [ "${#1}" -ge "${#2}" ] || return 1
    [ "$1" -ge "$2" ]
}

# A kernel setting, kept and live: key, value, exactly or at-least, SHA-256 and size of its file.
# A namespace may not let us write it: that is told.
sw_sysctl() {
    sw_conf=/etc/sysctl.d/90-slipway-$1.conf
    sw_knob "$1"
    sw_before=$sw_live
    if [ "$3" = at-least ] && [ ! -e "$sw_conf" ] && [ "$sw_live" != "$2" ] && sw_enough "$sw_live" "$2" "$3"; then
        sw_unchanged "sysctl $1"
        return 0
    fi
    if [ -e "$sw_at" ] && [ ! -e "$sw_home/sysctl/$1" ]; then sw_keep "$sw_home/sysctl/$1" "$sw_live"; fi
    sw_write "$sw_conf" 644 root:root "$4" "$5" plain "-$1 = $2$sw_line"
    if ! sw_enough "$sw_before" "$2" "$3"; then
        sw_knob_at "$1"
        [ ! -e "$sw_at" ] || (printf '%s\n' "$2" >"$sw_at") 2>/dev/null || :
        sw_knob "$1" now
        if sw_enough "$sw_live" "$2" "$3"; then
            sw_did=1
        else
            sw_fact "sysctl.$1" "cannot be set here, is ${sw_live:-missing}"
        fi
    fi
    sw_told "sysctl $1"
}

# Gives every setting the value it had before us, and takes our files away.
sw_restored() {
    sw_did=0
    for sw_conf in "$sw_home"/sysctl/*; do
        [ -f "$sw_conf" ] || continue
        sw_slurp "$sw_conf"
        sw_old=${sw_all%"$sw_line"}
        sw_knob "${sw_conf##*/}" now
        if [ "$sw_live" != "$sw_old" ] && [ -e "$sw_at" ]; then
            (printf '%s\n' "$sw_old" >"$sw_at") 2>/dev/null || sw_fact "sysctl.${sw_conf##*/}" "cannot be set here, is $sw_live"
        fi
        rm -f "/etc/sysctl.d/90-slipway-${sw_conf##*/}.conf" && rm -f "$sw_conf"
        sw_did=1
    done
    for sw_conf in /etc/sysctl.d/90-slipway-*.conf /etc/sysctl.d/.slipway-new.*; do
        [ -e "$sw_conf" ] || continue
        rm -f "$sw_conf" || sw_why /etc/sysctl.d 0 "removing $sw_conf"
        sw_did=1
    done
    sw_prune /etc/sysctl.d
    sw_told 'sysctls restored'
}

# Whether a kernel module is there, loaded or built in.
sw_loaded() {
    [ ! -d "/sys/module/$1" ] || return 0
    while read -r sw_word sw_name; do
        [ "${sw_name:-$sw_word}" != "$1" ] || return 0
    done </proc/filesystems
    return 1
}

# A kernel module, now and at each boot: name, SHA-256 and size of its file. In a container it
# cannot be loaded: that is told.
sw_module() {
    sw_write "/etc/modules-load.d/slipway-$1.conf" 644 root:root "$2" "$3" plain "$1$sw_line"
    sw_file_did=$sw_did
    if ! sw_loaded "$1"; then
        if command -v modprobe >/dev/null && modprobe -q "$1" 2>/dev/null && sw_loaded "$1"; then
            sw_file_did=1
        else
            sw_fact "module.$1" 'cannot be loaded here'
        fi
    fi
    sw_did=$sw_file_did
    sw_told "module $1"
}
