package torture

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// canary is a value that must not be found anywhere.
type canary struct {
	where string
	value string
}

// forms returns the encodings of a value: plain, and base64 at each alignment, once and twice.
func forms(value string) [][]byte {
	forms := [][]byte{[]byte(value)}
	once := base64s([]byte(value))
	for _, f := range once {
		forms = append(forms, f)
		forms = append(forms, base64s(f)...)
	}
	return forms
}

// base64s returns, for each alignment, the part of a text's base64 that depends only on the value, not on the
// text around it.
func base64s(value []byte) [][]byte {
	var out [][]byte
	for shift := range 3 {
		text := base64.StdEncoding.EncodeToString(append(make([]byte, shift), value...))
		from := (shift*8 + 5) / 6 // the first digit that depends only on the value
		to := (shift + len(value)) * 8 / 6
		out = append(out, []byte(text[from:to]))
	}
	return out
}

// canaries is the set of a test's canaries. Searches look for their common prefix.
type canaries struct {
	*testing.T
	begin   string
	needles [][]byte
	all     []canary
	// looked counts the searched texts by kind: a search of nothing finds nothing.
	looked map[string]int
}

func newCanaries(t *testing.T) *canaries {
	a := &canaries{T: t, begin: "cnry" + rand.Text()[:10], looked: map[string]int{}}
	a.needles = forms(a.begin)
	return a
}

// plant makes a canary.
func (a *canaries) plant(where string) string {
	c := canary{where, a.begin + rand.Text()[:10]}
	a.all = append(a.all, c)
	return c.value
}

// which identifies the canary near a position in a text.
func (a *canaries) which(near []byte) string {
	for _, c := range a.all {
		for _, f := range forms(c.value) {
			if bytes.Contains(near, f) {
				return c.where
			}
		}
	}
	return "somewhere"
}

// search fails the test if a text contains a canary.
func (a *canaries) search(what string, text []byte) {
	a.Helper()
	a.looked[what] += len(text)
	for _, f := range a.needles {
		if i := bytes.Index(text, f); i >= 0 {
			near := text[max(0, i-100):min(len(text), i+150)]
			a.Errorf("the canary of %s is in %s: …%q…", a.which(near), what, near)
		}
	}
}

// echoHook is a webhook that repeats every message in its refusals, credentials first.
type echoHook struct {
	*httptest.Server
	mu     sync.Mutex
	n      int
	poison []byte // a message that it refuses permanently
	text   bytes.Buffer
}

func newEchoHook(t *testing.T) *echoHook {
	t.Helper()
	p := &echoHook{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.n++
		refuse := p.n%3 == 1
		if p.poison == nil && bytes.Contains(body, []byte(`"op":"updated"`)) {
			p.poison = body
		}
		code := http.StatusInternalServerError
		if bytes.Equal(body, p.poison) {
			code = http.StatusBadRequest
		}
		p.text.Write(body)
		p.text.WriteByte('\n')
		p.mu.Unlock()
		if refuse || code == http.StatusBadRequest {
			http.Error(w, fmt.Sprint("no: ", r.Header, " ", r.URL), code)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *echoHook) received() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.text.Bytes())
}
