#!/usr/bin/env bash
# Makes the Debian package of a binary with nfpm (deploy/debian/nfpm.yaml).
#
#   deploy/release/package.sh NFPM ARCHITECTURE VERSION BINARY DIRECTORY
set -euo pipefail
nfpm=$(realpath "$1") arch=$2 version=$3 out=$(realpath "$5")
BINARY=$(realpath "$4")
cd "$(dirname "$0")/../.."
# Files have the time of the commit, so that packages of the same commit are identical.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

# debian_version converts the output of git describe into a version with the order of the
# releases: v1.2.3 becomes 1.2.3, and 14 commits later 1.2.3+14.gabcdef0. Without a tag the
# version is 0.0.0+git and the time of the commit.
debian_version() {
  case $1 in
    v[0-9]*-rc*) echo "${1#v}" | sed 's/-rc/~rc/; s/-/+/; s/-/./g' ;;
    v[0-9]*) echo "${1#v}" | sed 's/-/+/; s/-/./g' ;;
    *) echo "0.0.0+git$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S).${1//-/.}" ;;
  esac
}
VERSION=$(debian_version "$version")
ARCH=$arch
MANPAGE=$(mktemp)
trap 'rm -f "$MANPAGE"' EXIT
# The binary of another architecture cannot run here.
{ "$BINARY" man 2>/dev/null || GOOS='' GOARCH='' go run -ldflags "-X main.version=$version" ./cmd/penstock man; } | gzip -9n >"$MANPAGE"
export BINARY ARCH VERSION MANPAGE
"$nfpm" package --config deploy/debian/nfpm.yaml --packager deb --target "$out/penstock_${VERSION}_$arch.deb" >&2
