# What all programs for load balancers share: where things are, and how to ask Envoy.

dir=/var/lib/slipway/envoy

mark() { printf '::slipway %s\n' "$*"; }

fail() { mark failed "$@"; exit 1; }

# Asks Envoy at ADDRESS:PORT for a page. Never through a proxy that the machine may have been given.
ask() { # ADDRESS:PORT PAGE
    if command -v curl >/dev/null 2>&1; then
        curl -sf --noproxy '*' --max-time 5 "http://$1/$2" 2>/dev/null
    else
        http_proxy='' wget -q -T 5 -O - "http://$1/$2" 2>/dev/null
    fi
}

# Which versions Envoy has in use, what it refused, and how many targets answer.
ask_figures() { # ADDRESS:PORT
    ask "$1" 'stats?filter=%28version_text%7Cupdate_rejected%7Cupdate_failure%7Cmembership_healthy%7Cwarming_clusters%29%24'
}

# Whether every line of a file is among the figures.
all_in_use() { # FILE FIGURES
    wanted=$(wc -l <"$1")
    found=$(printf '%s\n' "$2" | grep -cFxf "$1")
    [ "$found" -ge "$wanted" ]
}

# Tells what is in use, where Envoy answers and has in use what it was told last.
tell_facts() {
    [ -f "$dir/told" ] && [ -f "$dir/in-use" ] || return 0
    read -r told_print told_at <"$dir/told" || return 0
    told_figures=$(ask_figures "$told_at") || return 0
    all_in_use "$dir/in-use" "$told_figures" || return 0
    mark fact balancer-told "$told_print"
    printf '%s\n' "$told_figures" | awk -F '[.:] *' '
        NR == FNR { if ($1 == "cluster") told[$2]; next }
        $1 == "cluster" && $3 == "membership_healthy" && $2 in told {
            print "::slipway fact balancer-healthy " $2 " " $4
        }' "$dir/in-use" -
}
