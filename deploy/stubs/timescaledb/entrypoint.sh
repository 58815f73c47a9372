#!/bin/sh
# Starts the server like the official image. Without data it first initializes the data directory, which needs
# POSTGRES_PASSWORD and uses POSTGRES_USER, POSTGRES_DB and POSTGRES_INITDB_ARGS if they are set.
set -eu

POSTGRES_USER=${POSTGRES_USER:-postgres}
POSTGRES_DB=${POSTGRES_DB:-$POSTGRES_USER}

sql() { psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" "$@"; }

# make initializes a data directory.
make() {
  password=$(mktemp)
  printf '%s\n' "$POSTGRES_PASSWORD" >"$password"
  initdb --pgdata "$1" --username "$POSTGRES_USER" --pwfile "$password" --encoding UTF8 \
    --auth-local trust --auth-host scram-sha-256 ${POSTGRES_INITDB_ARGS:-}
  rm "$password"
  cat >>"$1/postgresql.conf" <<-EOF
	listen_addresses = '*'
	shared_preload_libraries = 'timescaledb'
	max_worker_processes = 27
	EOF
  echo "host all all all scram-sha-256" >>"$1/pg_hba.conf"
  pg_ctl --pgdata "$1" --wait --options "-c listen_addresses=''" start
  [ "$POSTGRES_DB" = postgres ] || echo 'CREATE DATABASE :"name"' | sql --set name="$POSTGRES_DB" postgres
  for name in template1 postgres "$POSTGRES_DB"; do
    sql --command 'CREATE EXTENSION IF NOT EXISTS timescaledb' "$name"
  done
  pg_ctl --pgdata "$1" --wait --mode fast stop
}

if [ "${1:-}" = postgres ] && [ ! -d "$PGDATA" ]; then
  : "${POSTGRES_PASSWORD:?must be set to a password for the user $POSTGRES_USER}"
  # A container that is killed meanwhile leaves no incomplete data directory.
  rm -rf "$PGDATA.new"
  make "$PGDATA.new"
  mv "$PGDATA.new" "$PGDATA"
fi
exec "$@"
