#!/bin/sh
# Installs Debian packages, if root and apt-get are here, and starts none of their services.
# tools/apt.sh WHY PACKAGE...
# It says nothing of a failure but what apt-get says: who calls it looks for what it needs.
set -eu

why=$1
shift
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || exit 0
echo "$why: installing $*" >&2

# What Debian asks before it starts a service. One that is there is the machine's own, and stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	trap 'exit 1' HUP INT TERM
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
{
	apt-get -o DPkg::Lock::Timeout=120 update || true # without it, what is known may do
	apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@" || true
} >&2 </dev/null
