# Packages of the distribution, of a mirror, or of a directory on the host.

export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 APT_LISTCHANGES_FRONTEND=none
sw_updated=

# Runs a tool, shows people what it says, and sets sw_ran to its status and sw_code to what its
# complaints mean.
sw_run() {
    exec 4>&1
    sw_ran=$(
        {
            "$@" 2>&1 9>&- 4>&- </dev/null
            printf '\nstatus %s\n' "$?"
        } | {
            sw_worst=
            sw_status=
            while IFS= read -r sw_one; do
                case $sw_one in
                'status '[0-9]*) sw_status=${sw_one#status } ;;
                *)
                    [ -z "$sw_one" ] || printf '| %s\n' "$sw_one" >&4
                    sw_code_of "$sw_one"
                    case $sw_code in
                    HOST-006 | HOST-007) sw_worst=$sw_code ;;
                    esac
                    case $sw_worst$sw_one in
                    *'frontend lock'* | *'Could not get lock'*) sw_worst=${sw_worst:-HOST-014} ;;
                    esac
                    ;;
                esac
            done
            printf '%s %s' "$sw_status" "$sw_worst"
        }
    )
    exec 4>&-
    sw_code=${sw_ran#* }
    sw_ran=${sw_ran%% *}
    [ "$sw_ran" = 0 ]
}

# apt-get, without questions, patient with a lock that somebody else holds and with sources.
sw_apt() {
    sw_run apt-get -q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 \
        -o APT::Install-Recommends=false -o Dpkg::Options::=--force-confdef \
        -o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 "$@"
}

# Fails with what the last tool complained of, else with a package that cannot be installed.
sw_unpacked() {
    case $sw_code in
    HOST-006) sw_fail HOST-006 "$1: no room is left" ;;
    HOST-007) sw_fail HOST-007 "$1: a filesystem is read-only" ;;
    esac
    sw_why /var/cache/apt 0 "$1"
    sw_why /var/lib/dpkg 0 "$1"
    sw_why /usr 0 "$1"
    sw_fail HOST-014 "$1 failed"
}

# Reads the indexes of the sources, all of them or those of the file $1, once in a program.
sw_update() {
    case " $sw_updated " in
    *" $1 "*) return 0 ;;
    esac
    sw_tries=0
    while :; do
        case $1 in
        all) sw_apt update ;;
        *) sw_apt update -o "Dir::Etc::sourcelist=$1" -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 ;;
        esac && break
        case $sw_code in
        HOST-006 | HOST-007) sw_unpacked 'reading the package indexes' ;;
        esac
        # apt does not wait for the lock of its indexes by itself.
        sw_tries=$((sw_tries + 1))
        [ "$sw_tries" -lt 5 ] || sw_unpacked 'reading the package indexes'
        sleep "$sw_tries"
    done
    sw_updated="$sw_updated $1"
}

# Sets sw_missing to those of the wishes NAME or NAME=VERSION that are not installed.
sw_look_for() {
    sw_names=
    for sw_one in $1; do sw_names="$sw_names ${sw_one%%=*}"; done
    # shellcheck disable=SC2016,SC2086 # dpkg-query reads the one, the other is split on purpose
    sw_have=$sw_line$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' $sw_names 2>/dev/null)$sw_line
    sw_missing=
    for sw_one in $1; do
        sw_version='*'
        case $sw_one in
        *=*) sw_version=${sw_one#*=} ;;
        esac
        case $sw_have in
        *"${sw_line}installed ${sw_one%%=*} "*) ;;
        *)
            sw_missing="$sw_missing $sw_one"
            continue
            ;;
        esac
        sw_rest=${sw_have#*"${sw_line}installed ${sw_one%%=*} "}
        # shellcheck disable=SC2254 # a version may be a pattern
        case ${sw_rest%%"$sw_line"*} in
        $sw_version) ;;
        *) sw_missing="$sw_missing $sw_one" ;;
        esac
    done
    sw_missing=${sw_missing# }
}

# Remembers what apt would bring to the host before it does: that, and nothing else, is purged
# when the host is given back. Packages that are only renewed were there before.
sw_foresee() {
    sw_told_by=$(apt-get -s -q -y -o APT::Install-Recommends=false "$@" 2>/dev/null 9>&-) || :
    while read -r sw_word sw_name sw_one; do
        case "$sw_word $sw_one" in
        'Inst ['*) ;;
        'Inst '*) sw_remember "$sw_home/packages" "$sw_name" ;;
        esac
    done <<END
$sw_told_by
END
}

