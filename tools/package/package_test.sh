#!/bin/bash
# Installs both packages into roots of their own and uses what they hold: package_test.sh BY_NAME GATHER
set -euo pipefail

by_name=$(realpath "$1")
gather=$(realpath "$2")  # a program in MSCCL++'s language
work=$TEST_TMPDIR
packages=$PWD/tools/package

fail() {
  echo "package_test: $*" >&2
  exit 1
}

# Runs a command, whose output is shown if it fails.
try() { # WHAT COMMAND...
  local what=$1
  shift
  "$@" > "$work/log.txt" 2>&1 || fail "$what: $(cat "$work/log.txt")"
}

# The library of programs is found beside the command, and is all there.
use_command() { # PREFIX
  local prefix=$1 mscclc=$1/bin/mscclc made
  version=$("$mscclc" --version)
  [[ $version == "mscclc "* ]] || fail "version: $version"
  made=$("$mscclc" select --collective allreduce --ranks 4 --bytes 64K)
  [[ $made == "mscclc compile $prefix/share/mscclc/plans/"* ]] || fail "select: $made"
  (PATH=$prefix/bin:$PATH eval "$made -o allreduce.json")
  try run "$mscclc" run allreduce.json --bytes 64K
  try registry "$mscclc" registry check .
  made=$("$mscclc" select --collective allreduce_norm --ranks 2 --columns 64 --rows 1)
  [[ $made == "mscclc compile $prefix/share/mscclc/plans/rows/"* ]] || fail "select of rows: $made"
  (PATH=$prefix/bin:$PATH eval "$made -o rows.json")
  try rows "$mscclc" run rows.json --bytes 1K

  # The command of Python finds its package, the library and the compiler.
  cp "$gather" gather.py
  try mscclpp env -u PYTHONPATH "$mscclc" mscclpp gather.py -o gather.json
  try verify "$mscclc" verify gather.json

  bash -n "$prefix/share/bash-completion/completions/mscclc" || fail "completion of bash"
  grep -q '^#compdef mscclc' "$prefix/share/zsh/site-functions/_mscclc" || fail "completion of zsh"
}

# A page for each command, with all its options.
read_manual() { # PREFIX
  local prefix=$1 mscclc=$1/bin/mscclc command option page text
  for command in $("$mscclc" --help | sed -n '/^commands:$/,/^$/s/^  \([a-z]\+\) .*/\1/p'); do
    page=$prefix/share/man/man1/mscclc-$command.1.gz
    [[ -f $page ]] || fail "no page for $command"
    text=$(gunzip -c "$page" | sed 's/\\-/-/g')
    [[ $text == ".TH MSCCLC-"* ]] || fail "$page has no head"
    for option in $("$mscclc" "$command" --help | grep -o '^  .*--[a-z-]*' | grep -o -e '--[a-z-]*'); do
      grep -q -e "$option" <<< "$text" || fail "$page lacks $option"
    done
  done
  [[ $(gunzip -c "$prefix/share/man/man1/mscclc.1.gz") == *".SH EXIT CODES"* ]] || fail "mscclc.1"
}

# Runs the example in the current folder, which must have the library of this prefix.
run_example() { # PREFIX EXAMPLE
  local library
  library=$(ldd "$2" | sed -n 's/.*libmscclc.so.0 => \(.*\) (0x.*/\1/p')
  [[ $library -ef $1/lib/libmscclc.so.0 ]] || fail "$2 has another library: $(ldd "$2")"
  try "$2" "$2"
}

# find_package(), with versions that there are and that there are not.
use_cmake() { # PREFIX
  local range refused
  try cmake cmake -S example -B cmake -D CMAKE_PREFIX_PATH="$1"
  try cmake cmake --build cmake
  run_example "$1" cmake/example
  for range in 99 0.0.1...0.0.2 0.0...\<"${version#* }"; do
    refused=$(mktemp -d -p .)
    cat > "$refused/CMakeLists.txt" << CMAKE
cmake_minimum_required(VERSION 3.19)
project(refused LANGUAGES C)
find_package(mscclc $range REQUIRED)
CMAKE
    ! cmake -S "$refused" -B "$refused" -D CMAKE_PREFIX_PATH="$1" > log.txt 2>&1 ||
      fail "CMake has found version $range"
    grep -q "mscclc-config.cmake, version: ${version#* }" log.txt || fail "CMake: $(cat log.txt)"
  done
}

