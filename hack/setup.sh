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
promtool=""
if [ "${1:-}" != demo ] && ! command -v promtool >/dev/null; then
	promtool=" promtool"
fi
[ -n "$missing$promtool" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing$missing$promtool"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	if [ -n "$missing" ]; then
		# shellcheck disable=SC2086 # a list of packages
		apt-get install -y -qq --no-install-recommends $missing >/dev/null
	fi
	if [ -n "$promtool" ]; then # the package itself would start a server
		dir=$(mktemp -d)
		trap 'rm -rf "$dir"' EXIT
		(cd "$dir" && apt-get download -qq prometheus 2>/dev/null)
		dpkg-deb --extract "$dir"/prometheus_*.deb "$dir"
		install "$dir/usr/bin/promtool" /usr/local/bin/promtool
	fi
else
	echo "please install:$missing$promtool (as root:${missing:+ apt-get install$missing}${promtool:+; promtool is in the package prometheus})" >&2
	exit 1
fi
