#!/bin/sh
# Runs a script in a virtual machine that has two RDMA devices in software, rxe0 and rxe1 (RoCE v2
# over the ends of a veth pair). The machine's root is this system's, read-only: programs run as they
# lie here, and what they write is lost. No KVM, no module and no right of root is needed.
#
#   run.sh SCRIPT [ARGUMENT...]
#
# Exits as the script does, or with 0 and a line "left out: ..." where the machine cannot be made:
# it takes the packages for 'vm' of tools/packages.txt, and Debian's kernel, which is downloaded once
# to MSCCLC_VM_CACHE (/var/tmp/mscclc-vm-UID). MSCCLC_SKIP_VM=1 leaves it out, too.
set -eu

PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
cache=${MSCCLC_VM_CACHE:-/var/tmp/mscclc-vm-$(id -u)}
limit=${MSCCLC_VM_SECONDS:-3000}

leave_out() {
  echo "left out: $*"
  exit 0
}

[ "${MSCCLC_SKIP_VM:-0}" = 0 ] || leave_out "MSCCLC_SKIP_VM is set"
[ "$(uname -m)" = x86_64 ] || leave_out "the virtual machine is an x86_64"
for tool in qemu-system-x86_64 busybox cpio modprobe depmod ip rdma tc flock dpkg-deb; do
  command -v "$tool" >/dev/null || leave_out "there is no $tool (packages for 'vm' of tools/packages.txt)"
done

# The kernel, and its modules in the order in which they are loaded. rdma_rxe asks for crc32 by name
# only, so that modprobe does not know of it.
modules='crc32_generic virtio_pci 9pnet_virtio 9p overlay veth sch_netem ib_uverbs rdma_rxe'

unpack_kernel() {  # to a folder
  package=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }')
  [ -n "$package" ] || leave_out "apt knows no package linux-image-amd64"
  (cd "$1" && timeout 120 apt-get -qq -o APT::Sandbox::User="$(id -un)" download "$package") >&2 ||
    leave_out "$package cannot be downloaded"
  dpkg-deb -x "$1"/linux-image-*.deb "$1"
  version=$(basename "$1"/lib/modules/*)
  depmod -b "$1" "$version"
  mkdir -p "$1/start/bin" "$1/start/modules"
  cp "$(command -v busybox)" "$1/start/bin/busybox"
  for module in $modules; do
    modprobe -C /dev/null -d "$1" -S "$version" --show-depends "$module"
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
    cp "$file" "$1/start/modules/"
    echo "/modules/$(basename "$file")"
  done >"$1/start/modules/list"
}

# A machine of other modules is made anew.
stamp=$(echo "$modules" | cksum | tr ' ' -)
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ ! -e "$cache/ready/made-$stamp" ]; then
  rm -rf "$cache/new" "$cache/ready"
  mkdir "$cache/new"
  unpack_kernel "$cache/new"
  touch "$cache/new/made-$stamp"
  mv "$cache/new" "$cache/ready"
fi
flock -u 9

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$cache/ready/start" "$work/start"
cp "$here/init.sh" "$work/start/init"
chmod 755 "$work/start/init"
quote() { printf " '%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
{
  export -p
  echo "cd $(quote "$PWD") && exec /bin/sh$(for word; do quote "$word"; done)"
} >"$work/start/command"
(cd "$work/start" && find . | cpio -o -H newc --quiet -R 0:0) >"$work/initrd"

timeout --kill-after=5 "$limit" qemu-system-x86_64 -nodefaults -no-user-config -display none \
  -no-reboot -machine pc,usb=off -accel tcg,thread=multi -cpu max -smp 2 -m 3072 \
  -kernel "$cache"/ready/boot/vmlinuz-* -initrd "$work/initrd" \
  -append "console=ttyS0 quiet loglevel=3 panic=-1 reboot=t mitigations=off nowatchdog
    tsc=reliable no_timer_check" \
  -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
  -serial stdio </dev/null 2>&1 | sed -u 's/\r*$//' | tee "$work/log" |
  grep --line-buffered -vE '^softroce: ended with |reboot: ' || true
code=$(sed -n 's/^softroce: ended with \([0-9][0-9]*\)$/\1/p' "$work/log" | tail -n 1)
if [ -z "$code" ]; then
  echo "softroce: the machine has not ended its script within $limit s" >&2
  exit 1
fi
exit "$code"
