#!/usr/bin/env bash
# Installs the Debian packages that building and testing need and that are missing.
# usage: packages.sh [PACKAGE...]    more packages than those
#
# Prints what it installs; says nothing and needs no rights when nothing is missing. Uses sudo when
# not root. On other systems than Debian it only checks that the tools are there.
set -euo pipefail

packages=(
  cmake ninja-build g++ clang lld pkgconf python3 python3-dev python3-venv python3-jsonschema
  openmpi-bin libopenmpi-dev libucx-dev
  liburing-dev libcurl4-openssl-dev libssl-dev libhwloc-dev libdlpack-dev libfuse3-dev fuse3
  nginx-light libnginx-mod-http-lua openssl spin elfutils
  libabsl-dev libhwy-dev libgtest-dev libgmock-dev libbenchmark-dev nlohmann-json3-dev libcli11-dev
  "$@"
)

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  for tool in cmake ninja c++ mpicxx mpirun; do
    command -v "$tool" >/dev/null ||
      fail "This is not Debian, and '$tool' is missing. Please install what these Debian packages" \
           "hold: ${packages[*]}"
  done
  echo "This is not Debian: going on with the tools and libraries that are here."
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  fail "These packages are missing: ${missing[*]}" \
       "Installing them takes root, and there is no sudo. As root, run:" \
       "  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
fi

. /etc/os-release
case ${ID:-}:${VERSION_ID:-} in
  debian:12 | debian:13) ;;
  *) echo "Tried on Debian 12 and 13 only; this is ${PRETTY_NAME:-another system}. Going on." ;;
esac
echo "Installing: ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120)
"${apt[@]}" update
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
