package redact

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// configForms make canaries as programs expect them, all of them without special characters of any format.
var configForms = map[string]func(*rand.Rand) string{
	"password": func(r *rand.Rand) string { return letters(r, 9) + "-" + digits(r, 2) + letters(r, 4) },
	"word":     func(r *rand.Rand) string { return strings.ToLower(letters(r, 12)) },
	"words": func(r *rand.Rand) string {
		return strings.ToLower(letters(r, 6) + "-" + letters(r, 5) + "-" + letters(r, 6))
	},
	"digits": func(r *rand.Rand) string { return digits(r, 10) },
	"token":  func(r *rand.Rand) string { return letters(r, 7) + digits(r, 3) + letters(r, 26) + digits(r, 4) },
	"short":  func(r *rand.Rand) string { return letters(r, 7) + digits(r, 3) + letters(r, 14) },
	"hex":    func(r *rand.Rand) string { return hex.EncodeToString(random(r, 16)) },
	"hex64":  func(r *rand.Rand) string { return hex.EncodeToString(random(r, 32)) },
	"base64": func(r *rand.Rand) string { return base64.StdEncoding.EncodeToString(random(r, 32)) },
	"base64url": func(r *rand.Rand) string {
		return base64.RawURLEncoding.EncodeToString(random(r, 33))
	},
	"uuid": func(r *rand.Rand) string {
		s := hex.EncodeToString(random(r, 16))
		return s[:8] + "-" + s[8:12] + "-4" + s[13:16] + "-a" + s[17:20] + "-" + s[20:]
	},
	"basic": func(r *rand.Rand) string { return base64.StdEncoding.EncodeToString([]byte("app:" + letters(r, 16))) },
	"coded": func(r *rand.Rand) string { // a file in base64
		return base64.StdEncoding.EncodeToString([]byte("LOG_LEVEL=info\nDB_PASSWORD=" + letters(r, 14) + "\n"))
	},
	"float": func(r *rand.Rand) string { return digits(r, 6) + "e" + digits(r, 5) }, // YAML reads it as a number
	"bcrypt": func(r *rand.Rand) string {
		return "$2y$10$" + letters(r, 20) + digits(r, 3) + letters(r, 30)
	},
	"block": func(r *rand.Rand) string { // the body of a key, over several lines
		s := base64.StdEncoding.EncodeToString(random(r, 144))
		return s[:64] + "\n" + s[64:128] + "\n" + s[128:]
	},
	"hexblock": func(r *rand.Rand) string {
		return hex.EncodeToString(random(r, 16)) + "\n" + hex.EncodeToString(random(r, 16)) + "\n" + hex.EncodeToString(random(r, 16))
	},
}

func letters(r *rand.Rand, n int) string {
	const all = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"
	return draw(r, all, n)
}

func digits(r *rand.Rand, n int) string { return draw(r, "123456789", n) }

func draw(r *rand.Rand, from string, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = from[r.IntN(len(from))]
	}
	return string(out)
}

func random(r *rand.Rand, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// configFile is a program's configuration in testdata/configs.
type configFile struct {
	program, key string // the program, and the file's name, which is its key in a ConfigMap
	quotes       string // the quotes that may stand around a value
	text         string // with marks
	marks        []configMark
}

// configMark is a marked value: «form» a credential, «=text» an ordinary value; «form ~name» has a limit.
type configMark struct {
	line   int
	source string // the line
	secret bool
	form   string
	limit  string
	value  string
	found  map[string][]string // by variant: the carriers in which a credential leaked, or an ordinary value was hidden
}

var markPattern = regexp.MustCompile(`["']?«(=?)([^«»~]*?)( ~[a-z-]+)?»["']?`)

// readConfigs reads the files. Each is named program/file, and followed by the quotes that its format allows.
func readConfigs(t *testing.T) (files []*configFile) {
	t.Helper()
	archives, err := filepath.Glob("testdata/configs/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			path, quotes, _ := strings.Cut(f.Name, " ")
			program, key, found := strings.Cut(path, "/")
			if !found {
				t.Fatalf("%s: %s: want program/file", name, f.Name)
			}
			file := &configFile{program: program, key: key, quotes: quotes, text: string(f.Data)}
			file.draw(t)
			files = append(files, file)
		}
	}
	return files
}

