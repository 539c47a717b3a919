# Changes one release, under a runner:
#   act.sh VERB HELM KUBECTL NAMESPACE RELEASE SECONDS [WORDS FOR helm upgrade]
# Every verb may be repeated: what was done before is found done.
set -eu
verb=$1 helm=$2 kubectl=$3 namespace=$4 release=$5 seconds=$6
shift 6

# Resource, replicas and what is remembered of everything that can rest, one on each line. A CronJob
# has one replica, or none while it is suspended. Helm itself has noted which release an object is of.
workloads() {
  "$kubectl" get deployments.apps,statefulsets.apps,cronjobs.batch --namespace "$namespace" \
    --selector app.kubernetes.io/managed-by=Helm --output go-template="
{{- range .items }}{{ \$one := . }}{{ with .metadata.annotations }}
{{- if eq (printf \"%v\" (index . \"meta.helm.sh/release-name\")) \"$release\" }}
{{- if eq \$one.kind \"Deployment\" }}deployments.apps{{ else if eq \$one.kind \"StatefulSet\" }}statefulsets.apps{{ else }}cronjobs.batch{{ end }}/{{ \$one.metadata.name }}
{{- if eq \$one.kind \"CronJob\" }}{{ if \$one.spec.suspend }} 0{{ else }} 1{{ end }}{{ else }}{{ printf \" %v\" \$one.spec.replicas }}{{ end }}
{{- printf \" %v\n\" (or (index . \"slipway.dev/replicas\") \"-\") }}
{{- end }}{{ end }}{{ end }}"
}

# Patches a resource, if it still has so many replicas: somebody else may scale it, too. It gets so
# many, and something is done about what is remembered.
patch() {
  case $1 in
    cronjobs.*) field=/spec/suspend has=$2 gets=$3
      [ "$has" -eq 0 ] && has=true || has=false
      [ "$gets" -eq 0 ] && gets=true || gets=false ;;
    *) field=/spec/replicas has=$2 gets=$3 ;;
  esac
  "$kubectl" patch "$1" --namespace "$namespace" --type json --patch "[
    {\"op\":\"test\",\"path\":\"$field\",\"value\":$has},
    {\"op\":\"replace\",\"path\":\"$field\",\"value\":$gets},
    {\"op\":\"$4\",\"path\":\"/metadata/annotations/slipway.dev~1replicas\",\"value\":\"$2\"}]"
}

archive() {
  found=$(workloads)
  printf '%s\n' "$found" | while read -r resource replicas _; do
    case $resource in
      '') echo 'there is nothing that could rest' ;;
      *) [ "$replicas" -eq 0 ] || patch "$resource" "$replicas" 0 add ;;
    esac
  done
}

# Brings back what rests, and forgets what is remembered of what does not.
restore() {
  found=$(workloads)
  printf '%s\n' "$found" | while read -r resource replicas before; do
    case $before in
      '' | -) continue ;;
      *[!0-9]*) echo "$resource: $before is no number of replicas" >&2; exit 1 ;;
    esac
    [ "$replicas" -ne 0 ] || patch "$resource" 0 "$before" remove
    [ "$replicas" -eq 0 ] || patch "$resource" "$replicas" "$replicas" remove
  done
}

# The same for people, who want to know when there is nothing to bring back.
unarchive() {
  "$helm" status "$release" --namespace "$namespace" >/dev/null
  restore
}

deploy() {
  # It is there, or its user may not make it; else Helm says what is missing.
  "$kubectl" create namespace "$namespace" >/dev/null 2>&1 || :
  # Nobody else works on this release: what is under way was begun by somebody who was killed, and
  # would keep everybody out.
  stale=$("$kubectl" get secrets --namespace "$namespace" --output name --selector \
    "owner=helm,name=$release,status in (pending-install,pending-upgrade,pending-rollback,uninstalling)")
  for secret in $stale; do
    echo "$secret was left by somebody who was killed, and is removed"
    "$kubectl" delete "$secret" --namespace "$namespace" --ignore-not-found >/dev/null
  done
  "$helm" upgrade "$release" "$@" --install --reset-values --history-max 10 \
    --namespace "$namespace" --timeout "${seconds}s"
  restore
}

cleanup() {
  "$helm" uninstall "$release" --namespace "$namespace" --ignore-not-found --timeout "${seconds}s"
  "$kubectl" delete persistentvolumeclaims --namespace "$namespace" --ignore-not-found \
    --selector "app.kubernetes.io/instance=$release" --timeout "${seconds}s"
}

case $verb in
  deploy | archive | unarchive | cleanup) "$verb" "$@" ;;
  *) echo "nobody knows how to $verb" >&2; exit 64 ;;
esac
