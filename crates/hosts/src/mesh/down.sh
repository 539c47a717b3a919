# Takes this end of the mesh away. What others made stays; our name in the file goes last, so that
# a program that was killed in between is finished by the next one.

# Removes files and says whether there were any.
remove() {
    item=$1
    state=unchanged
    shift
    for one in "$@"; do
        [ -e "$one" ] || continue
        said=$(rm -f "$one" 2>&1) || unwritable "$one" "$said"
        state=changed
    done
    tell "$state" "$item"
}

no_start() {
    unit="wg-quick@$interface.service"
    if has_systemd && is_ours && systemctl -q is-enabled "$unit" 2>/dev/null; then
        said=$(timeout 40 systemctl disable "$unit" 2>&1 9>&-) || fail HOST-015 "systemctl disable: $said"
        tell changed mesh-start
    else
        remove mesh-start "$start_file" "$start_file.new"
    fi
}

no_interface() {
    if ! is_ours || ! has_link; then
        tell unchanged mesh-interface
        return
    fi
    # The unit would otherwise be thought to be up. It may fail: the link goes in any case.
    if has_systemd; then
        timeout 40 systemctl stop "wg-quick@$interface.service" 2>/dev/null 9>&-
        systemctl reset-failed "wg-quick@$interface.service" 2>/dev/null
    fi
    has_link && { said=$(ip link delete dev "$interface" 2>&1) || fail HOST-021 "ip link delete: $said"; }
    # wireguard-go ends when its device is gone; while its socket is there no other can start.
    rounds=50
    while [ -S "/run/wireguard/$interface.sock" ] && [ "$rounds" -gt 0 ]; do
        rounds=$((rounds - 1))
        sleep 0.1
    done
    tell changed mesh-interface
}

main() {
    began=yes
    needs flock ip timeout
    alone
    no_start
    no_interface
    remove mesh-key "$key_file" "$key_file.new"
    if [ ! -e "$file" ] || is_ours; then
        remove mesh-configuration "$file.new" "$file"
    else
        tell unchanged mesh-configuration
    fi
}
