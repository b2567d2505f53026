#!/usr/bin/env bash
# test-deps.sh [-race] [PACKAGE...]
#
# Installs the missing programs that the tests of Go packages run; without an argument, of all
# packages: servers and verifying programs from Debian, InfluxDB and nfpm from source into
# .tools/bin, and npm packages into .tools/node. With -race it also installs the dependencies
# of the race detector.
#
# Without root, Debian or a network it prints the missing programs and fails. With
# PENSTOCK_TEST_SKIP_REAL=1 it installs nothing, prints the programs whose tests will be
# skipped, and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."

influx_version=v1.8.10
nfpm_version=v2.45.0 # the newest without the writers of packages for Windows
export PATH="$PWD/.tools/bin:$PATH:/usr/sbin:/usr/local/sbin"

# modules lists npm packages with their versions, and the Go packages that use them.
modules=(
  standardwebhooks@1.1.1=delivery/worker smpp@0.5.1=cmd/penstock/e2e
  sms-segments-calculator@1.3.0=decoders/sms split-sms@0.1.7=decoders/sms soap@1.13.0=cmd/penstock/e2e/sending
  @redocly/cli@2.77.0=ingest/openapi @stoplight/spectral-cli@6.16.3=ingest/openapi axe-core@4.11.0=cmd/penstock/e2e
  openapi-typescript@7.13.0=cmd/penstock/e2e/documents openapi-fetch@0.17.0=cmd/penstock/e2e/documents
  typescript@5.9.3=cmd/penstock/e2e/documents @types/node@20.9.5=cmd/penstock/e2e/documents
  @openapitools/openapi-generator-cli@1.0.18-4.3.1=cmd/penstock/e2e/documents
)
# wanted lists a program or file of each Debian package, and the Go packages that use it.
site_packages=/usr/lib/python3/dist-packages
node_users='decoders/sms|delivery/worker|ingest/openapi|cmd/penstock/e2e'
wanted=(
  redis-server:redis-server=relay/cache/redistest redis-sentinel:redis-sentinel=relay/cache/redistest
  redis-cli:redis-tools='deploy/servers|cmd/penstock/e2e/failures' postfix:postfix=delivery/email/smtptest
  bearerbox:kannel='cmd/penstock/e2e/sending|deploy/bench'
  /usr/lib/kannel/test/fakesmsc:kannel-extras='cmd/penstock/e2e/sending|deploy/bench'
  '/usr/lib/postgresql/*/bin/postgres:postgresql=relay/db/dbtest'
  curl:curl=cmd/penstock/e2e/documents jq:jq=cmd/penstock/e2e/documents java:default-jre-headless=cmd/penstock/e2e/documents
  openssl:openssl='relay/ledger|relay/ledger/pki|cmd/penstock/e2e/documents' unzip:unzip=delivery/archive minisign:minisign=deploy/release
  node:nodejs="$node_users" npm:npm="$node_users" dkimverify:python3-dkim=delivery/email
  promtool:prometheus=cmd/penstock/e2e/operations tshark:tshark='decoders/sms|decoders/sms/smstest|decoders/wap'
  wbxml2xml:libwbxml2-utils=decoders/wap php:php-cli=cmd/penstock/e2e/sending
  '/usr/lib/php/*/soap.so:php-soap=cmd/penstock/e2e/sending'
  chromium:chromium=cmd/penstock/e2e zsh:zsh=cmd/penstock/app fish:fish=cmd/penstock/app man:man-db=cmd/penstock/app
  "$site_packages/vobject:python3-vobject=decoders/vcard" "$site_packages/zeep:python3-zeep=cmd/penstock/e2e/sending"
  "$site_packages/six*:python3-six=cmd/penstock/e2e/documents" "$site_packages/dateutil:python3-dateutil=cmd/penstock/e2e/documents"
  "$site_packages/certifi:python3-certifi=cmd/penstock/e2e/documents" "$site_packages/urllib3:python3-urllib3=cmd/penstock/e2e/documents"
)

