# Brings Envoy from what it has in use to what is wished, and drops no connection on the way.
# Before this text: common.sh. After it: `begin`, a `want` per file, `ensure_service`, `finish`.
#
# Every step leaves a configuration that works, so this may be killed anywhere and run again:
#   new/       what is wished, written and verified, not yet in use
#   good/      the last set that Envoy is known to have accepted; what a refusal goes back to
#   in-use     how Envoy tells that it has the wished versions in use
#   told       the fingerprint of the wish, and where Envoy answers

# What is asked of Envoy is asked this often, a twentieth of a second apart.
patience=200

begin() { # ADDRESS:PORT FINGERPRINT
    at=$1 print=$2 roles='' sources='' bootstrap=''
    problem=$(mkdir -p "$dir/new" 2>&1) || not_written "$dir" "$problem"
    # Somebody who lost the connection may still be at it. Envoy must not inherit the lock.
    problem=$({ : >>"$dir/lock"; } 2>&1) || not_written "$dir/lock" "$problem"
    exec 9>>"$dir/lock"
    flock -w 60 9 || fail HOST-005 "another program has been changing the load balancer for a minute"
    rm -rf "$dir/new" "$dir/good.new"
    [ -d "$dir/good" ] || [ ! -d "$dir/good.old" ] || mv "$dir/good.old" "$dir/good"
    problem=$(mkdir -p "$dir/new/endpoints" "$dir/new/clusters" "$dir/new/listeners" \
        "$dir/endpoints" "$dir/clusters" "$dir/listeners" 2>&1) || not_written "$dir" "$problem"
    log_size=0
    [ ! -f "$dir/log" ] || log_size=$(wc -c <"$dir/log")
    # Envoy appends, so it goes on in the emptied file.
    if [ "$log_size" -gt 4194304 ]; then : >"$dir/log"; log_size=0; fi
}

not_written() { # FILE PROBLEM
    case $2 in
    *'No space left'* | *'quota exceeded'*) fail HOST-006 "no room to write $1" ;;
    *'Read-only file system'*) fail HOST-007 "$1 is on a filesystem that cannot be written" ;;
    *) fail HOST-019 "$1 could not be written: $(printf %s "$2" | tr '\n' ' ')" ;;
    esac
}

# Takes a file from standard input. It is nowhere in use before it was read back.
want() { # PATH SHA256
    problem=$({ cat >"$dir/new/$1" && { same "$1" || sync "$dir/new/$1"; }; } 2>&1) ||
        not_written "$dir/$1" "$problem"
    sum=$(sha256sum "$dir/new/$1")
    [ "${sum%% *}" = "$2" ] || fail HOST-019 "$dir/$1 was not as it should be after writing"
    case $1 in
    bootstrap-*) bootstrap=$1 ;;
    endpoints/*)
        role=${1#endpoints/} role=${role%.json}
        roles="$roles $role" sources="$sources cluster.$role"
        ;;
    esac
}

same() { cmp -s "$dir/new/$1" "$dir/$1"; }

version() { sed -n '1s/^{"version_info":"\([^"]*\)".*/\1/p' "$1"; }

figure() { # NAME: its value among the figures asked last
    printf '%s\n' "$figures" | sed -n "s/^$1: //p"
}

refusals() { # SOURCE
    rejected=$(figure "$1.update_rejected") failed=$(figure "$1.update_failure")
    echo $((${rejected:-0} + ${failed:-0}))
}

# Moves a file over one that Envoy watches and waits for what it says.
swap() { # SOURCE FROM PATH
    before=$(refusals "$1")
    next=$(version "$2")
    mv "$2" "$dir/$3"
    tries=0
    while [ $tries -lt $patience ]; do
        if figures=$(ask_figures "$at"); then
            [ "$(figure "$1.version_text")" != "\"$next\"" ] || return 0
            [ "$(refusals "$1")" -le "$before" ] || refused
        fi
        tries=$((tries + 1))
        sleep 0.05
    done
    # It went away in between: whether it comes back with the new file is seen at the end.
    figures='' running=no
}

# Prints NEW with the entries that only OLD has after its own.
merged() { # NEW OLD
    awk '
        function name(line) { sub(/,"resource":.*/, "", line); return line }
        FNR == 1 { if (NR == 1) head = $0; next }
        /^\]/ { tail = $0; next }
        { sub(/,$/, "") }
        $0 != "" && !(name($0) in seen) { seen[name($0)]; lines[count++] = $0 }
        END {
            print head
            for (i = 0; i < count; i++) print lines[i] (i < count - 1 ? "," : "")
            print tail
        }' "$1" "$2" >"$dir/new/mixed"
    mix=$(tail -n +2 "$dir/new/mixed" | sha256sum)
    sed "1s/\"version_info\":\"[^\"]*\"/\"version_info\":\"mixed-${mix%% *}\"/" "$dir/new/mixed" >"$dir/new/mixed.json"
}

