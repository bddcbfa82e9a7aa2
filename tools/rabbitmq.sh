#!/bin/sh
# Makes sure that rabbitmq-server is on this machine, for the tests that start one of their own.
# Run from the repository's root: tools/rabbitmq.sh
set -eu

# Debian's is in a folder of its own; what it has in /usr/sbin runs as another user.
has_rabbitmq() { [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || command -v rabbitmq-server >/dev/null 2>&1; }

has_rabbitmq && exit 0
# Erlang's port mapper outlives whatever asks it, such as the package's own scripts.
mappers() { grep -lx epmd /proc/[0-9]*/comm 2>/dev/null | cut -d/ -f3; }
before=$(mappers)
tools/apt.sh "tests of sinks need rabbitmq-server" rabbitmq-server
for pid in $(mappers); do
	echo "$before" | grep -qx "$pid" || kill "$pid" 2>/dev/null || true
done
has_rabbitmq && exit 0
echo "rabbitmq-server is missing, which tests of sinks start." >&2
echo "Debian, Ubuntu: apt-get install rabbitmq-server; Fedora: dnf install rabbitmq-server; macOS: brew install rabbitmq" >&2
exit 1
