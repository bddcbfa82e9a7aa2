package journal

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// fileSystems are file systems that other machines may write to, by the magic numbers of statfs(2).
//
// FUSE and 9P are protocols and can be local: sshfs spans machines, but rootless containers (fuse-overlayfs), virtiofs
// and Docker Desktop use FUSE, and gVisor presents every volume of a container as 9P. Refusing all of them would refuse
// many local disks; fuse distinguishes the known ones.
//
// Source: Linux, include/uapi/linux/magic.h, and fs/*/ for those missing there.
var fileSystems = map[uint32]fileSystem{
	0x00006969: {name: "NFS"},
	0x0000517b: {name: "SMB"},
	0xff534d42: {name: "CIFS"},
	0xfe534d42: {name: "SMB2"},
	0x00c36400: {name: "Ceph"},
	0x5346414f: {name: "AFS"},
	0x6b414653: {name: "AFS"}, // the kernel's own client
	0x73757245: {name: "Coda"},
	0x01161970: {name: "GFS2"},
	0x7461636f: {name: "OCFS2"},
	0x0bd00bd0: {name: "Lustre"},
	0x19830326: {name: "BeeGFS"},
	0x47504653: {name: "GPFS"},
	magicFUSE:  {name: "FUSE", perhaps: true},
	0x01021997: {name: "9P", perhaps: true},
}

const magicFUSE = 0x65735546

func statFileSystem(dir string) fileSystem {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fileSystem{}
	}
	magic := uint32(fs.Type) //nolint:gosec // the numbers have 32 bits; some systems extend their sign
	if magic != magicFUSE {
		return fileSystems[magic]
	}
	var st unix.Stat_t
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || unix.Stat(dir, &st) != nil {
		return fileSystems[magicFUSE]
	}
	dev := uint64(st.Dev) //nolint:unconvert // some systems have another type
	return fuse(mountType(string(mounts), unix.Major(dev), unix.Minor(dev)))
}

// networkFUSE are types of FUSE file systems that span machines, as in mountinfo.
var networkFUSE = []string{"fuse.ceph-fuse", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}

// fuse returns a FUSE file system by its type. fuseblk is on a local block device, such as a disk with NTFS.
func fuse(kind string) fileSystem {
	switch {
	case kind == "":
		return fileSystems[magicFUSE]
	case kind == "fuseblk":
		return fileSystem{}
	}
	return fileSystem{name: kind, perhaps: !slices.Contains(networkFUSE, kind)}
}

// mountType returns the type of the file system on a device; empty if unknown. See proc_pid_mountinfo(5).
func mountType(mountinfo string, major, minor uint32) string {
	device := fmt.Sprintf("%d:%d", major, minor)
	for line := range strings.Lines(mountinfo) {
		mount, rest, _ := strings.Cut(line, " - ")
		if fields, types := strings.Fields(mount), strings.Fields(rest); len(fields) > 2 && fields[2] == device && len(types) > 0 {
			return types[0]
		}
	}
	return ""
}