// draw gives each mark its value: the same in every run, so that a failure can be repeated.
func (f *configFile) draw(t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(f.program + "/" + f.key))))
	for i, line := range strings.Split(f.text, "\n") {
		for _, m := range markPattern.FindAllStringSubmatch(line, -1) {
			mark := configMark{line: i + 1, source: strings.TrimSpace(line), secret: m[1] == "", form: m[2], limit: strings.TrimPrefix(m[3], " ~")}
			if mark.value = m[2]; mark.secret {
				form := configForms[m[2]]
				if form == nil {
					t.Fatalf("%s/%s:%d: unknown form %q", f.program, f.key, i+1, m[2])
				}
				mark.value = form(r)
			}
			if mark.limit != "" && configLimits[mark.limit] == "" {
				t.Fatalf("%s/%s:%d: unknown limit %q", f.program, f.key, i+1, mark.limit)
			}
			f.marks = append(f.marks, mark)
		}
	}
}

// render returns the text with its values, in the quotes if these are not zero.
func (f *configFile) render(quote byte, crlf bool) string {
	lines, next := strings.Split(f.text, "\n"), 0
	for i, line := range lines {
		both := strings.Contains(line, `"`) && strings.Contains(line, "'")
		var out strings.Builder
		done := 0
		for _, at := range markPattern.FindAllStringIndex(line, -1) {
			value, form := f.marks[next].value, f.marks[next].form
			next++
			before, after, indent := line[done:at[0]], line[at[1]:], line[:len(line)-len(strings.TrimLeft(line, " \t"))]
			value = strings.ReplaceAll(value, "\n", "\n"+indent)
			open, end := openQuote(line[at[0]:]), openQuote(line[at[1]-1:])
			switch {
			case quote != 0 && !both && open != "" && open == end:
				value = string(quote) + value + string(quote)
			case quote != 0 && !both && open+end == "" && !strings.HasSuffix(form, "block") && isWhole(line[:at[0]], after):
				value = string(quote) + value + string(quote)
			default:
				value = open + value + end
			}
			out.WriteString(before + value)
			done = at[1]
		}
		lines[i] = out.String() + line[done:]
	}
	text := strings.Join(lines, "\n")
	if crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// openQuote returns the quote at the start of s, if there is one.
func openQuote(s string) string {
	if s[0] == '"' || s[0] == '\'' {
		return s[:1]
	}
	return ""
}

// isWhole reports whether what stands between the texts of a line is a whole value, and not a part of a URL, of
// a flag or of a header.
func isWhole(before, after string) bool {
	if strings.TrimSpace(before) == "" || after != "" && !strings.ContainsAny(after[:1], " \t,;)]}") {
		return false
	}
	if strings.Count(before, `"`)%2 == 1 || strings.Count(before, "'")%2 == 1 { // within quotes
		return false
	}
	word := before[strings.LastIndexAny(before, " \t")+1:]
	if word != "" {
		return strings.HasSuffix(word, "=") && word[0] != '-' && !strings.ContainsAny(word, "?&;:,/\"'")
	}
	words := strings.Fields(before)
	switch words[len(words)-1] {
	case "Bearer", "Basic", "Token", "Splunk":
		return false
	}
	return true
}

// configVariant is the text with one kind of quotes and line ends.
type configVariant struct{ name, text string }

func (f *configFile) variants() (out []configVariant) {
	for _, quote := range append([]byte{0}, f.quotes...) {
		for _, crlf := range []bool{false, true} {
			name := map[byte]string{0: "plain", '"': "double", '\'': "single"}[quote] + map[bool]string{false: "-lf", true: "-crlf"}[crlf]
			out = append(out, configVariant{name, f.render(quote, crlf)})
		}
	}
	return out
}

// validate checks that the file has marks of both kinds, and that an ordinary value is only where it is marked.
func (f *configFile) validate(t *testing.T, text string) {
	t.Helper()
	marks := map[bool]int{}
	for _, m := range f.marks {
		marks[m.secret]++
		if n := strings.Count(text, m.value); !m.secret && n != 1 {
			t.Fatalf("%s/%s:%d: the value occurs %d times, want 1", f.program, f.key, m.line, n)
		}
	}
	if marks[true] == 0 || marks[false] == 0 {
		t.Fatal("want both credentials and ordinary values to be marked")
	}
}
