#!/bin/sh
# Installs the Debian packages that the tests need, or with `demo` only those of the demo, if they are missing.
set -eu
want="python3-torch python3-numpy"
if [ "${1:-}" != demo ]; then
	want="$want python3-kubernetes python3-xgboost openmpi-bin libopenmpi-dev mpich libmpich-dev gcc libc6-dev tmux chromium"
fi
missing=""
for package in $want; do
	dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing$missing"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	# shellcheck disable=SC2086 # a list of packages
	apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
	echo "please install:$missing (as root: apt-get install$missing)" >&2
	exit 1
fi
