package web

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/internal/journal"
)

// versioned records n versions of an object. The number n is in the n-th.
func versioned(t *testing.T, n int) *book {
	t.Helper()
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	for i := range n {
		b.set(cmKind, "shop", "settings", "helm", configMap("value", fmt.Sprint("v", i+1)), nil)
		b.wait(time.Minute)
	}
	return b
}

// TestDamagedVersion: the page of an object says which versions are damaged, and shows the others.
func TestDamagedVersion(t *testing.T) {
	b := versioned(t, 6)
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite3.OpenFlags(b.path, sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exec("UPDATE contents SET before = x'09' || substr(before, 2) WHERE seq = 4"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPage(t, b.path, b.at)
	damaged := 0
	links := versionLinks(p.get(settingsURL).Body.String())
	if len(links) != 6 {
		t.Fatalf("%d versions", len(links))
	}
	for i, link := range links {
		for _, view := range []string{"", viewBlame} {
			w := p.get(link + "&view=" + view)
			body := w.Body.String()
			if w.Code != http.StatusOK || len(versionLinks(body)) != 6 {
				t.Errorf("version %d: %d, %d versions", i+1, w.Code, len(versionLinks(body)))
			}
			said := strings.Contains(body, "This version is damaged and cannot be read")
			if shown := strings.Contains(body, fmt.Sprint("value: v", i+1)); said == shown && view == "" {
				t.Errorf("version %d: damage is reported: %t, the version is shown: %t", i+1, said, shown)
			}
			if said {
				damaged++
			}
		}
	}
	if damaged == 0 || damaged == 2*len(links) {
		t.Errorf("%d views say so", damaged)
	}
	// On the timeline, too.
	if body := p.get("/?flat=1").Body.String(); !strings.Contains(body, "cannot be shown") || !strings.Contains(body, "v5 → v6") {
		t.Errorf("the timeline:\n%s", body)
	}
}

// TestPurgedVersion: what was purged is not on the page of its object, the first version that is left says so, and a link to
// a purged one is answered.
func TestPurgedVersion(t *testing.T) {
	b := versioned(t, 6)
	p := newPage(t, b.path, b.at)
	links := versionLinks(p.get(settingsURL).Body.String())
	if len(links) != 6 {
		t.Fatalf("%d versions", len(links))
	}
	if err := b.j.Purge(t.Context(), journal.Purge{Until: morning.Add(3 * time.Minute)}, nil); err != nil {
		t.Fatal(err)
	}
	for i, link := range links {
		w := p.get(link)
		body := w.Body.String()
		switch {
		case i < 3 && (w.Code != http.StatusNotFound || !strings.Contains(body, "removed by retention or by a purge")):
			t.Errorf("version %d: %d\n%s", i+1, w.Code, body)
		case i >= 3 && (w.Code != http.StatusOK || !strings.Contains(body, fmt.Sprint("value: v", i+1)) || len(versionLinks(body)) != 3):
			t.Errorf("version %d: %d\n%s", i+1, w.Code, body)
		}
		if says := strings.Contains(body, "The state before this version was purged"); says != (i == 3) {
			t.Errorf("version %d: says that the state before was purged: %t", i+1, says)
		}
		for old := range 3 {
			if i >= 3 && strings.Contains(body, fmt.Sprint("value: v", old+1)) {
				t.Errorf("version %d shows a purged value", i+1)
			}
		}
	}
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedPages damages one page of the file after the other. Each web page is right, or says that the journal is damaged
// and what to do.
func TestDamagedPages(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 44 {
		value := make([]byte, 600)
		for i := range value {
			value[i] = byte('a' + random.IntN(26))
		}
		b.set(cmKind, "shop", fmt.Sprint("settings-", i%3), "helm", configMap("value", string(value)), nil)
		b.wait(time.Minute)
	}
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(b.path)
	if err != nil {
		t.Fatal(err)
	}
	urls := []string{"/?flat=1", "/?lanes=object&namespace=shop", "/entries?flat=1&before=30", "/histogram", "/object?type=configmaps&namespace=shop&name=settings-1", "/?type=cm&name=settings-2&since=" + machine(morning.Add(20*time.Minute))}
	number := regexp.MustCompile(`(?s)<nav.*?</nav>|\?v=[0-9a-f]+`)
	want := map[string]string{}
	undamaged := newPage(t, b.path, b.at)
	for _, url := range urls {
		want[url] = number.ReplaceAllString(undamaged.get(url).Body.String(), "")
	}
	size := int(binary.BigEndian.Uint16(whole[16:])) // the header's page size
	shown, helped := 0, 0
	for at := size; at < len(whole); at += size {
		damaged := slices.Clone(whole)
		for i := at + size/3; i < at+size/2; i++ {
			damaged[i] ^= 0x5a
		}
		path := filepath.Join(t.TempDir(), "journal.db")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := journal.OpenReader(t.Context(), path)
		if err != nil {
			if !strings.Contains(err.Error(), "damaged") {
				t.Errorf("page %d: %v", at/size, err)
			}
			continue
		}
		p, err := New(Options{Source: r, Now: func() time.Time { return b.at }})
		if err != nil {
			t.Fatal(err)
		}
		p.patience = endless
		damage := &page{Page: p, t: t}
		for _, url := range urls {
			w := damage.get(url)
			body := number.ReplaceAllString(w.Body.String(), "")
			switch {
			case body == want[url] && w.Code == http.StatusOK:
				shown++
			case !strings.Contains(body, "damaged") || !strings.Contains(body, "tattler journal verify") && !strings.Contains(body, "cannot be shown") && !strings.Contains(body, "This version is damaged"):
				t.Errorf("page %d, %s: %d (-undamaged +damaged)\n%.2000s", at/size, url, w.Code, cmp.Diff(strings.Split(want[url], "\n"), strings.Split(body, "\n")))
			case w.Code == http.StatusOK:
				helped++
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if shown == 0 || helped == 0 {
		t.Errorf("%d pages are right, and %d are right in part", shown, helped)
	}
}
