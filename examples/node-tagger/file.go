package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/tattler-dev/tattler/examples/internal/program"
)

// newCloud is EC2, or the file that stands in for it.
func newCloud(ctx context.Context, file string) (cloud, error) {
	if file == "" {
		return newEC2(ctx)
	}
	if _, err := os.Stat(file); err != nil {
		return nil, program.Usage("--tags: %v", err)
	}
	return fileCloud{file: file}, nil
}

// fileCloud stands in for EC2, to try the program without an account. Its file has the tags of each instance:
//
//	{"i-0abc": {"team": "web"}}
type fileCloud struct {
	*ec2Cloud // its provider IDs
	file      string
}

func (c fileCloud) Tags(_ context.Context, ids []string) (map[string]map[string]string, error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return nil, err
	}
	var all map[string]map[string]string
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.file, err)
	}
	some := map[string]map[string]string{}
	for _, id := range ids {
		some[id] = all[id]
	}
	return some, nil
}
