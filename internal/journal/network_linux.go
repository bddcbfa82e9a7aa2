package journal

import "syscall"

// networked are file systems between machines, by the magic numbers of statfs(2).
//
// Source: Linux, include/uapi/linux/magic.h, and fs/*/ for those that are not there.
var networked = map[uint32]string{
	0x00006969: "NFS",
	0x0000517b: "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x00c36400: "Ceph",
	0x5346414f: "AFS",
	0x73757245: "Coda",
	0x01161970: "GFS2",
	0x7461636f: "OCFS2",
	0x0bd00bd0: "Lustre",
	0x19830326: "BeeGFS",
	0x47504653: "GPFS",
}

// networkOf names the network file system of a directory; it is empty for others, and where that is not known.
func networkOf(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return ""
	}
	return networked[uint32(st.Type)] //nolint:gosec // the numbers have 32 bits; some systems extend their sign
}
