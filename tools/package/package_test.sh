#!/bin/bash
# Installs both packages into roots of their own and uses what they hold.
set -euo pipefail

fail() {
  echo "package_test: $*" >&2
  exit 1
}

work=$TEST_TMPDIR
packages=$PWD/tools/package
mkdir -p "$work/deb"
tar -xzf "$packages/mscclc.tar.gz" -C "$work"
dpkg-deb --extract "$packages/mscclc.deb" "$work/deb"
[[ $(dpkg-deb --field "$packages/mscclc.deb" Package) == mscclc ]] || fail "the package's name"
cd "$work" # where there is no plans/

for prefix in "$work/mscclc" "$work/deb/usr"; do
  mscclc=$prefix/bin/mscclc
  version=$("$mscclc" --version)
  [[ $version == "mscclc "* ]] || fail "version: $version"

  # The library is found beside the command, and is all there.
  made=$("$mscclc" select --collective allreduce --ranks 4 --bytes 64K)
  [[ $made == "mscclc compile $prefix/share/mscclc/plans/"* ]] || fail "select: $made"
  (PATH=$prefix/bin:$PATH eval "$made -o allreduce.json")
  "$mscclc" run allreduce.json --bytes 64K > run.txt || fail "run: $(cat run.txt)"
  "$mscclc" registry check . > check.txt || fail "registry: $(cat check.txt)"

  bash -n "$prefix/share/bash-completion/completions/mscclc" || fail "completion of bash"
  grep -q '^#compdef mscclc' "$prefix/share/zsh/site-functions/_mscclc" || fail "completion of zsh"

  # A page for each command, with all its options.
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
done
cmp "$work/mscclc/bin/mscclc" "$work/deb/usr/bin/mscclc" || fail "the packages differ"
