#!/bin/sh
# The user and its directory; and, after an upgrade, the new program. Nothing is started by an installation: the configuration comes first.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers /usr/lib/sysusers.d/hookglass.conf || true
fi
if ! getent passwd hookglass >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/hookglass --no-create-home --shell /usr/sbin/nologin hookglass
fi
if [ ! -d /var/lib/hookglass ]; then
	mkdir -m 0700 /var/lib/hookglass
	chown hookglass:hookglass /var/lib/hookglass
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	if systemctl is-active --quiet hookglass; then
		systemctl restart hookglass || true
	else
		echo "hookglass: edit /etc/hookglass/hookglass.env, then: systemctl enable --now hookglass"
	fi
fi
