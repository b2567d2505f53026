#!/usr/bin/env bash
# Writes the secrets of deploy/compose.yaml into deploy/.env, readable by its owner only.
# Existing secrets are kept. Run the script again after an update to add new secrets.
set -euo pipefail
file=${1:-"$(dirname "$0")/.env"}
umask 077
touch "$file"
for name in PENSTOCK_ADMIN_TOKEN POSTGRES_PASSWORD REDIS_PASSWORD INFLUXDB_ADMIN_PASSWORD INFLUXDB_PASSWORD \
  INFLUXDB_READ_PASSWORD GRAFANA_ADMIN_PASSWORD GRAFANA_SECRET_KEY; do
  grep -q "^$name=" "$file" && continue
  echo "$name=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')" >>"$file"
  echo "$file: $name generated"
done
