# Sourced by ./quickstart and ./test: makes sure that the packages of tools/packages.txt are there.
#
#   setup build        installs what is missing to build
#   setup build test   and to test
#
# A second call asks dpkg and returns at once. Where there is no apt it looks for each package's
# proof instead, and stops with the list of what it did not find.
# shellcheck shell=bash

packages_file=$(dirname "${BASH_SOURCE[0]}")/packages.txt

say() { printf '%s\n' "$*"; }

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Prints "package proof why" of each row for the uses named.
package_rows() {
  local use package proof why wanted
  while read -r use package proof why; do
    [[ -z $use || $use == '#'* ]] && continue
    for wanted in "$@"; do
      if [[ $use == "$wanted" ]]; then printf '%s %s %s\n' "$package" "$proof" "$why"; fi
    done
  done <"$packages_file"
}

has_proof() {
  case $1 in
    -) return 0 ;;
    /*) [[ -e $1 ]] ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
  esac
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# Runs a command as root, however that is possible here.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    return 1
  fi
}

install_packages() {
  local log
  log=$(mktemp)
  if ((EUID != 0)) && ! command -v sudo >/dev/null 2>&1; then
    die "These packages are missing, and only root can install them (there is no sudo):
  apt-get install $*"
  fi
  # A broken third-party source must not stop us: what counts is whether the packages come.
  as_root apt-get update </dev/null >"$log" 2>&1 || true
  if ! as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@" </dev/null >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "apt-get could not install: $*
The whole log is in $log"
  fi
  rm -f "$log"
}

setup() {
  local package proof why missing=() rows=()
  local by_dpkg=0
  if command -v apt-get >/dev/null 2>&1 && command -v dpkg-query >/dev/null 2>&1; then by_dpkg=1; fi
  while read -r package proof why; do
    if ((by_dpkg)) && is_installed "$package"; then continue; fi
    if ((!by_dpkg)) && has_proof "$proof"; then continue; fi
    missing+=("$package")
    rows+=("$(printf '  %-20s %s' "$package" "$why")")
  done < <(package_rows "$@")
  if ((${#missing[@]} == 0)); then return 0; fi
  if ((!by_dpkg)); then
    die "There is no apt here, and these are missing (names of Debian 12 packages):
$(printf '%s\n' "${rows[@]}")
Install them in your system's way and start again."
  fi
  say "Installing these Debian packages:"
  printf '%s\n' "${rows[@]}"
  install_packages "${missing[@]}"
}

# Bazel keeps its output under the home folder; a service account may have none.
if [[ -z ${HOME:-} || ! -w $HOME ]]; then
  export HOME=$PWD/build/home
  mkdir -p "$HOME"
fi
