package journal

import "syscall"

// fileSystems are those that other machines may write to, by the magic numbers of statfs(2).
//
// FUSE and 9P say how a file system is reached, not where it is: sshfs and rclone are between machines, but NTFS, rootless
// containers (fuse-overlayfs), virtiofs and Docker Desktop use FUSE, and gVisor shows every volume of a container as 9P.
// To refuse them would refuse many local disks.
//
// Source: Linux, include/uapi/linux/magic.h, and fs/*/ for those that are not there.
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
	0x65735546: {name: "FUSE", perhaps: true},
	0x01021997: {name: "9P", perhaps: true},
}

func statFileSystem(dir string) fileSystem {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fileSystem{}
	}
	return fileSystems[uint32(st.Type)] //nolint:gosec // the numbers have 32 bits; some systems extend their sign
}
