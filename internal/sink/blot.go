package sink

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Blot replaces credentials in texts that come from elsewhere, such as errors of a client or answers of a
// receiver, by ***. The zero value holds none. It is safe for concurrent use once nothing is added any more.
type Blot struct {
	secrets  []string
	replacer *strings.Replacer
}

// The least lengths of what is blotted out: shorter words are no secrets, and found everywhere.
const (
	// LeastPassword is for what is a credential for sure.
	LeastPassword = 3
	// LeastWord is for what may be one, such as a part of a path.
	LeastWord = 8
)

// Add adds credentials of at least so many bytes: as they are, in quotes, and as URLs and base64 write them.
func (b *Blot) Add(least int, texts ...string) {
	for _, s := range texts {
		if len(s) < max(least, 1) {
			continue
		}
		quoted := strconv.Quote(s)
		for _, form := range []string{
			s, quoted[1 : len(quoted)-1], url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(s)),
		} {
			if !slices.Contains(b.secrets, form) {
				b.secrets = append(b.secrets, form)
			}
		}
	}
	// The longest first: of two that begin alike, the replacer takes the one that comes first.
	slices.SortStableFunc(b.secrets, func(x, y string) int { return cmp.Compare(len(y), len(x)) })
	pairs := make([]string, 0, 2*len(b.secrets))
	for _, s := range b.secrets {
		pairs = append(pairs, s, "***")
	}
	b.replacer = strings.NewReplacer(pairs...)
}

// AddUser adds what a URL holds of a user: the password, and with it what the header Authorization has.
func (b *Blot) AddUser(u *url.Userinfo) {
	if password, ok := u.Password(); ok && password != "" {
		_, escaped, _ := strings.Cut(u.String(), ":")
		b.Add(1, password, escaped, u.Username()+":"+password)
	}
}

// Text is a text without the credentials.
func (b *Blot) Text(text string) string {
	if b == nil || b.replacer == nil {
		return text
	}
	return b.replacer.Replace(text)
}

// Error is an error whose text is without the credentials; errors.Is and errors.As see the one within. Nil
// stays nil.
func (b *Blot) Error(err error) error {
	if err == nil {
		return nil
	}
	return blotted{err, b.Text(err.Error())}
}

// Excerpt is the beginning of an answer, on one line, without the credentials.
func (b *Blot) Excerpt(text []byte) string {
	const most = 200
	line := strings.Join(strings.FieldsFunc(b.Text(string(text)), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

// blotted is an error with another text.
type blotted struct {
	err  error
	text string
}

func (b blotted) Error() string { return b.text }

func (b blotted) Unwrap() error { return b.err }
