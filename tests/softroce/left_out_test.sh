#!/bin/sh
# Where the virtual machine is not wanted, or cannot be made, run.sh leaves it out: it says why, runs
# nothing, and has not failed.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

leaves_out() {  # what it says, variables...
  said=$1
  shift
  found=$(env "$@" tests/softroce/run.sh "$folder/script")
  code=$?
  [ "$code" = 0 ] && [ "$found" = "left out: $said" ] && return
  echo "wanted 'left out: $said', found '$found' and exit status $code"
  failed=1
}

leaves_out "MSCCLC_SKIP_VM is set" MSCCLC_SKIP_VM=1
# A system with no more than run.sh itself takes to get there.
ln -s "$(command -v id)" "$(command -v dirname)" "$folder"
printf '#!/bin/sh\necho x86_64\n' >"$folder/uname"
chmod +x "$folder/uname"
leaves_out "there is no qemu-system-x86_64 (packages for 'vm' of tools/packages.txt)" PATH="$folder"
exit $failed
