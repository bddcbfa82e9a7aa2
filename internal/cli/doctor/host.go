package doctor

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
)

// host is the machine that runs the checks; tests have others.
type host struct {
	now func() time.Time
	// limit returns the limit of a process's memory in bytes, and where it comes from; 0 if there is none.
	limit func(pid int) (bytes int64, from string)
	// place looks at the place of a journal.
	place func(path string) (journal.Place, error)
	// deadline returns the time for a check of a cluster, instead of the usual one; nil: the usual one. The name of the cluster is
	// empty for a check of something else, and for an only cluster.
	deadline func(c check, cluster string, usual time.Duration) time.Duration
}

// check names checks that have a deadline in common.
type check string

const (
	checkCluster  check = "cluster" // all checks of one of several clusters
	checkReach    check = "reach"
	checkKinds    check = "kinds"
	checkRights   check = "rights"
	checkFeatures check = "features"
	checkHistory  check = "history"
	checkCount    check = "count"
	checkJournal  check = "journal"
	checkSink     check = "sink"
	checkDaemon   check = "daemon"
)

// time returns the time for a check of a cluster.
func (h *host) time(c check, cluster string, usual time.Duration) time.Duration {
	if h.deadline == nil {
		return usual
	}
	return h.deadline(c, cluster, usual)
}

// within bounds a check of a cluster.
func (h *host) within(ctx context.Context, c check, cluster string, usual time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, h.time(c, cluster, usual))
}

// orThis fills in this machine.
func (h host) orThis() host {
	if h.now == nil {
		h.now = time.Now
	}
	if h.limit == nil {
		h.limit = memoryLimit
	}
	if h.place == nil {
		h.place = journal.PlaceOf
	}
	return h
}

// memoryLimit reads the cgroup of a process: that of a container, in a pod. The root of the hierarchy has no limit.
//
// Source: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
func memoryLimit(pid int) (bytes int64, from string) {
	var files []string
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return 0, ""
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0":
			files = append(files, "/sys/fs/cgroup"+parts[2]+"/memory.max", "/sys/fs/cgroup/memory.max")
		case parts[1] == "memory":
			files = append(files, "/sys/fs/cgroup/memory"+parts[2]+"/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// An unlimited group of version 1 has a number near the largest.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n < 1<<60 {
			return n, file
		}
	}
	return 0, ""
}
