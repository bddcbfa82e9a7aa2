package config_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/file"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/sink/log"
	"github.com/tattler-dev/tattler/internal/sink/webhook"
	"github.com/tattler-dev/tattler/internal/trace"
)

// TestShippedSinks sets every key of every sink in the reference, and loads the example with them.
func TestShippedSinks(t *testing.T) {
	l := &config.Loader{Sinks: kinds.Tattler().Types(), LookupEnv: func(string) (string, bool) { return "hunter2", true }}
	c, err := l.Parse("t.yaml", []byte(`apiVersion: tattler.dev/v1alpha1
kind: Config
sinks:
- name: a
  file: {path: /a, rotate: {size: 1GiB, keep: 3}, sync: interval, syncEvery: 1m}
- name: b
  webhook:
    url: https://x/${env:SHORT}
    headers: {A: b}
    secret: ${env:SHORT}
    template: "{{json .}}"
    timeout: 1m
    parallel: 2
    tls: {ca: /ca, cert: /c, key: /k, serverName: s}
- name: c
  log: {format: json}
`))
	if err != nil {
		t.Fatal(err)
	}
	wantFile := &file.Options{Path: "/a", Rotate: file.Rotate{Size: 1 << 30, Keep: 3}, Sync: file.Interval, SyncEvery: time.Minute}
	wantHook := &webhook.Options{
		URL: "https://x/hunter2", Headers: map[string]string{"A": "b"}, Secret: "hunter2", Template: "{{json .}}", Timeout: time.Minute,
		Parallel: 2, TLS: sink.TLS{CA: "/ca", Cert: "/c", Key: "/k", ServerName: "s"},
	}
	for i, want := range []config.Options{wantFile, wantHook, &log.Options{Format: log.JSON}} {
		if !reflect.DeepEqual(c.Sinks[i].Options, want) {
			t.Errorf("%+v, want %+v", c.Sinks[i].Options, want)
		}
	}
	if _, err := l.Parse("example", []byte(config.Example())); err != nil {
		t.Error(err)
	}
}

// TestKeysAreDecoded compares the reference with the fields that the decoder fills. The fields that only
// tattler-cloud has are compared there.
func TestKeysAreDecoded(t *testing.T) {
	want := map[string]bool{}
	config.Decoded(reflect.TypeFor[config.Config](), "", want)
	for _, s := range kinds.Builtin() {
		want["sinks[]."+s.Name] = true
		config.Decoded(reflect.TypeOf(s.New()).Elem(), "sinks[]."+s.Name+".", want)
	}
	want["traces"] = true
	config.Decoded(reflect.TypeFor[trace.Options](), "traces.", want)
	elsewhere := "none"
	for _, k := range config.Keys() {
		if strings.HasSuffix(k.Doc, "Only tattler-cloud has it.") {
			elsewhere = k.Path
		}
		if strings.HasPrefix(k.Path, elsewhere) {
			continue
		}
		if !want[k.Path] {
			t.Errorf("the reference has %s, which is not decoded", k.Path)
		}
		delete(want, k.Path)
	}
	for path := range want {
		t.Errorf("%s is missing in the reference", path)
	}
}
