package web

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lacks fails the test if a page has one of some texts.
func lacks(t *testing.T, body string, all ...string) {
	t.Helper()
	for _, text := range all {
		if strings.Contains(body, text) {
			t.Errorf("%q in\n%s", text, body)
		}
	}
}

// TestClusters: with several clusters, entries name theirs, a field and a parameter select some, and the pages of an object
// stay within its own. With one, nothing mentions clusters.
func TestClusters(t *testing.T) {
	const field = `name="cluster"`
	lacks(t, recorded(t).get("/").Body.String(), field, "only this cluster")

	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	other := cmKind
	other.Cluster = "staging"
	b.set(cmKind, "shop", "settings", "helm", configMap("k", "of-prod"), nil)
	b.set(other, "shop", "settings", "helm", configMap("k", "of-staging"), nil)
	b.wait(time.Minute)
	b.set(cmKind, "shop", "settings", "helm", configMap("k", "of-prod-2"), nil)
	b.wait(time.Minute)
	b.set(other, "shop", "settings", "helm", configMap("k", "of-staging-2"), nil)
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPage(t, b.path, b.at.Add(time.Minute))
	all := p.get("/?flat=1").Body.String()
	has(t, all, field, ">prod</a>", ">staging</a>", "/?cluster=staging&amp;flat=1",
		"/object?cluster=prod&amp;name=settings&amp;namespace=shop&amp;type=configmaps", "/object?cluster=staging&amp;name=settings&amp;namespace=shop&amp;type=configmaps")
	one := p.get("/?flat=1&cluster=staging").Body.String()
	has(t, one, `value="staging"`, "of-staging-2", `<span class="key">cluster</span> staging`, "/object?cluster=staging&amp;name=settings&amp;namespace=shop&amp;type=configmaps")
	lacks(t, one, "of-prod", "only this cluster")
	for name, foreign := range map[string]string{"prod": "of-staging", "staging": "of-prod"} {
		page := p.get("/?flat=1&where=" + url.QueryEscape(`cluster == "`+name+`"`)).Body.String()
		has(t, page, "of-"+name+"-2")
		lacks(t, page, foreign)
	}
	for name, foreign := range map[string]string{"prod": "of-staging", "staging": "of-prod"} {
		page := p.get("/object?type=configmaps&namespace=shop&name=settings&cluster=" + name).Body.String()
		has(t, page, "of-"+name+"-2", "of "+name, "cluster="+name)
		lacks(t, page, foreign)
		if n := len(versionLinks(page)); n != 2 {
			t.Errorf("%s: %d versions", name, n)
		}
	}
	w := p.get("/?cluster=nowhere")
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "of-prod") {
		t.Errorf("an unknown cluster: %d", w.Code)
	}
	has(t, w.Body.String(), "the journal has no cluster &#34;nowhere&#34;: it has prod, staging")
}
