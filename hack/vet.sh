#!/bin/sh
# `go vet -vettool` runs this instead of vet. It runs vet for our packages and skips dependencies. vet would go through all of Kubernetes
# to collect facts, such as which functions format like Printf; that takes minutes in a first `make test`.
# go vet describes each package in a file. For a dependency this script writes an empty list of facts.
set -eu
for file in "$@"; do :; done
if [ "${file##*.}" = cfg ] && grep -q '"VetxOnly": true' "$file"; then
	: >"$(sed -n 's/.*"VetxOutput": "\(.*\)",/\1/p' "$file")"
	exit
fi
vet=$(go tool -n vet)
if [ "$file" = -V=full ]; then
	echo "$("$vet" "$file"), no facts" # another version, so that its cached results are not mixed with those of vet itself
	exit
fi
exec "$vet" "$@"
