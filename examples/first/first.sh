#!/bin/sh
# Types the commands of the README's first screen, in the root of a clone, and prints each of them
# first. All that it writes is in bin/first, which it makes anew.
set -u

enter() {
	echo "\$ $1"
	eval "$1"
	code=$?
	[ "$code" -eq "${2:-0}" ] && return
	echo "examples/first/first.sh: this command ended with exit code $code, not ${2:-0}" >&2
	exit 1
}

rm -rf bin/first && mkdir -p bin/first || exit 1
enter 'export NIXIE_STORE=sqlite://bin/first/nixie.db'
enter 'bin/nixie run examples/first/orders.jsonl -p 1 --job orders --max-attempts 2 --backoff 100ms -- sh examples/first/deliver.sh {amount} {carrier}' 5
enter 'bin/nixie dlq analyze'
enter 'touch bin/first/repaired'
enter "bin/nixie dlq redrive --filter reason:dependency --reason 'the carrier is back' --yes"
enter 'bin/nixie run examples/first/orders.jsonl -p 1 --job orders -- sh examples/first/deliver.sh {amount} {carrier}' 5
enter 'bin/nixie dlq list'
