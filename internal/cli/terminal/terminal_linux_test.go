package terminal

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWidthOfTerminal: a terminal without a size still has a width, so that lines are cut there.
func TestWidthOfTerminal(t *testing.T) {
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	fd := int(control.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	stdout := os.Stdout
	os.Stdout = tty
	defer func() { os.Stdout = stdout }()
	io := System()
	if !io.OutTTY {
		t.Error("it is not a terminal")
	}
	for _, tc := range []struct{ columns, want int }{{0, 80}, {132, 132}, {0, 80}} {
		if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(tc.columns)}); err != nil {
			t.Fatal(err)
		}
		if got := io.Width(); got != tc.want {
			t.Errorf("of %d columns it is %d wide, want %d", tc.columns, got, tc.want)
		}
	}
}