race=
[ "${1:-}" != -race ] || { race=1; shift; }
everything=
[ $# -gt 0 ] || everything=1
# users are the packages under test, and the helpers that their tests import.
users=$(go list ${@:-./...} && go list -deps -test ${@:-./...} | sed -nE 's/ .*//; /([a-z]test|cmd\/penstock\/e2e|deploy\/servers)$/p')
users=${users//github.com\/penstock\/penstock\//}

# used reports whether one of the users matches a regular expression.
used() { [ -n "$everything" ] || grep -qxE "$1" <<<"$users"; }

missing_packages() {
  local entry program
  for entry in "${wanted[@]}"; do
    used "${entry#*=}" || continue
    entry=${entry%%=*} program=${entry%%:*}
    command -v "$program" >/dev/null || compgen -G "$program" >/dev/null || echo "${entry##*:}"
  done
  if [ -n "$race$everything" ]; then # the race detector needs cgo
    command -v gcc >/dev/null || echo gcc
    [ -e /usr/include/stdlib.h ] || echo libc6-dev
  fi
}

# Debian starts the servers that it installs. A temporary policy prevents that, unless the
# machine already has a policy.
install_packages() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
)

from_debian() {
  local packages
  mapfile -t packages < <(missing_packages)
  [ "${#packages[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    return 0 # reported at the end
  fi
  echo "test-deps: installing ${packages[*]}"
  apt-get update -qq >/dev/null || echo "test-deps: apt-get update did not work, trying the known packages"
  install_packages "${packages[@]}" || echo "test-deps: apt-get install did not work"
}

from_source() {
  used delivery/influx/influxtest || return 0
  command -v influxd >/dev/null && return 0
  echo "test-deps: building influxd $influx_version into .tools/bin (about two minutes)"
  mkdir -p .tools/bin
  GOBIN="$PWD/.tools/bin" CGO_ENABLED=0 go install "github.com/influxdata/influxdb/cmd/influxd@$influx_version" ||
    echo "test-deps: go install of influxd did not work"
}

from_source_nfpm() {
  used deploy/release || return 0
  [ -e .tools/bin/nfpm ] && return 0
  echo "test-deps: building nfpm $nfpm_version into .tools/bin"
  make -s ".tools/bin/nfpm-$nfpm_version" || echo "test-deps: go install of nfpm did not work"
}

# These programs check the Helm chart and generate a Go client. Tests that need them are skipped without them.
from_source_optional() {
  local entry module program
  for entry in helm.sh/helm/v3/cmd/helm@v3.22.0=deploy github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0=deploy \
    github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2=cmd/penstock/e2e/documents; do
    used "${entry#*=}" || continue
    module=${entry%=*}
    program=${module%@*} program=${program##*/}
    [ -e ".tools/bin/$program" ] && continue
    echo "test-deps: building $module into .tools/bin"
    GOBIN="$PWD/.tools/bin" CGO_ENABLED=0 go install "$module" || echo "test-deps: go install of $program did not work; its tests will be skipped"
  done
}

missing_modules() {
  local entry module
  for entry in "${modules[@]}"; do
    used "${entry#*=}" || continue
    module=${entry%%=*}
    [ -d ".tools/node/node_modules/${module%@*}" ] || echo "$module"
  done
}

from_npm() {
  local missing
  mapfile -t missing < <(missing_modules)
  [ "${#missing[@]}" -gt 0 ] && command -v npm >/dev/null || return 0
  echo "test-deps: installing ${missing[*]} into .tools/node"
  mkdir -p .tools/node
  npm install --prefix .tools/node --no-audit --no-fund --silent "${missing[@]}" || echo "test-deps: npm install did not work"
}

if [ "${PENSTOCK_TEST_SKIP_REAL:-}" != 1 ]; then
  from_debian
  from_source
  from_source_nfpm
  from_source_optional
  from_npm
fi
mapfile -t missing < <(missing_packages; missing_modules)
! used delivery/influx/influxtest || command -v influxd >/dev/null || missing+=(influxd)
! used deploy/release || [ -e .tools/bin/nfpm ] || missing+=(nfpm)
[ "${#missing[@]}" -gt 0 ] || exit 0

if [ "${PENSTOCK_TEST_SKIP_REAL:-}" = 1 ]; then
  echo "test-deps: skipping the tests that need: ${missing[*]}"
  exit 0
fi
echo "test-deps: missing: ${missing[*]}" >&2
echo "test-deps: run as root on Debian with a network, or set PENSTOCK_TEST_SKIP_REAL=1 to skip the tests that need them" >&2
exit 1
