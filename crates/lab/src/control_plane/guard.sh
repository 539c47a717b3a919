# Owns the programs of one control plane and their directory for as long as standard input is open.
#
# Whoever started us holds the other end and closes it by ending, however that happens: then all is
# killed and the directory removed. Each line is a wish, and each wish gets one line as its answer:
# `start NAME` runs the program whose arguments are in the file NAME.args, a line each; `stop NAME`
# kills it. Being the parent of the programs we can never signal somebody else's process.
#
# Arguments: the directory, the directory of the programs.
directory=$1
programs=$2

exec 3<&0 </dev/null 2>>"$directory/log"

stop() {
    [ -f "$directory/$1.pid" ] || return
    read -r process <"$directory/$1.pid"
    kill -KILL "$process"
    wait "$process"
    rm "$directory/$1.pid"
}

while read -r wish name <&3; do
    case $wish in
    start)
        set --
        while IFS= read -r argument; do set -- "$@" "$argument"; done <"$directory/$name.args"
        "$programs/$name" "$@" >"$directory/$name.log" 2>&1 3<&- &
        echo "$!" >"$directory/$name.pid"
        echo "$!"
        ;;
    stop)
        stop "$name"
        echo stopped
        ;;
    esac
done

for name in kube-controller-manager kube-apiserver etcd; do stop "$name"; done
cd /
rm -rf "$directory"