# pkg-config, beside flags of the user's own, and the example's word where it does not find the library.
use_make() { # PREFIX
  try make env PKG_CONFIG_PATH="$1/lib/pkgconfig" make -C example CPPFLAGS=-DMINE LDFLAGS= LDLIBS=
  run_example "$1" example/example
  [[ $(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --modversion mscclc) == "${version#* }" ]] ||
    fail "version of pkg-config"
  # What pkg-config says is all that a program needs.
  try cc "${CC:-cc}" -std=c11 -pthread -o by_flags example/example.c \
    $(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs mscclc)
  run_example "$1" ./by_flags
  ! PKG_CONFIG_LIBDIR=/nowhere make -B -C example > log.txt 2>&1 || fail "make needs no package"
  grep -q 'mscclc is missing: put the folder of mscclc.pc into PKG_CONFIG_PATH' log.txt ||
    fail "make: $(cat log.txt)"
}

# Kernels of the library's plans, or a word why there are none.
look_at_kernels() { # FOLDER ARCHITECTURE...
  local files kernels architecture folder=$1
  shift
  if [[ ! -d $folder/sm_90 ]]; then
    [[ $(< "$folder/README") == *"The interpreter runs all plans." ]] || fail "kernels: $(ls -R "$folder")"
    return
  fi
  [[ $(cd "$folder" && echo sm_*) == "$*" ]] || fail "architectures of kernels: $(ls "$folder")"
  for architecture; do
    kernels=$folder/$architecture
    files=$(find "$kernels" -type f -size +0 -name "*.$architecture.cubin" | wc -l)
    grep -q "^$files files of kernels for $architecture, [0-9]* bytes; 0 plans are left" "$folder/README" ||
      fail "README of the kernels, for $files files: $(< "$folder/README")"
    [[ -z $(find "$kernels" -type f -not -name "*.$architecture.cubin") ]] || fail "what else is in $kernels"
  done
}

# A job looks for kernels in the package of its library, and elsewhere if a variable says so.
find_kernels() { # PREFIX
  local said
  said=$(MSCCLC_DEBUG=INFO MSCCLC_DEBUG_SUBSYS=LOAD example/example 2>&1) || fail "example: $said"
  [[ $said == *"kernels of the library's plans lie in '$(realpath "$1")/share/mscclc/kernels'"* ]] ||
    fail "where are kernels? $said"
  said=$(MSCCLC_KERNEL_PATH=none MSCCLC_DEBUG=INFO MSCCLC_DEBUG_SUBSYS=LOAD example/example 2>&1) ||
    fail "example: $said"
  [[ $said != *"kernels of the library's plans"* ]] || fail "there are kernels: $said"
}

