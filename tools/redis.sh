#!/bin/sh
# Makes sure that redis-server is on this machine, for the tests that start one of their own.
# Run from the repository's root: tools/redis.sh
set -eu

has_redis() { command -v redis-server >/dev/null 2>&1; }

has_redis || tools/apt.sh "tests of sinks need redis-server" redis-server
has_redis && exit 0
echo "redis-server is missing, which tests of sinks start." >&2
echo "Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis; macOS: brew install redis" >&2
exit 1
