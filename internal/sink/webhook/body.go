package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"text/template"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// maxBody bounds the output of a template.
const maxBody = 16 << 20

// parseTemplate compiles a template and runs it on an event of each operation, so that a wrong name is found before
// the first change. It returns nil for an empty text.
func parseTemplate(text string) (*template.Template, error) {
	if text == "" {
		return nil, nil
	}
	t, err := template.New("template").Funcs(template.FuncMap{"json": jsonText}).Parse(text)
	if err != nil {
		return nil, err
	}
	for _, e := range sink.Samples() {
		if _, err := execute(t, e); err != nil {
			return nil, fmt.Errorf("for an event with op %s: %w", e.Data.Op, err)
		}
	}
	return t, nil
}

// jsonText encodes a value as JSON, for use within a body: {"text": {{json .Subject}}}.
func jsonText(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// render makes the body for an event.
func render(t *template.Template, e *event.Event, contentType string) ([]byte, error) {
	body, err := execute(t, e)
	if err != nil {
		return nil, err
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) && !json.Valid(body) {
		return nil, errors.New("the template's output is not valid JSON")
	}
	return body, nil
}

func execute(t *template.Template, e *event.Event) ([]byte, error) {
	b := &bounded{}
	if err := t.Execute(b, e); err != nil {
		return nil, err
	}
	return b.text, nil
}

// bounded is a buffer with a maximum length.
type bounded struct{ text []byte }

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > maxBody {
		return 0, fmt.Errorf("the body is longer than %d bytes", maxBody)
	}
	b.text = append(b.text, p...)
	return len(p), nil
}
