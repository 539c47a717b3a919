# Tells this end of the mesh as it is: cheap, changes nothing, ends nothing around it.
mesh_look() (
    set +eu
    export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
    file=/etc/wireguard/wg0.conf
    key_file=/etc/wireguard/slipway.key
    public=
    if [ -s "$key_file" ] && command -v wg >/dev/null; then
        public=$(wg pubkey <"$key_file" 2>/dev/null | head -c 100 | tr -cd '[:print:]')
        printf '::slipway fact mesh-key %s\n' "$public"
    fi
    [ -f "$file" ] || return 0
    IFS= read -r first <"$file"
    case $first in
    '# slipway pending' | '') return 0 ;;
    '# slipway '*) printf '::slipway fact mesh-told %s\n' "${first#\# slipway }" ;;
    *) return 0 ;;
    esac
    # A wireguard-go that hangs must not hang whoever looks.
    dump=$(timeout --foreground -k 1 5 wg show wg0 dump 2>/dev/null)
    # An end that is down, has another address or another key has no peers, whatever it lists.
    address=$(ip -4 -o address show dev wg0 up 2>/dev/null | awk '{ print $4 }')
    case $address:$dump in
    "$(sed -n 's/^Address = //p' "$file")":*"	$public	"*)
        # As `wg show wg0 allowed-ips` lists them.
        live=$(printf '%s\n' "$dump" | awk -F '\t' '
            NR > 1 { gsub(",", " ", $4); print $1 "\t" $4 }' | sort | sha256sum)
        ;;
    *) live=$(echo astray | sha256sum) ;;
    esac
    printf '::slipway fact mesh-live %.16s\n' "$live"
    [ -z "$dump" ] || printf '%s\n' "$dump" | awk -F '\t' -v now="$(date +%s)" '
        NR > 1 && $5 > 0 && now - $5 <= 180 { fresh++ }
        END { print "::slipway fact mesh-peers " NR - 1; print "::slipway fact mesh-fresh " fresh + 0 }'
)
mesh_look </dev/null
