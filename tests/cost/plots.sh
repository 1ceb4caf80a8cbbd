#!/usr/bin/env bash
# Draws predicted against measured calls, and compares with the pictures of docs/design/cost_model.md,
# or replaces them:
#
#   plots.sh PLOT [--update]
set -euo pipefail

plot=$(realpath "$1")
pages=docs/design/drawings
[[ ${2:-} != --update ]] || cd "$BUILD_WORKSPACE_DIRECTORY"
drawn=$(mktemp -d)
trap 'rm -r "$drawn"' EXIT
"$plot" tests/cost plans "$drawn"
for picture in "$drawn"/*.svg; do
  name=$(basename "$picture")
  if [[ ${2:-} == --update ]]; then
    cp "$picture" "$pages/$name"
  elif ! cmp "$picture" "$pages/$name"; then
    echo "$pages/$name is not what is predicted now; bazel run //tests/cost:update_plots"
    exit 1
  elif ! grep -q "drawings/$name" docs/design/cost_model.md; then
    echo "docs/design/cost_model.md does not show $name"
    exit 1
  fi
done
