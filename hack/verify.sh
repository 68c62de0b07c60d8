#!/bin/sh
# Fails when something generated differs from what is committed, or go.mod is not tidy.
set -eu
before=$(git status --porcelain; git diff | sha256sum)
go generate ./...
go mod tidy
after=$(git status --porcelain; git diff | sha256sum)
if [ "$before" != "$after" ]; then
	echo "generated files were out of date and have been made anew; commit them:" >&2
	git status --short >&2
	exit 1
fi
