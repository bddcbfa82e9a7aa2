package clustertest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// children returns the running child processes of a process, as "name (id)". It omits zombies.
func children(parent int) ([]string, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("find processes: %w", err)
	}
	var list []string
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The second field is the name in parentheses, which may contain anything; then come state and parent.
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		fields := bytes.Fields(stat[end+1:])
		if open < 0 || len(fields) < 2 || fields[0][0] == 'Z' || fields[0][0] == 'X' || string(fields[1]) != strconv.Itoa(parent) {
			continue
		}
		list = append(list, fmt.Sprintf("%s (%s)", stat[open+1:end], bytes.TrimSpace(stat[:open])))
	}
	return list, nil
}
