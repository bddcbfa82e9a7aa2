package filelock

// setLock is F_OFD_SETLK, which the packages of Go do not name.
//
// Source: bsd/sys/fcntl.h of xnu.
const setLock = 90
