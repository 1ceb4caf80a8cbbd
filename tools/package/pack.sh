#!/bin/bash
# Packs a staged prefix: pack.sh tar.gz|deb PREFIX OUT. The same input gives the same bytes.
set -euo pipefail
form=$1 prefix=$2 out=$PWD/$3
export SOURCE_DATE_EPOCH=0

if [[ $form == tar.gz ]]; then
  tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
    --directory "$(dirname "$prefix")" "$(basename "$prefix")" | gzip -9n > "$out"
  exit
fi

version=$("$prefix/bin/mscclc" --version | cut -d' ' -f2)
root=$(dirname "$prefix")/root
mkdir -p "$root/DEBIAN"
mv "$prefix" "$root/usr"
chmod -R u+w,go-w "$root"
cat > "$root/DEBIAN/control" <<CONTROL
Package: mscclc
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: the authors of mscclc <nobody@localhost>
Section: devel
Priority: optional
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Description: compiler for GPU collectives
 Programs become proved plans, which run in the runtime's executor. The package has the command
 mscclc, the library of programs, completions for bash and zsh, and man pages.
CONTROL
find "$root" -exec touch --no-dereference --date=@0 {} +
dpkg-deb --build --root-owner-group "$root" "$out" > /dev/null
