# What every item is brought about with: looks first, changes only what differs, tells what it did.
# Forks are dear where fifty hosts share two cores, so what a builtin can do is left to it.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
umask 022
cd / || exit 1

sw_home=/var/lib/slipway
sw_line='
'
if [ -d /run/systemd/system ]; then sw_init=systemd; else sw_init=own; fi

sw_changed() { printf '::slipway changed %s\n' "$1"; }
sw_unchanged() { printf '::slipway unchanged %s\n' "$1"; }
sw_fact() { printf '::slipway fact %s %s\n' "$1" "$2"; }
sw_fail() {
    printf '::slipway failed %s %s\n' "$1" "$2"
    exit 1
}

# Fails where a tool is missing.
sw_needs() {
    for sw_tool in "$@"; do
        command -v "$sw_tool" >/dev/null || sw_fail HOST-008 "the program $sw_tool is missing"
    done
}

# One program of ours at a time: one whose connection was lost may still be at work. The lock is
# on a directory that is always there, so that it leaves nothing behind.
sw_alone() {
    exec 9</run
    flock -w "$1" 9 || sw_fail HOST-005 'another program of ours is still at work on this host'
}

# Fails with the reason why $2 bytes could not be written below the directory $1, if trying again
# shows one; $3 says what was attempted.
sw_why() {
    sw_at=$1
    until [ -d "${sw_at:-/}" ]; do sw_at=${sw_at%/*}; done
    sw_said=$({ head -c "$(($2 + 4096))" /dev/zero >"$sw_at/.slipway-try"; } 2>&1)
    rm -f "$sw_at/.slipway-try" 2>/dev/null
    sw_code_of "$sw_said"
    case $sw_code in
    HOST-006) sw_fail HOST-006 "$3: no room is left at ${sw_at:-/}" ;;
    HOST-007) sw_fail HOST-007 "$3: the filesystem at ${sw_at:-/} is read-only" ;;
    HOST-012) sw_fail HOST-012 "$3: we may not write to ${sw_at:-/}" ;;
    esac
}

# Sets sw_code to what a tool's complaint means, empty where it says nothing we know.
sw_code_of() {
    case $1 in
    *'Read-only file system'*) sw_code=HOST-007 ;;
    *'No space left on device'* | *'enough free space'* | *'quota exceeded'*) sw_code=HOST-006 ;;
    *'Permission denied'* | *'Operation not permitted'*) sw_code=HOST-012 ;;
    *) sw_code= ;;
    esac
}

# Sets sw_all to the text of a file of lines, empty where there is none.
sw_slurp() {
    sw_all=
    [ -f "$1" ] || return 0
    while IFS= read -r sw_one || [ -n "$sw_one" ]; do sw_all=$sw_all$sw_one$sw_line; done <"$1"
}

# Makes the directory $1 and remembers which ones were missing.
sw_parents() {
    [ ! -d "${1:-/}" ] || return 0
    sw_up=$1
    sw_made=
    while [ ! -d "${sw_up:-/}" ]; do
        sw_made="$sw_up $sw_made"
        sw_up=${sw_up%/*}
    done
    case $1 in
    "$sw_home"* | /etc/slipway* | /usr/local/lib/slipway* | /run/*) ;;
    *) for sw_up in $sw_made; do sw_remember "$sw_home/directories" "$sw_up"; done ;;
    esac
    mkdir -p "$1" || {
        sw_why "$1" 0 "making the directory $1"
        sw_fail HOST-021 "the directory $1 could not be made"
    }
}

# Keeps a short text of ours in the file $1: beside, read again, renamed.
sw_keep() {
    sw_slurp "$1"
    [ "$sw_all" != "$2$sw_line" ] || return 0
    [ -d "${1%/*}" ] || mkdir -p "${1%/*}" || sw_why "${1%/*}" 0 "making the directory ${1%/*}"
    printf '%s\n' "$2" >"$1.new"
    sw_slurp "$1.new"
    if [ "$sw_all" != "$2$sw_line" ] || ! mv -fT "$1.new" "$1"; then
        rm -f "$1.new" 2>/dev/null
        sw_why "${1%/*}" "${#2}" "writing $1"
        sw_fail HOST-019 "$1 was not as it should be after writing"
    fi
}

# Adds a line to a file of ours unless it is there.
sw_remember() {
    sw_slurp "$1"
    case $sw_line$sw_all in
    *"$sw_line$2$sw_line"*) ;;
    *) sw_keep "$1" "$sw_all$2" ;;
    esac
}

# An item is about to change: whatever reads it is owed a restart, also if we die in between.
sw_touch() {
    sw_restarts "$1"
    for sw_service in $sw_services; do
        [ ! -e "$sw_home/owed/$sw_service" ] || continue
        [ -d "$sw_home/owed" ] || mkdir -p "$sw_home/owed" || sw_why "$sw_home/owed" 0 "making $sw_home/owed"
        printf '' >"$sw_home/owed/$sw_service" || sw_why "$sw_home/owed" 0 "changing the $1"
    done
}

# Sets sw_new to where the file $1 is written before it is renamed.
sw_beside() { sw_new=${1%/*}/.slipway-new.${1##*/}; }

