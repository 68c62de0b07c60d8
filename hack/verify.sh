#!/bin/sh
# Fails if a generated file differs from what its generator writes, or if go.mod is not tidy.
set -eu
before=$(git status --porcelain; git diff | sha256sum)
go generate ./...
go mod tidy
after=$(git status --porcelain; git diff | sha256sum)
if [ "$before" != "$after" ]; then
	echo "generated files or go.mod were out of date. They have been updated; commit them:" >&2
	git status --short >&2
	exit 1
fi
