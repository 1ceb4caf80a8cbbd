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
# The oldest C library that has all that the libraries call; the command has its own.
glibc=$(objdump -T "$root"/usr/lib/{,mscclc/}*.so.* |
  grep -o 'GLIBC_[0-9.]\+' | sort -Vu | tail -n 1)
echo 'activate-noawait ldconfig' > "$root/DEBIAN/triggers"
chmod -R u+w,go-w "$root"
cat > "$root/DEBIAN/control" <<CONTROL
Package: mscclc
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: the authors of mscclc <mscclc@localhost>
Section: devel
Priority: optional
Depends: libc6 (>= ${glibc#GLIBC_})
Suggests: python3 (>= 3.10)
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Description: compiler and runtime for GPU collectives
 Programs become proved plans, which run in the runtime's executor. The package has the command
 mscclc, the library of programs, completions for bash and zsh, and man pages; libmscclc with its
 header, for C programs; and a libnccl.so.2 that runs plans, in a folder of its own.
CONTROL
find "$root" -exec touch --no-dereference --date=@0 {} +
dpkg-deb --build --root-owner-group "$root" "$out" > /dev/null
