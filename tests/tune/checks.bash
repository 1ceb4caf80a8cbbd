# What the scripts of this folder share, to be sourced: a folder of their own, which goes with them, and
# checks of exit codes. `script` is the name that failures have.
script=$(basename "$0")
folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/$script.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "$script: $1"
  exit 1
}
expect_code() {
  local wanted=$1 code=0
  shift
  "$@" >out 2>err || code=$?
  ((code == wanted)) || { cat out err; fail "exit code $code, not $wanted: $*"; }
}
