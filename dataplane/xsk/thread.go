package xsk

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// NameThread sets the name of the calling thread to the first 15 bytes of name.
func NameThread(name string) error {
	var b [16]byte // ends with a zero
	copy(b[:15], name)
	if _, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&b)), 0); errno != 0 {
		return errno
	}
	return nil
}
