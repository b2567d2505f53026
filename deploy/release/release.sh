#!/usr/bin/env bash
# Builds a release of the checked-out commit into a directory: static binaries for
# linux, their Debian packages, an SBOM each (CycloneDX), and SHA256SUMS. The same
# commit, Go and nfpm give the same bytes in any directory, at any time.
#
#   deploy/release/release.sh [DIRECTORY]    default: bin/release
#
# RELEASE_ARCHES lists the architectures (default: amd64 arm64). NFPM is the path of nfpm
# (default: .tools/bin/nfpm).
set -euo pipefail
out=$(realpath -m "${1:-bin/release}")
cd "$(dirname "$0")/../.."

arches=${RELEASE_ARCHES:-amd64 arm64}
nfpm=${NFPM:-.tools/bin/nfpm}
version=$(git describe --tags --always --dirty)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# Settings of this machine must not change the result.
unset GOFLAGS GOEXPERIMENT GOWORK GOAMD64 GOARM64
export CGO_ENABLED=0 GOOS=linux LC_ALL=C TZ=UTC
umask 022

[ -x "$nfpm" ] || { echo "release: $nfpm is missing: run make release, which installs it" >&2; exit 1; }
rm -rf "$out"
mkdir -p "$out"
for arch in $arches; do
  binary=penstock-linux-$arch
  echo "release: building $binary $version"
  GOARCH=$arch go build -trimpath -buildvcs=true -ldflags "-s -w -buildid= -X main.version=$version" -o "$out/$binary" ./cmd/penstock
  GOOS='' go run ./deploy/release/sbom -version "$version" "$out/$binary" >"$out/$binary.cdx.json"
  deploy/release/package.sh "$nfpm" "$arch" "$version" "$out/$binary" "$out"
done
(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "release: $(wc -l <"$out/SHA256SUMS") files in $out"
