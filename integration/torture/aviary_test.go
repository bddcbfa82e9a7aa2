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

// canary is a value that must be found nowhere.
type canary struct {
	where string
	value string
}

// forms are how a value can be written: as it is, and as base64 has it at each alignment, once and twice.
func forms(value string) [][]byte {
	forms := [][]byte{[]byte(value)}
	once := base64s([]byte(value))
	for _, f := range once {
		forms = append(forms, f)
		forms = append(forms, base64s(f)...)
	}
	return forms
}

// base64s is what of the base64 of a text that holds a value does not depend on what stands before and
// after it, for each alignment.
func base64s(value []byte) [][]byte {
	var out [][]byte
	for shift := range 3 {
		text := base64.StdEncoding.EncodeToString(append(make([]byte, shift), value...))
		from := (shift*8 + 5) / 6 // the first digit that is of the value only
		to := (shift + len(value)) * 8 / 6
		out = append(out, []byte(text[from:to]))
	}
	return out
}

// aviary is all canaries of a test. What is looked for is how they all begin.
type aviary struct {
	*testing.T
	begin   string
	needles [][]byte
	all     []canary
	// looked counts what was searched, by what it is: a search of nothing finds nothing.
	looked map[string]int
}

func newAviary(t *testing.T) *aviary {
	a := &aviary{T: t, begin: "cnry" + rand.Text()[:10], looked: map[string]int{}}
	a.needles = forms(a.begin)
	return a
}

// plant makes a canary.
func (a *aviary) plant(where string) string {
	c := canary{where, a.begin + rand.Text()[:10]}
	a.all = append(a.all, c)
	return c.value
}

// which names the canary that is near a place of a text.
func (a *aviary) which(near []byte) string {
	for _, c := range a.all {
		for _, f := range forms(c.value) {
			if bytes.Contains(near, f) {
				return c.where
			}
		}
	}
	return "somewhere"
}

// search fails the test where a text holds a canary.
func (a *aviary) search(what string, text []byte) {
	a.Helper()
	a.looked[what] += len(text)
	for _, f := range a.needles {
		if i := bytes.Index(text, f); i >= 0 {
			near := text[max(0, i-100):min(len(text), i+150)]
			a.Errorf("the canary of %s is in %s: …%q…", a.which(near), what, near)
		}
	}
}

// parrot is a webhook that says in its refusals what it was sent, credentials first.
type parrot struct {
	*httptest.Server
	mu     sync.Mutex
	n      int
	poison []byte // a message that it refuses for good
	text   bytes.Buffer
}

func newParrot(t *testing.T) *parrot {
	t.Helper()
	p := &parrot{}
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

func (p *parrot) heard() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.text.Bytes())
}