# Keeps what was at a path that is not ours before we write there: it is given back at the end.
sw_save() {
    case $1 in
    *slipway*) return 0 ;;
    esac
    sw_flat "$1"
    if [ -e "$sw_flat" ] || [ -e "$sw_flat.none" ]; then return 0; fi
    if [ ! -d "$sw_home/saved" ]; then
        (umask 077 && mkdir -p "$sw_home/saved") || sw_why "$sw_home/saved" 0 "making $sw_home/saved"
    fi
    if [ -e "$1" ]; then
        { cp -p "$1" "$sw_flat.new" && mv -fT "$sw_flat.new" "$sw_flat"; } || sw_why "$sw_home/saved" 4096 "keeping $1"
    else
        printf '' >"$sw_flat.none" || sw_why "$sw_home/saved" 0 "keeping $1"
    fi
}

# Sets sw_flat to where the file $1 is kept: the same name, but one.
sw_flat() {
    sw_left=$1/
    sw_flat=
    while [ -n "$sw_left" ]; do
        sw_flat=$sw_flat%${sw_left%%/*}
        sw_left=${sw_left#*/}
    done
    sw_flat=$sw_home/saved/${sw_flat#%%}
}

# Puts back what was at a path before us, if we wrote there.
sw_returned() {
    sw_flat "$1"
    sw_beside "$1"
    sw_did=0
    if [ -e "$sw_flat" ]; then
        sw_touch "returned $1"
        { sw_parents "${1%/*}" && cp -p "$sw_flat" "$sw_new" && mv -fT "$sw_new" "$1" && rm -f "$sw_flat"; } ||
            sw_give_up "$1" 4096
        sw_did=1
    elif [ -e "$sw_flat.none" ]; then
        sw_touch "returned $1"
        { rm -f "$sw_new" "$1" && rm -f "$sw_flat.none"; } || sw_give_up "$1" 0
        sw_did=1
        sw_prune "${1%/*}"
    fi
    sw_told "returned $1"
}

# Brings the text of a file about: path, mode, owner, SHA-256, size, how it travels, text.
# Sets sw_did to 1 where it changed something.
sw_write() {
    sw_did=0
    sw_beside "$1"
    if [ -d "$1" ] && [ ! -L "$1" ]; then
        sw_fail HOST-021 "a directory is where the file $1 should be"
    fi
    if [ -f "$1" ] && [ ! -L "$1" ]; then
        sw_sum=$(sha256sum <"$1")
        if [ "${sw_sum%% *}" = "$4" ] && [ "$(stat -c '%a %U:%G' "$1")" = "$2 $3" ]; then
            [ ! -e "$sw_new" ] || rm -f "$sw_new"
            return 0
        fi
    fi
    sw_touch "file $1"
    sw_save "$1"
    sw_parents "${1%/*}"
    if [ -e "$sw_new" ] || [ -L "$sw_new" ]; then rm -rf "$sw_new"; fi
    case $2 in
    644 | 755) ;;
    *) umask 077 ;;
    esac
    case $6 in
    plain) printf '%s' "$7" >"$sw_new" ;;
    base64) printf '%s' "$7" | base64 -d >"$sw_new" ;;
    host)
        [ -f "$7" ] || sw_fail HOST-008 "$7 is missing: it was to be pushed first"
        cat "$7" >"$sw_new"
        ;;
    esac || sw_give_up "$1" "$5"
    umask 022
    case $2 in
    600 | 644) ;;
    *) chmod "$2" "$sw_new" || sw_give_up "$1" "$5" ;;
    esac
    [ "$3" = root:root ] || chown "$3" "$sw_new" || sw_give_up "$1" "$5"
    sw_sum=$(sha256sum <"$sw_new")
    [ "${sw_sum%% *}" = "$4" ] || sw_give_up "$1" "$5"
    mv -fT "$sw_new" "$1" || sw_give_up "$1" "$5"
    sw_did=1
}

