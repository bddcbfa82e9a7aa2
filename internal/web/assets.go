package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var staticFiles embed.FS

// versions are the first digits of the files' checksums, by path below static.
var versions = func() map[string]string {
	all := map[string]string{}
	_ = fs.WalkDir(staticFiles, "static", func(name string, d fs.DirEntry, err error) error { // the files are in memory
		if err == nil && !d.IsDir() {
			b, _ := staticFiles.ReadFile(name)
			sum := sha256.Sum256(b)
			all[strings.TrimPrefix(name, "static/")] = hex.EncodeToString(sum[:6])
		}
		return nil
	})
	return all
}()

// assetURL returns the URL of a static file. It changes with the content, so that browsers may keep the file for ever.
func assetURL(name string) string { return "/static/" + name + "?v=" + versions[name] }

// static sends a static file.
func static(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/static/")
	version, ok := versions[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("v") == version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	b, _ := staticFiles.ReadFile("static/" + name)
	_, _ = w.Write(b) // the browser may have gone
}

func favicon(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, assetURL("icon.svg"), http.StatusFound)
}
