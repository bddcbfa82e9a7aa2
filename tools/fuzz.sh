#!/bin/sh
# Runs every fuzz target of the module for a time. It stops at the first failure.
# tools/fuzz.sh TIME
set -eu
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | cut -d' ' -f2 | while read -r target; do
		echo "fuzz: $dir $target"
		# Minimizing interesting inputs would take most of the time.
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 10x "$dir" </dev/null
	done
done
