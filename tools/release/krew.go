package release

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// krewName is krew's manifest of the kubectl plugin, which is the program tattler.
const krewName = "krew-tattler.yaml"

//go:embed krew.tmpl
var krewText string

var krewTemplate = template.Must(template.New(krewName).Parse(krewText))

// krewPlatform is an archive in the manifest.
type krewPlatform struct{ OS, Arch, URI, SHA256, Bin, Notices string }

// krew writes the manifest, unless tattler is not released.
func (r *run) krew() error {
	if !slices.ContainsFunc(r.programs, func(p program) bool { return p.name == "tattler" }) {
		return nil
	}
	data := struct {
		Version   string
		Platforms []krewPlatform
	}{Version: r.source.Version}
	for _, on := range r.o.Platforms {
		name := archiveName("tattler", r.source.Version, on)
		sum, err := checksum(filepath.Join(r.o.Out, name))
		if err != nil {
			return err
		}
		data.Platforms = append(data.Platforms, krewPlatform{OS: on.OS, Arch: on.Arch, URI: r.o.URL + "/" + name, SHA256: sum,
			Bin: "tattler" + on.exe(), Notices: noticesName})
	}
	var b strings.Builder
	if err := krewTemplate.Execute(&b, data); err != nil {
		return fmt.Errorf("write the krew manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.o.Out, krewName), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the krew manifest: %w", err)
	}
	return nil
}

// keys returns the keys of some maps, sorted, each once.
func keys(of ...map[string]string) []string {
	all := map[string]string{}
	for _, m := range of {
		maps.Copy(all, m)
	}
	return slices.Sorted(maps.Keys(all))
}
