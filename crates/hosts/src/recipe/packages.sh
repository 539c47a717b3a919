# Packages of the distribution, of a mirror, or of a directory on the host.

export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 APT_LISTCHANGES_FRONTEND=none
sw_updated=
sw_from=

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
    # shellcheck disable=SC2086 # it is split on purpose
    sw_run apt-get -q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 \
        -o APT::Install-Recommends=false -o Dpkg::Options::=--force-confdef \
        -o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 $sw_from "$@"
}

# What apt-get would do, without doing it.
sw_try() {
    # shellcheck disable=SC2086 # it is split on purpose
    apt-get -s -q -y -o APT::Install-Recommends=false --allow-change-held-packages --allow-downgrades $sw_from "$@" 9>&-
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
    sw_told_by=$(sw_try "$@" 2>/dev/null) || :
    while read -r sw_word sw_name sw_one; do
        case "$sw_word $sw_one" in
        'Inst ['*) ;;
        'Inst '*) sw_remember "$sw_home/packages" "$sw_name" ;;
        esac
    done <<END
$sw_told_by
END
}

# Whether a killed dpkg left something half done.
sw_torn() { [ -n "$(dpkg --audit 2>/dev/null)" ] || [ -n "$(ls /var/lib/dpkg/updates 2>/dev/null)" ]; }

# Ends what was begun, as far as that takes no more packages.
sw_go_on() { sw_run dpkg --force-confdef --force-confold --configure -a; }

# Ends what a killed dpkg left half done.
sw_mend() {
    sw_torn || return 0
    sw_go_on || sw_apt -f install || sw_unpacked 'mending the packages'
}

# Has apt see the packages of the directory $1 alone: neither the sources of the host nor what it
# read of them before.
sw_only() {
    [ -f "$1/Packages" ] || sw_fail HOST-014 "there is no index of packages in $1"
    sw_from="-o Dir::Etc::sourcelist=$1/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$1/lists"
    sw_from="$sw_from -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Acquire::Languages=none"
    case " $sw_updated " in
    *" $1 "*) return 0 ;;
    esac
    # The index is where it is read, so nobody else has to vouch for it.
    { mkdir -p "$1/lists/partial" && printf 'deb [trusted=yes] file:%s ./\n' "$1" >"$1/sources.list"; } ||
        sw_why "$1" 0 "writing to $1"
    sw_apt -qq update || sw_unpacked "reading the index of packages in $1"
    sw_updated="$sw_updated $1"
}

# Tells which of the wishes $1 are not installed. With a directory $2, in which there is an index
# at least, tells which packages of it apt would install for them. Installs nothing.
sw_foreseen() {
    sw_needs apt-get dpkg dpkg-query
    sw_look_for "$1"
    if [ -z "$sw_missing" ] || [ -z "$2" ]; then
        for sw_one in $sw_missing; do sw_fact missing "$sw_one"; done
        return 0
    fi
    # What a killed dpkg noted last is not yet where apt reads it.
    ! sw_torn || sw_go_on || :
    sw_only "$2"
    # shellcheck disable=SC2086 # it is split on purpose
    sw_told_by=$(sw_try -f install $sw_missing 2>&1) || sw_lacks "$sw_told_by"
    while read -r sw_word sw_name sw_rest; do
        [ "$sw_word" = Inst ] || continue
        # Inst NAME [VERSION THAT IS THERE] (VERSION SOURCE [ARCHITECTURE])
        sw_rest=${sw_rest#*\(}
        sw_rest=${sw_rest%%)*}
        sw_one=${sw_rest##*\[}
        sw_fact needs "${sw_name%%:*} ${sw_rest%% *} ${sw_one%\]}"
    done <<END
$sw_told_by
END
}

# Fails with the packages that apt misses, by what it said.
sw_lacks() {
    sw_lacking=
    sw_last=
    while IFS= read -r sw_one; do
        [ -z "$sw_one" ] || printf '| %s\n' "$sw_one"
        sw_code_of "$sw_one"
        case $sw_code in
        HOST-006 | HOST-007) sw_unpacked 'looking for packages' ;;
        esac
        case $sw_one in
        'E: Unable to locate package '*) sw_name=${sw_one##* } ;;
        "E: Package '"*"' has no installation candidate")
            sw_name=${sw_one#*\'}
            sw_name=${sw_name%%\'*}
            ;;
        *'epends: '*' but it is not installable')
            sw_name=${sw_one#*epends: }
            sw_name=${sw_name%% *}
            ;;
        *)
            sw_name=
            case $sw_one in
            *'epends: '* | 'E: '*) sw_last=${sw_last:-$sw_one} ;;
            esac
            ;;
        esac
        case " $sw_lacking " in
        *" ${sw_name:-,} "*) ;;
        *) sw_lacking=$sw_lacking${sw_name:+ $sw_name} ;;
        esac
    done <<END
$1
END
    [ -z "$sw_lacking" ] || sw_fail ARTIFACT-006 "the mirror lacks$sw_lacking"
    sw_fail ARTIFACT-006 "the packages of the mirror do not fit this host: ${sw_last:-apt does not say why}"
}

# Packages: wishes, kind of source, its directory or file of sources, whether they are held.
sw_packages() {
    sw_needs apt-get apt-mark dpkg dpkg-deb dpkg-query
    sw_did=0
    sw_from=
    sw_look_for "$1"
    if [ -n "$sw_missing" ]; then
        sw_touch "packages $1"
        case $2 in
        directory) sw_only "$3" ;;
        esac
        sw_mend
        case $2 in
        distribution) sw_update all ;;
        mirror) sw_update "$3" ;;
        esac
        # shellcheck disable=SC2086 # it is split on purpose
        sw_foresee install $sw_missing
        # shellcheck disable=SC2086 # it is split on purpose
        sw_apt --allow-change-held-packages --allow-downgrades install $sw_missing || sw_unpacked "installing $sw_missing"
        sw_look_for "$1"
        [ -z "$sw_missing" ] || sw_fail HOST-014 "$sw_missing is not installed, though nothing complained"
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
