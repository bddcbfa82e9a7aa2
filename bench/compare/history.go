package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// history returns everything in Tattler's journal as JSON, an event on each line.
func history(ctx context.Context, program, dir string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "log", "--journal", filepath.Join(dir, "journal.db"), "--noise", "--limit", "0", "-o", "json")
	cmd.Env = environment(dir, os.DevNull)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return out, nil
}

// quietOf returns the updates of a history that Tattler records, but does not deliver, because all their fields are quiet.
func quietOf(history []byte) (all []Change, err error) {
	for line := range bytes.Lines(history) {
		var e struct {
			Data struct {
				Quiet    bool   `json:"quiet"`
				Op       string `json:"op"`
				Resource struct {
					UID     string `json:"uid"`
					Version string `json:"resourceVersion"`
				} `json:"resource"`
			} `json:"data"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("decode event: %w", err)
		}
		if !e.Data.Quiet || e.Data.Op != "updated" {
			continue
		}
		version, err := strconv.ParseInt(e.Data.Resource.Version, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("decode event: %w", err)
		}
		all = append(all, Change{UID: e.Data.Resource.UID, Version: version, Type: "MODIFIED"})
	}
	return all, nil
}

// leaking returns the number of files below a folder that contain a canary.
func leaking(dir string) (n int, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && hasCanary(text) {
			n++
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("search files: %w", err)
	}
	return n, nil
}

func hasCanary(text []byte) bool {
	return slices.ContainsFunc(canaries, func(c string) bool { return bytes.Contains(text, []byte(c)) })
}
