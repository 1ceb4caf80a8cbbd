#!/usr/bin/env bash
# Checks the Promela models of the primitives with spin: every assertion, no deadlock, every ltl
# formula. Each variant that a model calls BROKEN must be refused by one of these.
#   check_models.sh MODEL…
set -euo pipefail
for tool in spin gcc; do
  command -v $tool >/dev/null || { echo "$tool is not installed (tools/packages.txt)"; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Builds the checker of model.pml: variant
build() {
  rm -f "$work"/pan*
  (cd "$work" && spin -a -DBROKEN="$1" model.pml >spin.log 2>&1 &&
    gcc -O0 -w -DNFAIR=4 -o pan pan.c) || { cat "$work/spin.log"; exit 1; }
}

# Searches once and says what came of it: name of the model, variant, what for, options. Fails if
# there is an error, or no result.
search() {
  local name=$1 variant=$2 what=$3 errors states
  shift 3
  (cd "$work" && ./pan -m1000000 "$@") >"$work/pan.log" 2>&1 || true
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$work/pan.log")
  states=$(sed -n 's/ *\([0-9]*\) states, stored.*/\1/p' "$work/pan.log")
  if [[ -z $errors ]] || grep -qE 'max search depth too small|out of memory' "$work/pan.log"; then
    cat "$work/pan.log"
    echo "FAILED: the search in $name for '$what' came to no end"
    exit 1
  fi
  printf '  %-12s %d  %-10s %s errors, %s states\n' "$name" "$variant" "$what" "$errors" "$states"
  ((errors == 0))
}

# Looks for violated assertions and deadlocks, then for violations of each formula, until something
# is found: model variant. Fails if something is.
check() {
  local name formula
  name=$(basename "$1" .pml)
  grep -v '^ltl ' "$1" >"$work/model.pml"
  build "$2"
  search "$name" "$2" deadlock || return 1
  cp "$1" "$work/model.pml"
  build "$2"
  for formula in $(sed -n 's/^ltl \([a-z_]*\) .*/\1/p' "$1"); do
    search "$name" "$2" "$formula" -a -f -N "$formula" || return 1
  done
}

failed=0
for model in "$@"; do
  if ! check "$model" 0; then
    echo "FAILED: $model"
    failed=1
  fi
  for variant in $(sed -n 's/.*BROKEN \([0-9]\):.*/\1/p' "$model"); do
    if check "$model" "$variant"; then
      echo "FAILED: $model passes although it is broken ($variant)"
      failed=1
    fi
  done
done
exit $failed