entries() { sed -e 1d -e '/^\]/d' -e 's/,$//' -e 's/,"resource":.*//' -e '/^$/d' "$1"; }

# Whether the first file has an entry that the second has not.
has_more() { # FILE THAN
    entries "$2" >"$dir/new/than"
    entries "$1" | grep -qvFxf "$dir/new/than"
}

changed() { mark changed "envoy/$1"; }

# Waits until a page no longer says something, but not for ever: whether targets answer does
# not change what was wished.
wait_until_gone() { # PAGE PATTERN
    tries=0
    while [ $tries -lt $patience ] && ask "$at" "$1" | grep -q "$2"; do
        tries=$((tries + 1))
        sleep 0.05
    done
}

# A target counts only after its first check.
wait_for_checks() { wait_until_gone clusters '::health_flags::.*/pending_active_hc'; }

# Changes the targets of roles. Where some come and some go, all are there until those that
# come were checked: otherwise there would be nobody to send a caller to for a moment.
move_targets() {
    later=''
    for role in $roles; do
        file=endpoints/$role.json
        source=cluster.$role
        if [ ! -f "$dir/$file" ] || [ -z "$(figure "$source.version_text")" ]; then
            # Envoy does not read it yet.
            same "$file" || { mv "$dir/new/$file" "$dir/$file"; changed "$file"; }
        elif same "$file"; then
            [ "$(figure "$source.version_text")" = "\"$(version "$dir/$file")\"" ] ||
                { swap "$source" "$dir/new/$file" "$file"; changed "$file"; }
        elif has_more "$dir/new/$file" "$dir/$file" && has_more "$dir/$file" "$dir/new/$file"; then
            merged "$dir/new/$file" "$dir/$file"
            swap "$source" "$dir/new/mixed.json" "$file"
            later="$later $role"
        else
            swap "$source" "$dir/new/$file" "$file"
            changed "$file"
        fi
    done
    [ -z "$later" ] || wait_for_checks
    for role in $later; do
        swap "cluster.$role" "$dir/new/endpoints/$role.json" "endpoints/$role.json"
        changed "endpoints/$role.json"
    done
}

# Whether a file of which there is one has to be swapped.
stale() { # SOURCE PATH
    ! same "$2" || [ "$(figure "$1.version_text")" != "\"$(version "$dir/$2")\"" ]
}

# Clusters come before the listeners that use them, and go after them.
move_roles() {
    clusters=clusters/all.json listeners=listeners/all.json leaving=no
    if stale cluster_manager.cds $clusters; then
        if [ -f "$dir/$clusters" ] && has_more "$dir/$clusters" "$dir/new/$clusters"; then
            leaving=yes
            merged "$dir/new/$clusters" "$dir/$clusters"
            swap cluster_manager.cds "$dir/new/mixed.json" $clusters
        else
            swap cluster_manager.cds "$dir/new/$clusters" $clusters
            changed $clusters
        fi
        wait_until_gone 'stats?filter=warming_clusters' 'warming_clusters: [1-9]'
    fi
    if stale listener_manager.lds $listeners; then
        swap listener_manager.lds "$dir/new/$listeners" $listeners
        changed $listeners
    fi
    if [ $leaving = yes ]; then
        swap cluster_manager.cds "$dir/new/$clusters" $clusters
        changed $clusters
    fi
}

# Puts files where Envoy finds them when it starts.
place() { # PATH...
    for file; do
        same "$file" || { mv "$dir/new/$file" "$dir/$file"; changed "$file"; }
    done
}

