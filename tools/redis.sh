#!/bin/sh
# Installs redis-server if it is missing. The tests of the sink start their own server.
# Run from the repository's root: tools/redis.sh
set -eu

has_redis() { command -v redis-server >/dev/null 2>&1; }

has_redis || tools/apt.sh "tests of sinks need redis-server" redis-server
has_redis && exit 0
echo "redis-server is missing. The tests of sinks need it." >&2
echo "Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis; macOS: brew install redis" >&2
exit 1
