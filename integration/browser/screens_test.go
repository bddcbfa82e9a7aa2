package browser

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// update rewrites the README's pictures: make screenshots.
var update = flag.Bool("update", false, "rewrite the pictures of README.md; other tests that need a control plane then fail")

// screenshot returns what the tab shows, as a PNG.
func (b *tab) screenshot() []byte {
	b.t.Helper()
	b.eval("document.fonts.ready.then(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))))")
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	return picture
}

// shoot writes a screenshot into the folder TATTLER_SCREENSHOTS, if that is set, so that people can look at the pages.
func (b *tab) shoot(name string) {
	b.t.Helper()
	folder := os.Getenv("TATTLER_SCREENSHOTS")
	if folder == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(folder, strings.ReplaceAll(name, "/", "-")+".png"), b.screenshot(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// pictures are those of README.md, below docs/pictures.
var pictures = []struct {
	name, path string
	look       look
	press      string // keys on the slider
}{
	{"timeline", "/", look{width: 1200, height: 690}, ""},
	{"timeline-dark", "/", look{width: 1200, height: 690, dark: true}, ""},
	{"object", settings, look{width: 1200, height: 560}, kb.ArrowLeft},
}

// maxPicture is the most bytes of a picture in the repository.
const maxPicture = 200_000

// TestPictures: README.md has each picture, and each picture is small. With -update it makes them.
func TestPictures(t *testing.T) {
	const docs = "../../docs/pictures"
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	address := ""
	if *update {
		address = ui(t, morning(t))
	}
	for _, p := range pictures {
		file := filepath.Join(docs, p.name+".png")
		if *update {
			b := open(t, address, p.look)
			b.visit(p.path)
			if p.press != "" {
				b.run(chromedp.SendKeys(chromedp.CSS("#slider"), p.press))
				b.until(`location.search.includes("version=")`)
				b.eval("document.activeElement.blur()") // no ring around the slider
			}
			if err := os.WriteFile(file, b.screenshot(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		size, err := png.DecodeConfig(bytes.NewReader(raw))
		if err != nil || int64(size.Width) != p.look.width || int64(size.Height) != p.look.height || len(raw) > maxPicture {
			t.Errorf("%s: %d bytes, %dx%d, %v", file, len(raw), size.Width, size.Height, err)
		}
		if !bytes.Contains(readme, []byte(`"docs/pictures/`+p.name+`.png"`)) {
			t.Errorf("README.md does not show %s", file)
		}
	}
}
