//go:build !unix

package journal

// noFollow is 0: on Windows, making links needs a privilege, and opening a link itself takes another call.
const noFollow = 0
