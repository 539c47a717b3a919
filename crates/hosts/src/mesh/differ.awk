# Compares the peers that are with those that are wished, and prints the words for `wg set` that
# make the one the other: a line for the interface, a line for the peers, a line for people.
#
# Three parts come in, each after a line that names it: `live` is `wg show INTERFACE dump`,
# `before` and `wish` are files as wg-quick reads them. A peer's endpoint is set only where it has
# none or another one is wished than before: a peer that moved is where it said it is.

function is_key(text) {
    return length(text) == 44 && text ~ /^[A-Za-z0-9+\/]+=$/
}

function garbage() {
    print "garbage"
    bad = 1
    exit
}

/^-- / { part = $2; lines = 0; next }

part == "live" {
    fields = split($0, field, "\t")
    lines++
    if (lines == 1) {
        if (fields != 4 || field[3] !~ /^[0-9]+$/) garbage()
        if (field[2] != public) interface = interface " private-key " key_file
        if (field[3] != port) interface = interface " listen-port " port
        told = 1
        next
    }
    key = field[1]
    if (fields != 8 || !is_key(key)) garbage()
    is[key] = 1
    shared[key] = field[2]
    endpoint[key] = field[3]
    allowed[key] = field[4]
    # A peer is named before its pods, in whatever order they are shown.
    if (split(field[4], both, ",") == 2 && both[2] ~ /\/32$/) allowed[key] = both[2] "," both[1]
    keepalive[key] = field[8]
    next
}

$1 == "PublicKey" { key = $3; if (part == "wish") { order[++count] = key; wished[key] = 1 } }
$1 == "AllowedIPs" { want[part, "allowed", key] = $3 }
$1 == "Endpoint" { want[part, "endpoint", key] = $3 }
$1 == "PersistentKeepalive" { want[part, "keepalive", key] = $3 }

END {
    if (bad) exit
    if (!told) garbage()
    # First, so that an address that is used again is free.
    for (key in is) if (!(key in wished)) { removed++; peers = peers " peer " key " remove" }
    for (i = 1; i <= count; i++) {
        key = order[i]
        words = ""
        if (allowed[key] != want["wish", "allowed", key])
            words = words " allowed-ips " want["wish", "allowed", key]
        dial = want["wish", "endpoint", key]
        if (dial != "" && endpoint[key] != dial)
            if (endpoint[key] == "" || endpoint[key] == "(none)" || want["before", "endpoint", key] != dial)
                words = words " endpoint " dial
        alive = want["wish", "keepalive", key]
        if (alive == "") alive = "off"
        if ((key in is) ? keepalive[key] != alive : alive != "off")
            words = words " persistent-keepalive " alive
        if ((key in is) && shared[key] != "(none)")
            words = words " preshared-key /dev/null"
        if (words == "") continue
        if (key in is) changed++; else added++
        peers = peers " peer " key words
    }
    print interface
    print peers
    print added + 0 " added, " changed + 0 " changed, " removed + 0 " removed"
}
