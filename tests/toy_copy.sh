# Sourced by toy_*.sh, which add to the tree by the recipes of CONTRIBUTING.md and count what that takes.
# shellcheck shell=bash

die() {
  printf '%s\n' "$*" >&2
  exit 1
}
say() { printf '%s\n' "$*"; }

# Goes into a copy of the tree, committed, so that git shows what is added. Files that git does not know
# are not copied. Arguments are the script's: --quick sets `quick` to 1; a folder is for the copy, which is
# kept then; without one the copy is removed at the end.
enter_copy() {  # [--quick] [FOLDER]
  quick=0 copy=
  while (($#)); do
    case $1 in
      --quick) quick=1 ;;
      -*) die "unknown option '$1'; there is --quick" ;;
      *) copy=$1 ;;
    esac
    shift
  done
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
  git -c user.name=toy -c user.email=toy@localhost commit --quiet --message "before the toy"
}

remove_copy() {
  if ((!quick)); then (cd "$copy" && bazel clean --expunge) >/dev/null 2>&1 || true; fi
  rm -rf "$copy"
}

# Inserts the lines of standard input before the first line of a file that matches.
insert() {  # file pattern
  local line
  line=$(grep --max-count=1 --line-number --regexp="$2" "$1" | cut -d: -f1)
  [[ -n $line ]] || die "$1: no line '$2'"
  sed --in-place "$((line - 1))r /dev/stdin" "$1"
}

# Changes text in a file, where it stands once.
change() {  # file text other
  [[ $(grep --count --fixed-strings --regexp="$2" "$1") == 1 ]] || die "$1: '$2' does not stand in one line"
  sed --in-place "s#$2#$3#" "$1"
}

# Each of these sources must compile. C++, or CUDA, as the host compiles it.
compile() {  # source…
  printf '%s\n' "$@" | sort --unique | xargs --max-args=1 --max-procs="$(nproc)" bash -c '
    flags=(-std=c++20 -fsyntax-only -Wall -Wextra -Wno-unused-parameter -Werror -I.)
    case $0 in
      *.cu) flags+=(-x c++ -include executor/cuda/host/cuda_words.h -Iexecutor/cuda/host/include
        -fno-strict-aliasing -Wno-unknown-pragmas -Wno-unused-function) ;;
      *) flags+=(-include tools/build_rules/common_headers.h) ;;
    esac
    g++ "${flags[@]}" "$0"' || die "does not compile with the edits of the recipe"
}

# Sources, without tests, of these folders that have a match.
sources_with() {  # pattern folder…
  local pattern=$1
  shift
  grep --recursive --files-with-matches --extended-regexp "$pattern" --include='*.cc' "$@" | grep --invert-match _test.cc
}

# Writes docs/ops.md, and compares plans/schema.json with the tables, without the command.
write_ops_page() {
  local program
  program=$(mktemp)
  g++ -std=c++20 -O0 -I. -DFMT_HEADER_ONLY -x c++ -o "$program" - ir/ops/ops.cc ir/ops/ops_doc.cc <<'EOF'
#include <cstdio>
#include <string_view>

#include "ir/ops/ops_doc.h"

int main(int argc, char**) {
  if (argc == 1) std::fputs(mscclc::ops_reference().c_str(), stdout);
  if (argc != 1) {
    for (const auto& op : mscclc::op_table()) std::printf("%s\n", std::string(op.name).c_str());
    for (const auto& format : mscclc::packet_formats()) std::printf("%s\n", std::string(format.name).c_str());
  }
}
EOF
  "$program" >docs/ops.md
  "$program" names | while read -r name; do
    grep --quiet "\"$name\"" plans/schema.json || die "plans/schema.json does not name $name"
  done
  rm -f "$program"
}

# Fails if the edits went into more files than these.
count_places() {  # what most
  local files
  git add --all --intent-to-add
  files=$(git diff --name-only | grep --invert-match '^user.bazelrc$')
  places=$(wc -l <<<"$files")
  say "$1 costs $places places, which may be $2:" "$files"
  ((places <= $2)) || die "$1 costs more than $2 places"
}
