# What pods send out of the cluster comes from their host; inside they keep their own addresses.
# Arguments: the network of pods, the network of machines.
set -eu
chain=SLIPWAY-PODS
nat() { iptables -w -t nat "$@"; }
nat -N "$chain" 2>/dev/null || nat -F "$chain"
for inside in "$1" "$2" 224.0.0.0/4; do nat -A "$chain" -d "$inside" -j RETURN; done
nat -A "$chain" -j MASQUERADE
nat -C POSTROUTING -s "$1" -j "$chain" 2>/dev/null || nat -A POSTROUTING -s "$1" -j "$chain"
