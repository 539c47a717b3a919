# Brings this end of the mesh about, from what is there, without disturbing what is right.
#
# Set before, besides what common.sh wants: address, pods (the network of all pods, or nothing), wish (the file without the private key),
# differ (the text of differ.awk), start (the text of the start file).

# The file that stays; the private key is added here because it never leaves this machine.
completed() {
    printf '%s\n' "$wish" | awk -v key_file="$key_file" '
        { print }
        $0 == "[Interface]" { getline private <key_file; print "PrivateKey = " private }'
}

# What was wished before, as far as it came about.
before() {
    case $first in
    '' | '# slipway pending') ;;
    *) cat "$file" ;;
    esac
}

# A wireguard-go that hangs must not hang us. In our process group, to be killed with us.
ask() { timeout --foreground -k 1 10 wg "$@"; }

# Sets dump. It holds the private key: it goes through a pipe below and nowhere else.
read_live() { dump=$(ask show "$interface" dump 2>/dev/null); }

# Compares what is live with the wish. Sets for_interface and for_peers, the words that `wg set`
# would need, and for_people. $1 is the wish before.
compare() {
    words=$(printf '%s\n' '-- live' "$dump" '-- before' "$1" '-- wish' "$wish" |
        awk -v public="$public" -v port="$port" -v key_file="$key_file" "$differ")
    case $words in
    *"
"*"
"*) ;;
    *) fail HOST-010 'wg show answered with something that is no dump' ;;
    esac
    for_interface=${words%%"
"*}
    words=${words#*"
"}
    for_peers=${words%"
"*}
    for_people=${words#*"
"}
}

# Unquoted on purpose: the words are keys, addresses and numbers, and nothing is globbed.
set_live() {
    said=$(ask set "$interface" $1 2>&1) || fail HOST-021 "wg set: $said"
}

can_userspace() {
    command -v wireguard-go >/dev/null && [ -c /dev/net/tun ] && (: </dev/net/tun) 2>/dev/null
}

# Makes the interface from the file, as a start of the machine would.
bring_up() {
    if has_systemd; then
        systemctl reset-failed "wg-quick@$interface.service" 2>/dev/null
        said=$(timeout 40 systemctl restart "wg-quick@$interface.service" 2>&1 9>&-) && return
    else
        # It dies with us, so that the next program does not meet it half way. wireguard-go does
        # not, and so must not hold the lock.
        said=$(wg-quick up "$interface" 2>&1 9>&-) && return
    fi
    ip link add dev "$interface" type wireguard 2>/dev/null && return
    can_userspace ||
        fail HOST-017 'the kernel has no wireguard, and wireguard-go or /dev/net/tun is not there'
    fail HOST-015 "$interface does not start: $said"
}

# A wireguard-go that was killed leaves its interface for a moment, and it is no use any more.
is_ending() {
    read_live
    answer=$?
    [ "$answer" -ne 0 ] || return 1
    rounds=30
    while has_link; do
        [ "$answer" -lt 124 ] && [ "$rounds" -gt 0 ] ||
            fail HOST-015 "$interface is there but does not answer to wg"
        rounds=$((rounds - 1))
        sleep 0.1
    done
}

# Sets come: what to tell of an item that is as wished, because it came with the interface or was.
interface() {
    come=unchanged
    if ! has_link || is_ending; then
        come=changed
        bring_up
        read_live || fail HOST-015 "$interface does not answer to wg"
    fi
    state=$come
    compare "$had"
    if [ -n "$for_interface" ]; then
        state=changed
        set_live "$for_interface"
    fi
    link=$(ip -o link show dev "$interface") || fail HOST-015 "$interface did not stay"
    case $link in
    *[\<,]UP[,\>]*" mtu $mtu "*) ;;
    *)
        state=changed
        said=$(ip link set dev "$interface" mtu "$mtu" up 2>&1) || fail HOST-021 "ip link set: $said"
        ;;
    esac
    tell "$state" mesh-interface
}

# An address that is not wished goes: one that was ours before would be somebody else's by now.
address() {
    if [ "$(addresses)" = "$address" ]; then
        tell "$come" mesh-address
        return
    fi
    said=$(printf '%s\n' "address flush dev $interface" "address add $address dev $interface" |
        ip -4 -batch - 2>&1) || fail HOST-021 "ip address: $said"
    [ "$(addresses)" = "$address" ] || fail HOST-010 'ip took an address but does not show it'
    tell changed mesh-address
}

# Whether pods are reached through here is one route; another one of ours is of a wish before.
route() {
    have=$(ip -4 route show dev "$interface" proto boot 2>/dev/null | awk '{ print $1 }')
    if [ "$have" = "$pods" ]; then
        # Where there are no pods none came with the interface either.
        if [ -n "$pods" ]; then tell "$come" mesh-route; else tell unchanged mesh-route; fi
        return
    fi
    for old in $have; do
        said=$(ip -4 route delete "$old" dev "$interface" 2>&1) || fail HOST-021 "ip route: $said"
    done
    if [ -n "$pods" ]; then
        said=$(ip -4 route replace "$pods" dev "$interface" src "${address%/*}" 2>&1) ||
            fail HOST-021 "ip route: $said"
    fi
    tell changed mesh-route
}

addresses() { ip -4 -o address show dev "$interface" | awk '{ print $4 }'; }

# Only peers that differ are named. `wg syncconf` would do, but opens the socket of wireguard-go
# anew and sends peers that have moved back to where they were first dialled.
peers() {
    if [ -z "$for_peers" ]; then
        tell "$come" mesh-peers
        return
    fi
    set_live "$for_peers"
    printf 'peers: %s\n' "$for_people"
    read_live || fail HOST-015 "$interface does not answer to wg"
    compare "$wish"
    [ -z "$for_interface$for_peers" ] || fail HOST-010 'wg took the peers but does not show them'
    tell changed mesh-peers
}

configuration() {
    if is_placed "$file" 600 "$full"; then
        tell unchanged mesh-configuration
    else
        place "$file" 600 "$full"
        tell changed mesh-configuration
    fi
}

start_at_boot() {
    state=unchanged
    if has_systemd; then
        unit="wg-quick@$interface.service"
        if ! systemctl -q is-enabled "$unit" 2>/dev/null; then
            said=$(timeout 40 systemctl enable "$unit" 2>&1 9>&-) || fail HOST-015 "systemctl enable: $said"
            state=changed
        fi
    elif ! is_placed "$start_file" 700 "$start"; then
        place "$start_file" 700 "$start"
        state=changed
    fi
    tell "$state" mesh-start
}

main() {
    began=yes
    needs flock wg wg-quick ip awk timeout
    alone
    first=
    refuse_foreign
    key
    had=$(before)
    full=$(completed)
    # Until everything came about the file names no wish; it says whose the interface is.
    is_ours || place "$file" 600 "# slipway pending
${full#*
}"
    interface
    address
    route
    peers
    configuration
    start_at_boot
}
