package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var updateErrors = flag.Bool("update-errors", false, "write the errors into testdata/errors.txtar")

// TestErrors reads testdata/errors.txtar: files as users write them, each with its expected errors. A file
// whose name starts with = holds the errors of the file before it.
func TestErrors(t *testing.T) {
	path := filepath.Join("testdata", "errors.txtar")
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		in, want := archive.Files[i], &archive.Files[i+1]
		if want.Name != "="+in.Name {
			t.Fatalf("%s is followed by %s", in.Name, want.Name)
		}
		text := strings.ReplaceAll(string(in.Data), "HEAD\n", head)
		_, err := loader().Parse("t.yaml", []byte(text))
		if err == nil {
			t.Errorf("%s: no error", in.Name)
			continue
		}
		got := err.Error() + "\n"
		for _, credential := range []string{"s3cr3t", "fr0mf1le", "hunter2"} {
			if strings.Contains(got, credential) {
				t.Errorf("%s: the error contains the credential: %s", in.Name, got)
			}
		}
		if *updateErrors {
			want.Data = []byte(got)
		}
		if got != string(want.Data) {
			t.Errorf("%s:\n got %s\nwant %s", in.Name, got, want.Data)
		}
		var list Errors
		if !errors.As(err, &list) || len(list.Unwrap()) == 0 {
			t.Errorf("%s: %T is not Errors", in.Name, err)
		}
	}
	if *updateErrors {
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManyErrorsAreFew(t *testing.T) {
	_, err := loader().Parse("t.yaml", []byte(head+"sinks:\n"+strings.Repeat("- {a: b}\n", 100)))
	if err == nil || !strings.HasSuffix(err.Error(), "\nand 180 more") || strings.Count(err.Error(), "\n") != shown {
		t.Errorf("%v", err)
	}
}

func TestParseIsBounded(t *testing.T) {
	_, err := loader().Parse("t.yaml", []byte(head+strings.Repeat("#\n", maxFile/2)))
	if err == nil || err.Error() != "t.yaml: more than 1 MiB: this is not a configuration" {
		t.Errorf("%v", err)
	}
}

// FuzzParse: any text gives a configuration or an error with a position.
func FuzzParse(f *testing.F) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "errors.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		if !strings.HasPrefix(file.Name, "=") {
			f.Add(strings.ReplaceAll(string(file.Data), "HEAD\n", head))
		}
	}
	f.Add(Example())
	f.Fuzz(func(t *testing.T, text string) {
		c, err := loader().Parse("t.yaml", []byte(text))
		var list Errors
		switch {
		case err == nil && c == nil:
			t.Fatal("neither a configuration nor an error")
		case err != nil && (!errors.As(err, &list) || len(list) == 0):
			t.Fatalf("%T: %v", err, err)
		}
		for _, e := range list {
			if e.Reason == "" || e.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+strings.Count(text, "\u0085")+strings.Count(text, "\u2028")+strings.Count(text, "\u2029")+2 {
				t.Fatalf("%#v", e)
			}
		}
	})
}
