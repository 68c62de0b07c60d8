#!/bin/sh
# The tool of `go vet` for our packages alone. Otherwise it would go through all of Kubernetes, for facts such as which of its functions
# print by a format: minutes of a first `make test`. It is asked about a package by a file; of dependencies it answers that there is none.
set -eu
for file in "$@"; do :; done
if [ "${file##*.}" = cfg ] && grep -q '"VetxOnly": true' "$file"; then
	: >"$(sed -n 's/.*"VetxOutput": "\(.*\)",/\1/p' "$file")"
	exit
fi
vet=$(go tool -n vet)
if [ "$file" = -V=full ]; then
	echo "$("$vet" "$file"), no facts" # so that its answers are kept apart from those of vet itself
	exit
fi
exec "$vet" "$@"
