# Takes the load balancer away. Before this text: common.sh and `stop_service`.

stop_service </dev/null || exit
if [ -e "$dir" ]; then
    problem=$(rm -rf "$dir" 2>&1) || fail HOST-021 "$dir could not be removed: $(printf %s "$problem" | tr '\n' ' ')"
    mark changed envoy
else
    mark unchanged envoy
fi
