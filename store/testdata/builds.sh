#!/bin/sh
# Makes the stores of a build, which the tests named Builds open: a file of SQLite and a dump of
# PostgreSQL.
#
#   unshare -u sh -c 'hostname host; sh store/testdata/builds.sh NAME NIXIE URL'
#
# NAME is the build, a release or a commit, and NIXIE the absolute path of its program. URL names a
# database of a server, as postgres://user@/database?host=folder; psql and pg_dump are on the path.
# The other host name keeps that of the machine out of the stores.
set -eu
name=$1 nixie=$2 url=$3
stores=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
printf '{"id":"%s"}\n' a b c >list.jsonl

for store in sqlite://store.db "$url&nixie_schema=a_build"; do
  "$nixie" run list.jsonl --store "$store" --job list --max-attempts 1 -- test '{id}' = a || test $? = 5
  "$nixie" enqueue orders --store "$store" --body 'order 1'
  "$nixie" enqueue orders --store "$store" --body 'order 2' --delay 1h
  letter=$("$nixie" dlq list --store "$store" -o jsonl | sed -n '1s/.*"id": *"\([^"]*\)".*/\1/p')
  "$nixie" dlq redrive "$letter" --store "$store" --reason 'the cause has gone' --yes
done
mkdir -p "$stores/sqlite/testdata/builds" "$stores/postgres/testdata/builds"
gzip -9n <store.db >"$stores/sqlite/testdata/builds/$name.db.gz"
# Settings differ between versions of PostgreSQL; the dump needs only that of functions.
pg_dump --schema a_build --no-owner --no-privileges --inserts "$url" | grep -v -e '^SET [^c]' -e '^\\' |
  gzip -9n >"$stores/postgres/testdata/builds/$name.sql.gz"
psql -q "$url" -c 'set client_min_messages = warning; drop schema a_build cascade'