# The file $1 of $2 bytes could not be written; what was there before is untouched.
sw_give_up() {
    rm -f "$sw_new" 2>/dev/null
    sw_why "${1%/*}" "$2" "writing $1"
    sw_fail HOST-019 "$1 was not as it should be after writing"
}

sw_told() { if [ "$sw_did" = 1 ]; then sw_changed "$1"; else sw_unchanged "$1"; fi; }

sw_file() {
    sw_write "$@"
    sw_told "file $1"
}

# A program that was pushed to the host: path, mode, SHA-256, size, where it is. Summing up a
# hundred megabytes at each look would be slow, so we remember how the file looked.
sw_placed() {
    sw_seen="$sw_home/placed/${1##*/}"
    sw_slurp "$sw_seen"
    if [ -f "$1" ] && [ "$sw_all" = "$3 $1 $(stat -c '%a %s %y %i' "$1")$sw_line" ]; then
        sw_beside "$1"
        [ ! -e "$sw_new" ] || rm -f "$sw_new"
        sw_unchanged "placed $1"
        return 0
    fi
    sw_touch "placed $1"
    [ -s "$sw_seen" ] || sw_keep "$sw_seen" "placing $1"
    sw_write "$1" "$2" root:root "$3" "$4" host "$5"
    sw_keep "$sw_seen" "$3 $1 $(stat -c '%a %s %y %i' "$1")"
    sw_told "placed $1"
}

sw_directory() {
    if [ -d "$1" ] && [ "$(stat -c '%a %U:%G' "$1")" = "$2 $3" ]; then
        sw_unchanged "directory $1"
        return 0
    fi
    sw_touch "directory $1"
    sw_parents "$1"
    if ! chmod "$2" "$1" || ! chown "$3" "$1"; then
        sw_why "$1" 0 "making the directory $1"
        sw_fail HOST-021 "the directory $1 could not be given its mode and owner"
    fi
    sw_changed "directory $1"
}

