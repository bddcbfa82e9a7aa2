package browser

import (
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

// shoot writes a screenshot of what the tab shows into the folder TATTLER_SHOTS, if it is set, so that people can look at
// the pages.
func (b *tab) shoot(name string) {
	b.t.Helper()
	folder := os.Getenv("TATTLER_SHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
