//go:build !linux

package journal

import "errors"

// Small disks are made on Linux only.
var errNoDisk = errors.New("no small disk")

func heals(string) error       { return errNoDisk }
func purges(string) error      { return errNoDisk }
func saysFull(string) error    { return errNoDisk }
func givesUpCopy(string) error { return errNoDisk }
func heldLog(string) error     { return errNoDisk }
func fullAtOnce(string) error  { return errNoDisk }
func unusedPages(string) error { return errNoDisk }
func noReserve(string) error   { return errNoDisk }