# Ends what a killed dpkg left half done.
sw_mend() {
    [ -z "$(dpkg --audit 2>/dev/null)" ] && [ -z "$(ls /var/lib/dpkg/updates 2>/dev/null)" ] && return 0
    sw_run dpkg --force-confdef --force-confold --configure -a || sw_apt -f install || sw_unpacked 'mending the packages'
}

# Sets sw_files to the packages of a directory that are newer than what is installed.
sw_choose() {
    sw_files=
    for sw_one in "$1"/*.deb; do
        [ -f "$sw_one" ] || sw_fail HOST-014 "there are no packages in $1"
        sw_name=$(dpkg-deb -f "$sw_one" Package) || sw_fail HOST-010 "$sw_one is not a package"
        sw_version=$(dpkg-deb -f "$sw_one" Version)
        # shellcheck disable=SC2016 # dpkg-query reads it
        sw_have=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$sw_name" 2>/dev/null) || sw_have=
        case $sw_have in
        'installed '*) dpkg --compare-versions "${sw_have#installed }" ge "$sw_version" && continue ;;
        esac
        sw_files="$sw_files $sw_one"
    done
}

# Packages: wishes, kind of source, its directory or file of sources, whether they are held.
sw_packages() {
    sw_needs apt-get apt-mark dpkg dpkg-deb dpkg-query
    sw_did=0
    sw_look_for "$1"
    if [ -n "$sw_missing" ]; then
        sw_touch "packages $1"
        sw_mend
        case $2 in
        distribution)
            sw_update all
            # shellcheck disable=SC2086 # it is split on purpose
            set -- "$@" $sw_missing
            ;;
        mirror)
            sw_update "$3"
            # shellcheck disable=SC2086 # it is split on purpose
            set -- "$@" $sw_missing
            ;;
        directory)
            sw_choose "$3"
            # shellcheck disable=SC2086 # it is split on purpose
            set -- "$@" $sw_files
            ;;
        esac
        sw_wishes=$1
        sw_held=$4
        shift 4
        sw_foresee --allow-change-held-packages install "$@"
        sw_apt --allow-change-held-packages --allow-downgrades install "$@" || sw_unpacked "installing $sw_missing"
        sw_look_for "$sw_wishes"
        [ -z "$sw_missing" ] || sw_fail HOST-014 "$sw_missing is not installed, though nothing complained"
        set -- "$sw_wishes" '' '' "$sw_held"
        sw_did=1
    fi
    [ "$4" = free ] || sw_hold
    sw_told "packages $1"
}

# Holds the packages that were looked for last, so that they change only when we say so.
sw_hold() {
    # shellcheck disable=SC2086 # it is split on purpose
    sw_have=$(apt-mark showhold $sw_names)
    for sw_one in $sw_names; do
        case $sw_line$sw_have$sw_line in
        *"$sw_line$sw_one$sw_line"*) ;;
        *)
            sw_run apt-mark hold "$sw_one" || sw_unpacked "holding $sw_one"
            sw_did=1
            ;;
        esac
    done
}

# Purges packages that we had installed: those that are named, or all. dpkg keeps what others need.
sw_removed() {
    sw_needs dpkg dpkg-query apt-mark
    sw_did=0
    sw_slurp "$sw_home/packages"
    sw_ours=$sw_all
    sw_names=
    for sw_one in ${2:-$sw_ours}; do
        case $sw_line$sw_ours in
        *"$sw_line$sw_one$sw_line"*) ;;
        *) continue ;;
        esac
        # shellcheck disable=SC2016 # dpkg-query reads it
        case $(dpkg-query -W -f '${db:Status-Status}' "$sw_one" 2>/dev/null) in
        '' | not-installed) ;;
        *) sw_names="$sw_names $sw_one" ;;
        esac
    done
    if [ -n "$sw_names" ]; then
        sw_mend
        # shellcheck disable=SC2086 # it is split on purpose
        apt-mark unhold $sw_names >/dev/null 2>&1 9>&-
        # shellcheck disable=SC2086 # it is split on purpose
        sw_run dpkg --purge $sw_names || [ -z "$sw_code" ] || sw_unpacked "removing$sw_names"
        for sw_one in $sw_names; do
            # shellcheck disable=SC2016 # dpkg-query reads it
            case $(dpkg-query -W -f '${db:Status-Status}' "$sw_one" 2>/dev/null) in
            '' | not-installed) sw_did=1 ;;
            *) sw_fact "package.$sw_one" 'stays, for others need it' ;;
            esac
        done
    fi
    sw_told "$1"
}
