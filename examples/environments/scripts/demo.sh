# shellcheck shell=sh
# What all scripts of this directory share: reading what they are told, and where things are.
# Sourced, not run: `. "${0%/*}/demo.sh"`.
set -eu

# Where the environments are: directories of files.
state=${SLIPWAY_EXAMPLE_STATE:-${TMPDIR:-/tmp}/slipway-example-environments}

# argument OPTION WORDS…: the value of an option.
argument() {
  wanted=$1
  shift
  while [ "$#" -ge 2 ]; do
    if [ "$1" = "$wanted" ]; then
      printf '%s\n' "$2"
      return
    fi
    shift 2
  done
  echo "missing $wanted" >&2
  return 64
}

# setting LEVEL KEY DEFAULT WORDS…: the value of a setting; it may have `=` and spaces in it.
setting() {
  option=--$1-config key=$2 value=$3
  shift 3
  while [ "$#" -ge 2 ]; do
    if [ "$1" = "$option" ] && [ "${2%%=*}" = "$key" ]; then
      value=${2#*=}
    fi
    shift 2
  done
  printf '%s\n' "$value"
}

# about WORDS…: which environment it is about: $name, $home, $tag.
about() {
  name=$(argument --name "$@")
  home=$state/$(argument --namespace "$@")/$name
  tag=$(setting application image.tag latest "$@")
}

# Takes its time, and ends badly, if the settings say so: `demo.slow`, `demo.fail`.
perform() {
  script=$1
  shift
  slow=$(setting application demo.slow 0 "$@")
  fail=$(setting application demo.fail none "$@")
  echo "$script $name"
  second=0
  while [ "$second" -lt "$slow" ]; do
    second=$((second + 1))
    sleep 1
    echo "$second of $slow s"
  done
  if [ "$fail" = "$script" ]; then
    echo "$script fails, as demo.fail says" >&2
    exit 1
  fi
}

# Writes down how the environment is deployed. Of what is secret only how much there is.
deploy() {
  mkdir -p "$home/data"
  printf '%s\n' "$tag" >"$home/tag"
  printf '%s\n' "$@" >"$home/settings"
  secrets=0
  if [ -n "${SLIPWAY_SECRETS:-}" ]; then
    secrets=$(wc -l <"$SLIPWAY_SECRETS/index")
  fi
  echo "$((secrets)) secret settings came as files"
  echo up >"$home/state"
}
