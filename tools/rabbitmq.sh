#!/bin/sh
# Installs rabbitmq-server if it is missing. The tests of the sink start their own server.
# Run from the repository's root: tools/rabbitmq.sh
set -eu

# Debian's script is below /usr/lib/rabbitmq; its wrapper in /usr/sbin runs as another user.
has_rabbitmq() { [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || command -v rabbitmq-server >/dev/null 2>&1; }

has_rabbitmq && exit 0
# Erlang's port mapper (epmd) outlives the package's scripts, which start it. Kill a new one.
mappers() { grep -lx epmd /proc/[0-9]*/comm 2>/dev/null | cut -d/ -f3; }
before=$(mappers)
tools/apt.sh "tests of sinks need rabbitmq-server" rabbitmq-server
for pid in $(mappers); do
	echo "$before" | grep -qx "$pid" || kill "$pid" 2>/dev/null || true
done
has_rabbitmq && exit 0
echo "rabbitmq-server is missing. The tests of sinks need it." >&2
echo "Debian, Ubuntu: apt-get install rabbitmq-server; Fedora: dnf install rabbitmq-server; macOS: brew install rabbitmq" >&2
exit 1
