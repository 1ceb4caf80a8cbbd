#!/bin/bash
# Lays out what is installed under a prefix: stage.sh MSCCLC MAN_PAGE LICENSE 'LIBRARY FILES' PREFIX
set -euo pipefail
mscclc=$1 man_page=$2 license=$3 library=$4 prefix=$5

install -D -m 755 "$mscclc" "$prefix/bin/mscclc"
install -D -m 644 "$license" "$prefix/share/doc/mscclc/copyright"
for file in $library; do
  install -D -m 644 "$file" "$prefix/share/mscclc/plans/$(basename "$file")"
done

bash_completions=$prefix/share/bash-completion/completions
zsh_completions=$prefix/share/zsh/site-functions
mkdir -p "$bash_completions" "$zsh_completions" "$prefix/share/man/man1"
"$mscclc" completion bash > "$bash_completions/mscclc"
"$mscclc" completion zsh > "$zsh_completions/_mscclc"

# One page for mscclc, one for each command.
version=$("$mscclc" --version | cut -d' ' -f2)
page() {
  awk -v name="$1" -v version="$version" -f "$man_page" | gzip -9n > "$prefix/share/man/man1/$1.1.gz"
}
"$mscclc" --help | page mscclc
for command in $("$mscclc" --help | sed -n '/^commands:$/,/^$/s/^  \([a-z]\+\) .*/\1/p'); do
  "$mscclc" "$command" --help | page "mscclc-$command"
done
