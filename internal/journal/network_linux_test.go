package journal

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFUSE: the type of a mount decides, if known, and the mount of a device is found.
func TestFUSE(t *testing.T) {
	const mounts = `22 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw
31 28 0:44 / /mnt/far rw,nosuid,nodev,relatime shared:20 - fuse.sshfs me@far:/srv rw,user_id=0
32 28 8:17 / /mnt/stick rw - fuseblk /dev/sdb1 rw
33 28 0:46 / /mnt/a\040b rw - fuse.fuse-overlayfs fuse-overlayfs rw
34 28 0:47 / /mnt/share rw - virtiofs share rw
broken
`
	for _, tc := range []struct {
		why          string
		major, minor uint32
		want         fileSystem
	}{
		{"between machines", 0, 44, fileSystem{name: "fuse.sshfs"}},
		{"a disk", 8, 17, fileSystem{}},
		{"a container's", 0, 46, fileSystem{name: "fuse.fuse-overlayfs", perhaps: true}},
		{"a host's", 0, 47, fileSystem{name: "virtiofs", perhaps: true}},
		{"not among the mounts", 0, 99, fileSystem{name: "FUSE", perhaps: true}},
	} {
		if got := fuse(mountType(mounts, tc.major, tc.minor)); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.why, got, tc.want)
		}
	}
	var st unix.Stat_t
	text, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err, unix.Stat("/proc", &st))
	dev := uint64(st.Dev) //nolint:unconvert // some systems have another type
	if got := mountType(string(text), unix.Major(dev), unix.Minor(dev)); got != "proc" {
		t.Errorf("/proc is on %q", got)
	}
}
