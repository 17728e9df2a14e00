#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# chromium.sh: prints the path of a Chromium, the machine's own or else Debian's, which it installs where there
# is none. It fails when it cannot: a test that looked at nothing must not look like one that found nothing.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
	if found=$(type -P "$name"); then
		echo "$found"
		exit
	fi
done
echo "installing Debian's chromium" >&2
as_root=()
((EUID == 0)) || as_root=(sudo -n)
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 "$@" >&2; }
install() { apt install -y --no-install-recommends chromium fonts-dejavu-core; }
# A fresh machine has no package lists.
install || { apt update && install; } || {
	echo "chromium.sh: there is no Chromium, and Debian's package cannot be installed" >&2
	exit 1
}
type -P chromium
