#!/usr/bin/env bash
# Signs SHA256SUMS of a release with minisign: writes SHA256SUMS.minisig.
# MINISIGN_SECRET_KEY is the content of a secret key without a password.
#
#   deploy/release/sign.sh DIRECTORY
set -euo pipefail
: "${MINISIGN_SECRET_KEY:?the secret key of the releases is missing}"
umask 077
key=$(mktemp)
trap 'rm -f "$key"' EXIT
printf '%s\n' "$MINISIGN_SECRET_KEY" >"$key"
cd "$1"
minisign -S -W -s "$key" -m SHA256SUMS -t "penstock release, $(sha256sum SHA256SUMS | cut -c1-16)"
