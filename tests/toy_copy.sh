# Sourced by toy_op.sh and toy_format.sh, which add to the tree by the recipes of CONTRIBUTING.md.
# shellcheck shell=bash

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Goes into a copy of the tree, committed under a message, so that git shows what is added. Without a
# folder the copy is removed at the end. Files that git does not know are not copied.
enter_copy() {  # message folder
  copy=${2:-}
  if [[ -z $copy ]]; then
    copy=$(mktemp -d)
    trap remove_copy EXIT
  fi
  mkdir -p "$copy"
  git ls-files -z | xargs -0 cp --parents --no-dereference -t "$copy"
  if [[ -f user.bazelrc ]]; then cp user.bazelrc "$copy"; fi
  cd "$copy"
  # Whether it compiles and is right is asked, not how fast it is.
  echo 'build --copt=-O0 --copt=-U_FORTIFY_SOURCE' >>user.bazelrc
  rm -rf .git
  git init --quiet
  git add --all
  git -c user.name=toy -c user.email=toy@localhost commit --quiet --message "$1"
}

remove_copy() {
  (cd "$copy" && bazel clean --expunge && rm -rf "$copy") >/dev/null 2>&1 || true
}
