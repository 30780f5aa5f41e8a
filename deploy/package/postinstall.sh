#!/bin/sh
# The users that the units name, clocks of NICs that they may read, and the units themselves.
set -e
if command -v systemd-sysusers >/dev/null; then systemd-sysusers gswitch.conf ghost.conf gcollect.conf; fi
if [ -S /run/udev/control ]; then udevadm control --reload && udevadm trigger --subsystem-match=ptp; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
