#!/bin/sh
# Installs Debian packages without starting their services. Without root or apt-get it does nothing.
# tools/apt.sh WHY PACKAGE...
# Its status is 0 even if apt-get fails: callers check for the programs that they need.
set -eu

why=$1
shift
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || exit 0
echo "$why: installing $*" >&2

# Debian runs this before it starts a service. Keep an existing one.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	trap 'exit 1' HUP INT TERM
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
{
	apt-get -o DPkg::Lock::Timeout=120 update || true # old package lists may suffice
	apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@" || true
} >&2 </dev/null
