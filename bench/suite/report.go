package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// Print prints the rows as a table.
func Print(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "what\tunit\tours\tpeer\tratio\taim\tmet\tbeside\trounds\tn")
	for _, r := range rows {
		met := ""
		if r.Met != nil {
			met = map[bool]string{true: "yes", false: "NO"}[*r.Met]
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", r.Name, r.Unit, number(r.Ours, r.OursSpread), number(r.Peer, r.PeerSpread),
			ratio(r.Ratio), r.Aim, met, r.PeerVersion, r.Rounds, r.N)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return notes(w, rows)
}

func notes(w io.Writer, rows []Row) error {
	for _, r := range rows {
		if r.Note == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", r.Name, r.Note); err != nil {
			return fmt.Errorf("print notes: %w", err)
		}
	}
	return nil
}

// number formats a value in three digits, with the spread of the rounds.
func number(v *float64, spread float64) string {
	if v == nil {
		return "-"
	}
	s := digits(*v)
	if spread >= 0.005 {
		s += fmt.Sprintf(" ±%.0f%%", 50*spread)
	}
	return s
}

// digits formats three significant digits without an exponent.
func digits(v float64) string {
	if v == 0 {
		return "0"
	}
	places := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	s := fmt.Sprintf("%.*f", places, v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// ratio formats a factor, or a fraction if it is small.
func ratio(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v > 0 && *v < 0.5:
		return "1/" + digits(1 / *v)
	}
	return digits(*v) + "×"
}

// Write writes the rows as JSON, one to a line. It replaces the file as a whole.
func Write(path string, rows []Row) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			return fmt.Errorf("encode row: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	part := path + ".part"
	if err := os.WriteFile(part, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}
