#!/usr/bin/env bash
# Installs the real servers that the tests run against, as far as they are
# missing: PostgreSQL, Redis, Sentinel, Kannel, Postfix, wrk, Node, Java, Chromium, promtool and readers of
# what we write (DKIM, short messages, WBXML, vCard) from Debian, InfluxDB 1.8.10 from
# its source and nfpm into .tools/bin, and packages of npm into .tools/node. Does nothing
# when all is there.
#
# Without root, a Debian machine or the network it says what is missing and
# fails. With PENSTOCK_TEST_SKIP_REAL=1 it installs nothing, says which tests
# will be skipped, and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."

influx_version=v1.8.10
nfpm_version=v2.45.0 # the newest without the writers of packages for Windows
# What npm installs, with the versions.
modules=(standardwebhooks@1.1.1 smpp@0.5.1 sms-segments-calculator@1.3.0 split-sms@0.1.7 soap@1.13.0
  @redocly/cli@2.77.0 @stoplight/spectral-cli@6.16.3 axe-core@4.11.0
  openapi-typescript@7.13.0 openapi-fetch@0.17.0 typescript@5.9.3 @types/node@20.9.5
  @openapitools/openapi-generator-cli@1.0.18-4.3.1)
export PATH="$PWD/.tools/bin:$PATH:/usr/sbin:/usr/local/sbin"

# program:package. fakesmsc comes with kannel-extras, outside the PATH.
wanted=(
  redis-server:redis-server redis-sentinel:redis-sentinel redis-cli:redis-tools
  bearerbox:kannel postfix:postfix wrk:wrk gcc:gcc
  curl:curl openssl:openssl unzip:unzip jq:jq java:default-jre-headless
  node:nodejs npm:npm dkimverify:python3-dkim
  promtool:prometheus tshark:tshark wbxml2xml:libwbxml2-utils php:php-cli chromium:chromium zsh:zsh fish:fish
)
fakesmsc=/usr/lib/kannel/test/fakesmsc

missing_packages() {
  local pair
  for pair in "${wanted[@]}"; do
    command -v "${pair%%:*}" >/dev/null || echo "${pair##*:}"
  done
  [ -x "$fakesmsc" ] || echo kannel-extras
  compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || echo postgresql
  [ -e /usr/lib/python3/dist-packages/vobject ] || echo python3-vobject
  [ -e /usr/lib/python3/dist-packages/zeep ] || echo python3-zeep
  for pair in six dateutil certifi urllib3; do # what a generated client in Python imports
    [ -e "/usr/lib/python3/dist-packages/$pair" ] || [ -e "/usr/lib/python3/dist-packages/$pair.py" ] || echo "python3-$pair"
  done
  [[ "$(php -m 2>/dev/null)" == *$'\nsoap\n'* ]] || echo php-soap
  [ -e /usr/include/stdlib.h ] || echo libc6-dev # the race detector needs cgo
}

# Debian starts the servers it installs; a policy forbids that meanwhile, so that
# nothing listens afterwards. One that stands already is left alone.
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
  apt-get update -qq >/dev/null || echo "test-deps: apt-get update did not work, trying what is known"
  install_packages "${packages[@]}" || echo "test-deps: apt-get install did not work"
}

from_source() {
  command -v influxd >/dev/null && return 0
  echo "test-deps: building influxd $influx_version into .tools/bin (about two minutes)"
  mkdir -p .tools/bin
  GOBIN="$PWD/.tools/bin" CGO_ENABLED=0 go install "github.com/influxdata/influxdb/cmd/influxd@$influx_version" ||
    echo "test-deps: go install of influxd did not work"
}

from_source_nfpm() {
  [ -e .tools/bin/nfpm ] && return 0
  echo "test-deps: building nfpm $nfpm_version into .tools/bin"
  make -s ".tools/bin/nfpm-$nfpm_version" || echo "test-deps: go install of nfpm did not work"
}

# What reads the Helm chart and generates a client in Go in the tests, which skip that without it: nothing fails.
from_source_optional() {
  local module program
  for module in helm.sh/helm/v3/cmd/helm@v3.22.0 github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0 \
    github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2; do
    program=${module%@*} program=${program##*/}
    [ -e ".tools/bin/$program" ] && continue
    echo "test-deps: building $module into .tools/bin"
    GOBIN="$PWD/.tools/bin" CGO_ENABLED=0 go install "$module" || echo "test-deps: go install of $program did not work; its tests will be skipped"
  done
}

missing_modules() {
  local module
  for module in "${modules[@]}"; do
    [ -d ".tools/node/node_modules/${module%@*}" ] || echo "$module"
  done
}

from_npm() {
  local missing
  mapfile -t missing < <(missing_modules)
  [ "${#missing[@]}" -gt 0 ] && command -v npm >/dev/null || return 0
  echo "test-deps: installing ${missing[*]} into .tools/node"
  mkdir -p .tools/node
  npm install --prefix .tools/node --no-audit --no-fund --silent "${modules[@]}" || echo "test-deps: npm install did not work"
}

if [ "${PENSTOCK_TEST_SKIP_REAL:-}" != 1 ]; then
  from_debian
  from_source
  from_source_nfpm
  from_source_optional
  from_npm
fi
mapfile -t left < <(missing_packages; missing_modules)
command -v influxd >/dev/null || left+=(influxd)
[ -e .tools/bin/nfpm ] || left+=(nfpm)
[ "${#left[@]}" -gt 0 ] || exit 0

if [ "${PENSTOCK_TEST_SKIP_REAL:-}" = 1 ]; then
  echo "test-deps: skipping the tests that need: ${left[*]}"
  exit 0
fi
echo "test-deps: missing: ${left[*]}" >&2
echo "test-deps: run as root on Debian with a network, or set PENSTOCK_TEST_SKIP_REAL=1 to skip the tests that need them" >&2
exit 1
