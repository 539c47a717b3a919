# What the programs of the mesh share: how they tell, how they fail, how they write.
#
# Set before: interface, port, mtu, key_file, file, start_file.

set -uf
umask 077
export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
# With it wireguard-go would hold our output open for as long as it lives.
unset LOG_LEVEL

tell() { printf '::slipway %s %s\n' "$1" "$2"; }

# One line and not too long, whatever a tool said.
fail() {
    what=$(printf '%s' "$2" | tr -s '\n\r\t ' '    ' | tr -cd '[:print:]' | tail -c 300)
    tell failed "$1 $what"
    exit 1
}

needs() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || fail HOST-008 "$tool is not installed"
    done
}

# Two programs at once would undo each other: one may live on when its connection is lost.
# Descriptor 9 is the lock; whatever outlives the program must not inherit it.
alone() {
    flock -w 20 9 || fail HOST-005 'another program has been at the mesh for 20 seconds'
}

is_key() {
    case $1 in
    *[!A-Za-z0-9+/=]*) return 1 ;;
    *=) [ "${#1}" -eq 44 ] ;;
    *) return 1 ;;
    esac
}

unwritable() {
    case $2 in
    *'No space left'* | *'quota exceeded'*) fail HOST-006 "could not write $1: $2" ;;
    *'Read-only'*) fail HOST-007 "could not write $1: $2" ;;
    *) fail HOST-019 "could not write $1: $2" ;;
    esac
}

# Writes the file $1 with the mode $2 and the text $3: beside, looked at again, then renamed.
# The text goes through `cat` because the shell's own printf does not say why it failed.
place() {
    said=$({ mkdir -p "${1%/*}" && printf '%s\n' "$3" | cat >"$1.new" &&
        chmod "$2" "$1.new" && sync "$1.new"; } 2>&1) || unwritable "$1" "$said"
    [ "$(cat "$1.new")" = "$3" ] || fail HOST-019 "$1 was not what had been written"
    said=$({ mv -f "$1.new" "$1" && sync "${1%/*}"; } 2>&1) || unwritable "$1" "$said"
}

# Whether the file $1 has the mode $2 and the text $3.
is_placed() {
    [ -f "$1" ] && [ "$(stat -c %a "$1" && cat "$1")" = "$2
$3" ]
}

has_systemd() { [ -d /run/systemd/system ]; }

has_link() { ip link show dev "$interface" >/dev/null 2>&1; }

# Our files carry our name in their first line.
is_ours() {
    [ -f "$file" ] || return 1
    first=
    IFS= read -r first <"$file" || :
    case $first in '# slipway '*) ;; *) return 1 ;; esac
}

refuse_foreign() {
    is_ours && return
    [ -e "$file" ] && fail HOST-023 "$file was not written by Slipway"
    has_link && fail HOST-023 "there is an interface $interface that Slipway did not make"
    return 0
}

# Makes the key where there is none. Sets public. The private half leaves this machine never.
key() {
    state=unchanged
    if [ ! -s "$key_file" ]; then
        private=$(wg genkey) || fail HOST-010 "wg genkey ended with $?"
        is_key "$private" || fail HOST-010 'wg genkey answered with something that is no key'
        place "$key_file" 600 "$private"
        state=changed
    elif [ "$(stat -c %a "$key_file")" != 600 ]; then
        said=$(chmod 600 "$key_file" 2>&1) || unwritable "$key_file" "$said"
        state=changed
    fi
    public=$(wg pubkey <"$key_file" 2>/dev/null) || fail HOST-010 "wg does not take $key_file as a key"
    is_key "$public" || fail HOST-010 'wg pubkey answered with something that is no key'
    tell "$state" mesh-key
    tell fact "mesh-key $public"
}
