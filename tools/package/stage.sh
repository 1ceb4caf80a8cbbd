#!/bin/bash
# Lays out what is installed under a prefix: NAME=FILES... stage.sh PREFIX
# The names are those of the variables below. No file that is written here says where the prefix is.
set -euo pipefail
prefix=$1
: "${mscclc:?}" "${man_page:?}" "${license:?}" "${plans:?}" "${libmscclc:?}" "${libnccl:?}" "${audit:?}"
: "${header:?}" "${config:?}" "${examples:?}" "${kernels:?}" "${python:?}" "${rows:?}"

put() { # FOLDER FILE...: as the prefix's files
  local folder=$1
  shift
  install -D -m 644 -t "$prefix/$folder" "$@"
}

install -D -m 755 "$mscclc" "$prefix/bin/mscclc"
install -D -m 644 "$license" "$prefix/share/doc/mscclc/copyright"
# shellcheck disable=SC2086  # several files
put share/mscclc/plans $plans
# shellcheck disable=SC2086
put share/mscclc/plans/rows $rows
version=$("$mscclc" --version | cut -d' ' -f2)

# What 'mscclc mscclpp' runs: the package without what torch needs, which the wheel has.
for file in $python; do
  case $file in
    *.py) put "share/mscclc/$(dirname "$file")" "$file" ;;
  esac
done

# Kernels of the library's plans, by architecture, or why there are none (kernels.sh).
tar --extract --file "$kernels" --directory "$prefix/share/mscclc" --no-same-owner

# The library for C, and how CMake and pkg-config find it.
put include "$header"
put lib "$libmscclc"
ln -s libmscclc.so.0 "$prefix/lib/libmscclc.so"
for file in $config; do
  name=$(basename "$file" .in)
  case $name in
    *.pc) folder=lib/pkgconfig ;;
    *.cmake) folder=lib/cmake/mscclc ;;
    *) echo "stage.sh: where does $name belong?" >&2 && exit 1 ;;
  esac
  mkdir -p "$prefix/$folder"
  sed "s/@VERSION@/$version/" "$file" > "$prefix/$folder/$name"
done
# shellcheck disable=SC2086
put share/doc/mscclc/examples $examples

# In a folder of its own: programs that want it before NVIDIA's name it.
put lib/mscclc "$libnccl" "$audit"
strip --strip-unneeded "$prefix/lib/mscclc/libnccl.so.2"

bash_completions=$prefix/share/bash-completion/completions
zsh_completions=$prefix/share/zsh/site-functions
mkdir -p "$bash_completions" "$zsh_completions" "$prefix/share/man/man1"
"$mscclc" completion bash > "$bash_completions/mscclc"
"$mscclc" completion zsh > "$zsh_completions/_mscclc"

# One page for mscclc, one for each command.
page() {
  awk -v name="$1" -v version="$version" -f "$man_page" | gzip -9n > "$prefix/share/man/man1/$1.1.gz"
}
"$mscclc" --help | page mscclc
for command in $("$mscclc" --help | sed -n '/^commands:$/,/^$/s/^  \([a-z]\+\) .*/\1/p'); do
  "$mscclc" "$command" --help | page "mscclc-$command"
done
