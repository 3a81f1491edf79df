#!/bin/sh
# What was captured stays until it is purged by name (dpkg --purge), and the user with it. RPM knows no purge: there both stay.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "${1:-}" = purge ]; then
	rm -rf /var/lib/hookglass /etc/hookglass
	if getent passwd hookglass >/dev/null; then
		userdel hookglass || true
	fi
fi
