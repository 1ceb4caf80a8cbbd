#!/bin/bash
# Kernels of the library's plans, as packages hold them (docs/compiled_kernels.md):
#
#   kernels.sh OUT MSCCLC ARCHITECTURES OPTIONS...    with `mscclc library OPTIONS... --kernels` for each of them,
#                                                     sm_80,sm_90 for example
#   kernels.sh OUT                                    none: the package has no GPU part
#
# OUT is a tar of a folder kernels/: README, which says what is there, and a folder of each architecture with
# its kernels, without the plans, which are compiled into the libraries. Where nothing can compile kernels,
# README says so, and the build too.
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
mscclc=$PWD/$2
IFS=, read -ra architectures <<< "$3"
shift 3
{
  echo "Kernels of plans of the library, made by mscclc library $*."
  echo "libmscclc and libnccl.so.2 of this package run calls in them, unless MSCCLC_KERNEL_PATH names another folder."
} > "$root/README"
for architecture in "${architectures[@]}"; do
  if ! said=$("$mscclc" library "$@" --kernels "$architecture" -o "$root/kernels/$architecture" 2>&1); then
    if [[ $said == *"there is no nvcc"* ]]; then
      echo "kernels.sh: the package gets no kernels of plans: $said" >&2
      rm -rf "$root/kernels/$architecture"
      without "neither nvcc nor NVRTC was there to compile them"
    fi
    echo "kernels.sh: $said" >&2
    exit 1
  fi
  rm "$root/kernels/$architecture"/*.json
  # Not how long it took here.
  grep 'files of kernels' <<< "$said" | sed 's/, made in [0-9.]* s//' >> "$root/README"
done
mv "$root/README" "$root/kernels"
finish