# As a package with the GPU part has them, here of a fake nvcc, beside their plans: a job picks
# these plans. On a device that runs no kernels of plans, or does not take these, the interpreter runs them.
use_kernels() { # PREFIX
  local said folder=$PWD/plans_with_kernels
  try plans "$1/bin/mscclc" library --ranks 2 --collective allreduce -o "$folder"
  for plan in "$work"/kernels/sm_90/*.cubin; do
    [[ -s $folder/$(basename "$plan" .sm_90.cubin).json ]] || fail "no plan has the kernels $plan"
  done
  cp "$work"/kernels/sm_90/*.cubin "$folder"
  grep -q 'MSCCLC_KERNEL(.*f32)' "$folder"/allreduce_1shot_ordered-*.sm_90.cubin || fail "kernels"
  said=$(MSCCLC_PLAN_PATH=$folder MSCCLC_DEBUG=INFO MSCCLC_DEBUG_SUBSYS=LOAD,SELECT \
    example/example 2>&1) || fail "the example with kernels: $said"
  [[ $said == *"$folder/allreduce_1shot_ordered-"* ]] || fail "another plan: $said"
  [[ $said == *"the interpreter runs executable"*"runs no kernels of plans"* ]] ||
    fail "who ran it? $said"
}

# NCCL's interface is no library that the loader finds by itself.
use_nccl() { # PREFIX
  [[ -z $(find "$1" -name 'libnccl*' -not -path "$1/lib/mscclc/*") ]] || fail "libnccl in lib"
  try libnccl env MSCCLC_DEVICE=host MSCCLC_NCCL=/nowhere/libnccl.so.2 \
    "$by_name" "$1/lib/mscclc/libnccl.so.2" 22809
  try "the audit library" env MSCCLC_DEVICE=host MSCCLC_NCCL=/nowhere/libnccl.so.2 \
    LD_AUDIT="$1/lib/mscclc/libmscclc_audit.so" "$by_name" libnccl.so.2 22809
}

# The libraries need the C library alone, as the .deb says.
need_little() { # PREFIX
  local needed
  needed=$(readelf -d "$1"/lib/libmscclc.so.0 "$1"/lib/mscclc/*.so* | grep NEEDED)
  ! grep -Ev '\[(libc|libm|libdl|libpthread|ld-linux[^.]*)\.so' <<< "$needed" || fail "NEEDED above"
}

# Where /lib is /usr/lib, CMake may come by either.
use_merged_usr() {
  ln -s usr/lib "$work/deb/lib"
  try "cmake by lib" cmake -S "$work/deb/usr/share/doc/mscclc/examples" -B "$work/merged" \
    -D CMAKE_PREFIX_PATH="$work/deb"
  grep -q "^mscclc_DIR:PATH=$work/deb/lib/cmake/mscclc$" "$work/merged/CMakeCache.txt" ||
    fail "CMake did not come by lib"
}

# An error of CMake, if a part of the package has been lost.
lose_header() { # PREFIX
  mv "$1/include/mscclc.h" .
  ! cmake -S example -B lost -D CMAKE_PREFIX_PATH="$1" > log.txt 2>&1 || fail "CMake needs no header"
  grep -q 'mscclc.h is missing: install the package again' <<< "$(tr -s '\n ' ' ' < log.txt)" ||
    fail "CMake: $(cat log.txt)"
}

for tool in cmake make pkg-config; do
  command -v $tool > /dev/null || fail "$tool is not installed (tools/packages.txt)"
done
# The tree of the tarball is moved before it is used.
mkdir -p "$work"/{tar/unpacked,deb}
tar -xzf "$packages/mscclc.tar.gz" -C "$work/tar/unpacked"
mv "$work/tar/unpacked/mscclc" "$work/tar/moved"
dpkg-deb --extract "$packages/mscclc.deb" "$work/deb"
[[ $(dpkg-deb --field "$packages/mscclc.deb" Package) == mscclc ]] || fail "the package's name"
[[ $(dpkg-deb --field "$packages/mscclc.deb" Depends) =~ ^libc6\ \(\>=\ 2\.[0-9]+\)$ ]] ||
  fail "what the package needs: $(dpkg-deb --field "$packages/mscclc.deb" Depends)"
diff -r --no-dereference "$work/tar/moved" "$work/deb/usr" || fail "the packages differ"

tar -xf "$packages/fake_kernels.tar" -C "$work"
look_at_kernels "$work/kernels" sm_100 sm_90

use_merged_usr

for prefix in "$work/tar/moved" "$work/deb/usr"; do
  # Where there is no plans/.
  here=$work/use$prefix
  mkdir -p "$here"
  cd "$here"
  use_command "$prefix"
  read_manual "$prefix"
  cp -r "$prefix/share/doc/mscclc/examples" example
  use_cmake "$prefix"
  use_make "$prefix"
  look_at_kernels "$prefix/share/mscclc/kernels" sm_100 sm_80 sm_90
  find_kernels "$prefix"
  use_kernels "$prefix"
  use_nccl "$prefix"
  need_little "$prefix"
  lose_header "$prefix"
done