# Goes back to what worked, says why, and ends.
refused() {
    tries=0 why=''
    while [ -z "$why" ] && [ $tries -lt 40 ]; do
        why=$(tail -c "+$((log_size + 1))" "$dir/log" 2>/dev/null |
            sed -n 's/^.*config update \(rejected\|failure\): //p' | tail -n 1 | cut -c 1-400)
        tries=$((tries + 1))
        sleep 0.05
    done
    if [ -d "$dir/good" ]; then
        for file in "$dir"/good/endpoints/*.json "$dir/good/clusters/all.json" "$dir/good/listeners/all.json"; do
            file=${file#"$dir/good/"}
            if [ -f "$dir/good/$file" ] && ! cmp -s "$dir/good/$file" "$dir/$file"; then
                cp "$dir/good/$file" "$dir/new/back" && mv "$dir/new/back" "$dir/$file"
            fi
        done
        tries=0
        until figures=$(ask_figures "$at") && all_in_use "$dir/good/in-use" "$figures"; do
            tries=$((tries + 1))
            [ $tries -lt $patience ] || break
            sleep 0.05
        done
        remove_others "$dir/good"
        what='its configuration'
    else
        listen_to_nothing
        what='its first configuration and has no role in use'
    fi
    tell_facts
    fail HOST-018 "Envoy refuses $what: ${why:-it does not say why, see $dir/log}"
}

# There is nothing to go back to. What was refused must not be what Envoy begins with when the
# machine starts again: it could be there before whoever has the port now. Nor may a part of it
# stay in use. Without the file Envoy would not start at all, so it gets an empty one.
listen_to_nothing() {
    printf '{"version_info":"none","resources":[\n]}\n' >"$dir/new/none" &&
        mv "$dir/new/none" "$dir/listeners/all.json" || rm -f "$dir/listeners/all.json"
    tries=0
    until figures=$(ask_figures "$at") && [ "$(figure listener_manager.lds.version_text)" = '"none"' ]; do
        tries=$((tries + 1))
        [ $tries -lt $patience ] || break
        sleep 0.05
    done
}

# Removes the targets of roles that a set does not have.
remove_others() { # SET
    for file in "$dir"/endpoints/*.json; do
        if [ -f "$file" ] && ! grep -qF "\"path\":\"$file\"" "$1/clusters/all.json"; then
            rm -f "$file"
            changed "endpoints/${file##*/}"
        fi
    done
}

# Whether Envoy, freshly started, refused something that is not in use.
has_refused() {
    for source in listener_manager.lds cluster_manager.cds $sources; do
        [ "$(refusals "$source")" -eq 0 ] || return 0
    done
    return 1
}

# Waits until Envoy has everything in use. One that was running has been asked already: what it
# counts may be from long ago, unless it was started again, and then it takes a moment.
verify() {
    tries=0 moment=0
    [ "$running" = no ] || moment=$patience
    while [ $tries -lt $((patience * 3)) ]; do
        if figures=$(ask_figures "$at"); then
            ! all_in_use "$dir/new/in-use" "$figures" || return 0
            if [ $tries -ge $moment ] && has_refused; then refused; fi
        fi
        tries=$((tries + 1))
        sleep 0.05
    done
    tail -n 20 "$dir/log" 2>/dev/null
    fail HOST-015 "Envoy does not answer at $at, or not with what it was told; see $dir/log"
}

# Keeps what is in use now, to go back to.
remember() {
    cmp -s "$dir/new/in-use" "$dir/in-use" || mv "$dir/new/in-use" "$dir/in-use"
    if [ "$(cat "$dir/told" 2>/dev/null)" != "$print $at" ]; then
        echo "$print $at" >"$dir/new/told" && mv "$dir/new/told" "$dir/told"
        changed told
    else
        mark unchanged envoy/told
    fi
    if ! cmp -s "$dir/good/told" "$dir/told"; then
        mkdir "$dir/good.new"
        for part in endpoints clusters listeners in-use told; do
            cp -R "$dir/$part" "$dir/good.new/$part" || fail HOST-019 "$dir/good could not be written"
        done
        rm -rf "$dir/good.old"
        [ ! -d "$dir/good" ] || mv "$dir/good" "$dir/good.old"
        mv "$dir/good.new" "$dir/good"
    fi
    rm -rf "$dir/good.old" "$dir/new"
}

finish() {
    for file in "$dir"/new/bootstrap-* "$dir"/new/endpoints/*.json "$dir/new/clusters/all.json" "$dir/new/listeners/all.json"; do
        file=${file#"$dir/new/"}
        [ -f "$dir/new/$file" ] && same "$file" && mark unchanged "envoy/$file"
    done
    place "$bootstrap"
    running=no
    if figures=$(ask_figures "$at"); then
        running=yes
        move_targets
        move_roles
    else
        for role in $roles; do place "endpoints/$role.json"; done
        place clusters/all.json listeners/all.json
    fi
    ensure_service </dev/null 9>&- || exit
    verify
    remove_others "$dir"
    for file in "$dir"/bootstrap-*.json; do
        [ "$file" = "$dir/$bootstrap" ] || rm -f "$file"
    done
    wait_for_checks
    remember
    tell_facts
}
