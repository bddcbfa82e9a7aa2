package licenses

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

// TestPrograms: every licence of what the released programs link is known and allowed.
func TestPrograms(t *testing.T) {
	platforms := []string{"linux/amd64", "darwin/arm64", "windows/amd64"}
	for _, tc := range []struct {
		dir, pkg string
		has      map[string]string // some parts, and their licences
	}{
		{repository, "./cmd/tattler", map[string]string{
			"the Go standard library":              "BSD-3-Clause",
			"k8s.io/client-go":                     "Apache-2.0",
			"github.com/eclipse/paho.golang":       "BSD-3-Clause EPL-2.0",
			"github.com/klauspost/compress":        "Apache-2.0 BSD-3-Clause MIT", // with code of others in its folders
			"github.com/inconshreveable/mousetrap": "Apache-2.0",                  // only on Windows
			"htmx":                                 "0BSD",
		}},
		{repository + "/cloud", "./cmd/tattler-cloud", map[string]string{"github.com/aws/aws-sdk-go-v2": "Apache-2.0 BSD-3-Clause", "github.com/Azure/go-amqp": "MIT"}},
	} {
		parts, err := Collect(t.Context(), tc.dir, tc.pkg, platforms)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(parts); err != nil {
			t.Error(err)
		}
		text := string(Text("x", parts))
		for name, want := range tc.has {
			i := slices.IndexFunc(parts, func(p Part) bool { return p.Name == name })
			if i < 0 {
				t.Errorf("%s does not link %s", tc.pkg, name)
				continue
			}
			if got := strings.Join(parts[i].IDs(), " "); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
			if !strings.Contains(text, "\n"+name+" "+parts[i].Version+": ") || !strings.Contains(text, "\n"+name+" (LICENSE") {
				t.Errorf("%s is missing in the text", name)
			}
		}
		for _, p := range parts {
			if strings.HasPrefix(p.Name, "github.com/tattler-dev/") {
				t.Errorf("%s is not of others", p.Name)
			}
		}
	}
}

// TestExceptions: an exception that nothing needs any longer would hide a mistake.
func TestExceptions(t *testing.T) {
	parts, err := Collect(t.Context(), repository, "./cmd/tattler", []string{"linux/amd64"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range exceptions {
		if !slices.ContainsFunc(parts, func(p Part) bool { return p.Name == x.part && slices.Contains(p.IDs(), x.id) }) {
			t.Errorf("%s is not linked under %s", x.part, x.id)
		}
	}
}

func TestCheck(t *testing.T) {
	const mit = "Permission is hereby granted, free of charge, to any person obtaining a\n copy of this software and associated documentation files (the \"Software\")"
	file := func(name, text string) File {
		f := File{Name: name, Text: text}
		if !isNotice(name) {
			f.IDs = Recognize(text)
		}
		return f
	}
	for _, tc := range []struct {
		why   string
		texts []File
		want  string
	}{
		{"one that is allowed", []File{file("LICENSE", mit)}, ""},
		{"a notice beside it", []File{file("LICENSE", mit), file("NOTICE", "Copyright us")}, ""},
		{"only a notice", []File{file("NOTICE", "Copyright us")}, "m v1: no licence"},
		{"nothing", nil, "m v1: no licence"},
		{"a text that nobody knows", []File{file("LICENSE", "Ask us.")}, "LICENSE is not a known licence"},
		{"an unknown one in a folder", []File{file("LICENSE", mit), file("x/LICENSE", "Ask us.")}, "x/LICENSE is not a known licence"},
		{"copyleft", []File{file("COPYING", "GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007")}, "GPL in COPYING is not allowed"},
		{"a second one in the same file", []File{file("LICENSE", mit+"\n\nGNU AFFERO GENERAL PUBLIC LICENSE Version 3, 19 November 2007")}, "AGPL in LICENSE is not allowed"},
		{"an exception for another part", []File{file("LICENSE", "Eclipse Public License - v 2.0")}, "EPL-2.0 in LICENSE is not allowed"},
	} {
		err := Check([]Part{{Name: "m", Version: "v1", Texts: tc.texts}})
		var problems *Error
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.why, err)
		case tc.want != "" && (!errors.As(err, &problems) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"LICENSE": true, "LICENSE.txt": true, "License.md": true, "LICENSE-MIT": true, "COPYING": true, "LICENSE.libyaml": true,
		"license.go": false, "license_test.go": false, "licenses": false, "NOTICE": false, "README.md": false,
	} {
		if isLicense(name) != want {
			t.Errorf("%s: %v, want %v", name, !want, want)
		}
	}
}

// TestCopied: the version of a copied file is the one in the file.
func TestCopied(t *testing.T) {
	for _, c := range copied {
		file := filepath.Join(repository, strings.TrimSuffix(c.license, ".LICENSE")+".min.js")
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), `version:"`+c.version+`"`) {
			t.Errorf("%s is not version %s: %v", file, c.version, err)
		}
	}
}
