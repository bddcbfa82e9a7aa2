package diff

import (
	"encoding/json"
	"os"
	"testing"
)

// BenchmarkObjects compares a Deployment of 12 KB, with managed fields, with a version with another image. It excludes
// decoding and merge keys.
func BenchmarkObjects(b *testing.B) {
	text, err := os.ReadFile("../internal/managers/testdata/deployment.json")
	if err != nil {
		b.Fatal(err)
	}
	var before map[string]any
	if err := json.Unmarshal(text, &before); err != nil {
		b.Fatal(err)
	}
	after := clone(before).(map[string]any)
	p, err := ParsePattern("spec.**.image")
	if err != nil {
		b.Fatal(err)
	}
	p.Replace(after, func(Path, any) any { return "web:2" })
	for b.Loop() {
		if n := len(Objects(before, after, nil)); n != 1 {
			b.Fatalf("%d changes", n)
		}
	}
}
