#!/bin/bash
# Plans of the library with kernels of their own, as packages hold them (docs/specialised.md):
#
#   kernels.sh OUT MSCCLC ARCHITECTURE OPTIONS...     with `mscclc library OPTIONS... --kernels ARCHITECTURE`
#   kernels.sh OUT                                    none: the package has no GPU part
#
# OUT is a tar of a folder kernels/: README, which says what is there, and ARCHITECTURE/ with plans,
# their table and their kernels. Where nothing can compile kernels, README says so, and the build too.
set -euo pipefail
out=$PWD/$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root/kernels"

# The same input gives the same bytes.
finish() {
  tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u+rwX,go=rX \
    --file "$out" --directory "$root" kernels
  exit
}

# A package without kernels, whose plans the interpreter runs.
without() { # WHY
  echo "There are no kernels of plans here: $1. The interpreter runs all plans." > "$root/kernels/README"
  finish
}

(($# > 1)) || without "this package was built without the GPU part"
mscclc=$PWD/$2 architecture=$3
shift 3
if ! said=$("$mscclc" library "$@" --kernels "$architecture" -o "$root/kernels/$architecture" 2>&1); then
  if [[ $said == *"there is no nvcc"* ]]; then
    echo "kernels.sh: the package gets no kernels of plans: $said" >&2
    rm -rf "$root/kernels/$architecture"
    without "neither nvcc nor NVRTC was there to compile them"
  fi
  echo "kernels.sh: $said" >&2
  exit 1
fi
{
  echo "Plans of the library with kernels of their own for $architecture, by mscclc library $*."
  echo "Calls run in them where MSCCLC_PLAN_PATH names the folder $architecture here."
  # Not how long it took here.
  grep 'files of kernels' <<< "$said" | sed 's/, made in [0-9.]* s//'
} > "$root/kernels/README"
finish
