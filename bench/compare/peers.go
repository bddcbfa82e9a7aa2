package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Peer is a program under comparison.
type Peer struct {
	Name    string
	Version string
	Program string // path
	// configure writes a configuration that watches kinds and sends OTLP to url. It returns the arguments.
	configure func(dir, url string) ([]string, error)
	// history returns all that it recorded, if it keeps a history in a form that a search of its files does not find.
	history func(ctx context.Context, program, dir string) ([]byte, error)
}

// Tattler returns the peer that this repository builds, with its defaults, but for the records' bodies.
func Tattler(ctx context.Context, program string) (Peer, error) {
	version, err := versionOf(ctx, program, "version")
	return Peer{Name: "Tattler", Version: version, Program: program, history: history, configure: func(dir, url string) ([]string, error) {
		return configure(dir, []string{"run", "-c"}, fields{
			"apiVersion": "tattler.dev/v1alpha1", "kind": "Config",
			"journal": fields{"path": filepath.Join(dir, "journal.db")},
			"watch":   []fields{{"resources": fields{"include": names()}}},
			"sinks": []fields{{
				"name": "receiver", "include": []string{"after"}, "otlp": fields{"endpoint": url, "protocol": "http", "body": "object"},
			}},
		})
	}}, err
}

// Collector returns an OpenTelemetry Collector with the settings that its documentation recommends against loss: the
// receiver keeps its versions, and the exporter its queue, in a storage extension that syncs each write; the exporter retries
// without limit and blocks when its queue is full.
func Collector(ctx context.Context, program string) (Peer, error) {
	version, err := versionOf(ctx, program, "--version")
	return Peer{Name: "Collector, k8sobjects", Version: version, Program: program, configure: func(dir, url string) ([]string, error) {
		storage := filepath.Join(dir, "storage")
		if err := os.Mkdir(storage, 0o700); err != nil {
			return nil, fmt.Errorf("make storage: %w", err)
		}
		objects := []fields{}
		for _, name := range names() {
			objects = append(objects, fields{"name": name, "mode": "watch"})
		}
		return configure(dir, []string{"--config"}, fields{
			"extensions": fields{"file_storage": fields{"directory": storage, "fsync": true}},
			"receivers":  fields{"k8sobjects": fields{"auth_type": "kubeConfig", "storage": "file_storage", "objects": objects}},
			"exporters": fields{"otlphttp": fields{
				"endpoint":         url,
				"sending_queue":    fields{"enabled": true, "storage": "file_storage", "queue_size": 100_000, "block_on_overflow": true, "num_consumers": 1},
				"retry_on_failure": fields{"enabled": true, "max_elapsed_time": "0s"},
			}},
			"service": fields{
				"extensions": []string{"file_storage"},
				"telemetry":  fields{"metrics": fields{"level": "none"}},
				"pipelines":  fields{"logs": fields{"receivers": []string{"k8sobjects"}, "exporters": []string{"otlphttp"}}},
			},
		})
	}}, err
}

// versionOf asks a program for its version: the first word with a digit.
func versionOf(ctx context.Context, program, arg string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, arg).Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", program, err)
	}
	words := strings.Fields(strings.SplitN(string(out), "\n", 2)[0])
	if len(words) == 0 {
		return "", fmt.Errorf("%s %s says nothing", program, arg)
	}
	if i := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "0123456789") }); i >= 0 {
		return words[i], nil
	}
	return strings.Join(words, " "), nil
}

// names returns the watched kinds, sorted.
func names() []string {
	var all []string
	for name := range kinds {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// configure writes a configuration in JSON, which is also YAML, and appends its path to the arguments.
func configure(dir string, args []string, content fields) ([]string, error) {
	text, err := json.MarshalIndent(content, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return append(args, path), nil
}

// environment is that of a peer: a kubeconfig, and a home of its own.
func environment(dir, kubeconfig string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "KUBE") || strings.HasPrefix(v, "TATTLER_") || strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "XDG_")
	})
	return append(env, "KUBECONFIG="+kubeconfig, "HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir)
}
