#!/bin/sh
# $1 is "remove" (Debian) or 0 (RPM) where the package goes, and something else where a newer one takes its place.
set -e
case "${1:-}" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now hookglass || true
	fi
	;;
esac