# Takes an empty directory away that we had made, and those above it.
sw_prune() {
    sw_slurp "$sw_home/directories"
    sw_up=$1
    while :; do
        case $sw_line$sw_all in
        *"$sw_line$sw_up$sw_line"*) ;;
        *) break ;;
        esac
        [ ! -d "$sw_up" ] || rmdir "$sw_up" 2>/dev/null || break
        sw_up=${sw_up%/*}
    done
}

# Takes a path away, and the directories that we had made for it.
sw_absent() {
    case $1 in
    /*/*) ;;
    *) sw_fail HOST-021 "$1 is not ours to remove" ;;
    esac
    sw_beside "$1"
    if [ -e "$sw_new" ] || [ -L "$sw_new" ]; then rm -rf "$sw_new"; fi
    sw_did=0
    if [ -e "$1" ] || [ -L "$1" ]; then
        sw_touch "absent $1"
        rm -rf "$1" || {
            sw_why "${1%/*}" 0 "removing $1"
            sw_fail HOST-021 "$1 could not be removed"
        }
        sw_did=1
    fi
    sw_prune "${1%/*}"
    sw_told "absent $1"
}

# Our lines in a file of somebody else's: path, marker, lines; without lines the block goes. It
# stays where it is, everything around it is kept, and so is what looks like half a block.
sw_block() {
    sw_first="# BEGIN slipway $2"
    sw_last="# END slipway $2"
    sw_wish=
    [ -z "$3" ] || sw_wish="$sw_first$sw_line$3$sw_line$sw_last$sw_line"
    sw_slurp "$1"
    sw_old=$sw_all
    case $sw_old in
    *"$sw_first$sw_line"*"$sw_line$sw_last$sw_line"*)
        sw_text=${sw_old%%"$sw_first$sw_line"*}
        sw_rest=${sw_old#*"$sw_first$sw_line"}
        sw_text=$sw_text$sw_wish${sw_rest#*"$sw_last$sw_line"}
        ;;
    *) sw_text=$sw_old$sw_wish ;;
    esac
    sw_beside "$1"
    if [ -e "$sw_new" ] || [ -L "$sw_new" ]; then rm -rf "$sw_new"; fi
    if [ "$sw_text" = "$sw_old" ]; then
        sw_unchanged "block $2 in $1"
        return 0
    fi
    sw_touch "block $2 in $1"
    [ -e "$1" ] || sw_remember "$sw_home/blocks" "$1"
    sw_slurp "$sw_home/blocks"
    sw_ours=$sw_all
    if [ -z "$sw_text" ] && [ "${sw_ours#*"$1$sw_line"}" != "$sw_ours" ]; then
        rm -f "$1" || sw_give_up "$1" 0
    else
        sw_parents "${1%/*}"
        [ ! -e "$1" ] || cp -p "$1" "$sw_new" || sw_give_up "$1" "${#sw_text}"
        printf '%s' "$sw_text" >"$sw_new" || sw_give_up "$1" "${#sw_text}"
        sw_slurp "$sw_new"
        [ "$sw_all" = "$sw_text" ] || sw_give_up "$1" "${#sw_text}"
        mv -fT "$sw_new" "$1" || sw_give_up "$1" "${#sw_text}"
    fi
    sw_changed "block $2 in $1"
}

# A change that only a shell can say: name, what holds when there is nothing to do, what to do.
sw_command() {
    if (eval "$2") >/dev/null 2>&1; then
        sw_unchanged "command $1"
        return 0
    fi
    sw_touch "command $1"
    sw_ran=0
    (eval "$3") 9>&- 2>&1 || sw_ran=$?
    [ "$sw_ran" != 127 ] || sw_fail HOST-008 "a program is missing for $1"
    [ "$sw_ran" = 0 ] || {
        sw_why /var/lib 0 "$1"
        sw_fail HOST-021 "$1 ended with status $sw_ran"
    }
    (eval "$2") >/dev/null 2>&1 || sw_fail HOST-021 "$1 changed nothing"
    sw_changed "command $1"
}

# The last word of a recipe: everything before it is on the disk when it is.
sw_stamp() {
    sw_slurp /etc/slipway/prepared
    if [ "$sw_all" = "$1$sw_line" ]; then
        sw_unchanged prepared
        return 0
    fi
    sync -f /etc || sw_fail HOST-021 'the disk did not take what was written'
    sw_keep /etc/slipway/prepared "$1"
    sw_changed prepared
}
