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

// Mask replaces credentials by *** in texts from elsewhere, such as a client's errors or a receiver's answers. The
// zero value masks nothing. It is safe for concurrent use after the last Add.
type Mask struct {
	secrets  []string
	replacer *strings.Replacer
}

// Minimum lengths of a credential. Shorter words are not secret, and occur in many texts.
const (
	// MinSecret is for text that is certainly a credential.
	MinSecret = 3
	// MinWord is for text that may be one, such as a part of a path.
	MinWord = 8
)

// Add adds credentials of at least so many bytes, together with their quoted, URL-escaped and base64 forms.
func (m *Mask) Add(least int, texts ...string) {
	for _, s := range texts {
		if len(s) < max(least, 1) {
			continue
		}
		quoted := strconv.Quote(s)
		for _, form := range []string{
			s, quoted[1 : len(quoted)-1], url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(s)),
		} {
			if !slices.Contains(m.secrets, form) {
				m.secrets = append(m.secrets, form)
			}
		}
	}
	// Longest first: if two start alike, the replacer takes the one that is listed first.
	slices.SortStableFunc(m.secrets, func(x, y string) int { return cmp.Compare(len(y), len(x)) })
	pairs := make([]string, 0, 2*len(m.secrets))
	for _, s := range m.secrets {
		pairs = append(pairs, s, "***")
	}
	m.replacer = strings.NewReplacer(pairs...)
}

// AddUser adds a URL's password, also in the form of the header Authorization.
func (m *Mask) AddUser(u *url.Userinfo) {
	if password, ok := u.Password(); ok && password != "" {
		_, escaped, _ := strings.Cut(u.String(), ":")
		m.Add(1, password, escaped, u.Username()+":"+password)
	}
}

// Text returns a text with the credentials masked.
func (m *Mask) Text(text string) string {
	if m == nil || m.replacer == nil {
		return text
	}
	return m.replacer.Replace(text)
}

// Error masks the text of an error; errors.Is and errors.As still find the wrapped error. It returns nil for nil.
func (m *Mask) Error(err error) error {
	if err == nil {
		return nil
	}
	return masked{err, m.Text(err.Error())}
}

// Excerpt returns the beginning of an answer on one line, with the credentials masked.
func (m *Mask) Excerpt(text []byte) string {
	const maxLen = 200
	line := strings.Join(strings.FieldsFunc(m.Text(string(text)), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(line) > maxLen {
		line = strings.ToValidUTF8(line[:maxLen], "") + "…"
	}
	return line
}

// masked is an error with its text replaced.
type masked struct {
	err  error
	text string
}

func (m masked) Error() string { return m.text }

func (m masked) Unwrap() error { return m.err }
