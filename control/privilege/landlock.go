package privilege

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// changes are the Landlock rights to change or execute files. Reading is not restricted.
const changes = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
	unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
	unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
	unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
	unix.LANDLOCK_ACCESS_FS_MAKE_SYM

const (
	// ofFile are the rights on a file that a daemon writes.
	ofFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// ofDir are the rights below a directory in which it creates files.
	ofDir = ofFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_REFER
)

// TruncateABI is the first version of Landlock that restricts truncation, too.
const TruncateABI = 3

// handled returns the rights to be restricted that a version (ABI) of Landlock knows.
func handled(abi int) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: changes}
	if abi >= 2 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= TruncateABI {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return a
}

// Landlock returns the version (ABI) of the kernel's Landlock, with which a process
// restricts its own access to files, or why there is none.
func Landlock() (abi int, err error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(v), nil
}

// openBy explains the kernel's response to a query for Landlock.
func openBy(err error) (open string, _ error) {
	switch {
	case errors.Is(err, unix.ENOSYS):
		return "the kernel has no Landlock (CONFIG_SECURITY_LANDLOCK, Linux 5.13)", nil
	case errors.Is(err, unix.EOPNOTSUPP):
		return "Landlock was left out when the machine was booted (lsm=)", nil
	case errors.Is(err, unix.EPERM):
		return "what runs this process, such as a container, lets it have no Landlock", nil
	case errors.Is(err, unix.E2BIG):
		return "what runs this process closed files as often as the kernel lets it", nil
	case err != nil:
		return "", fmt.Errorf("files: %w", err)
	}
	return "", nil
}

// closeFiles prevents all threads, for good, from changing other files than those that
// need lists. Open files stay usable. If there is no Landlock it returns why.
func closeFiles(n *Need) (open string, err error) {
	abi, err := Landlock()
	if err != nil {
		return openBy(err)
	}
	a := handled(abi)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a), 0)
	if errno != 0 {
		return openBy(errno)
	}
	rules := int(fd)
	defer unix.Close(rules)
	for _, w := range n.Write {
		// A rule cannot name a file that does not exist.
		if f, err := os.OpenFile(w, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NONBLOCK, 0o666); err == nil {
			f.Close()
		}
		if err := allow(rules, w, ofFile&a.Handled_access_fs); err != nil {
			return "", err
		}
	}
	for _, d := range n.Dirs {
		// If it cannot be created now, it could not be later; the writer will report
		// that.
		_ = os.MkdirAll(d, 0o700)
		if err := allow(rules, d, ofDir&a.Handled_access_fs); err != nil {
			return "", err
		}
	}
	if err := allow(rules, "/dev/null", unix.LANDLOCK_ACCESS_FS_WRITE_FILE); err != nil {
		return "", err
	}
	if n.Interfaces {
		// TAP devices are created there. Clocks of NICs are read by ioctl on their
		// devices, of which the filter allows few.
		if err := allow(rules, "/dev/net/tun", unix.LANDLOCK_ACCESS_FS_WRITE_FILE); err != nil {
			return "", err
		}
		if err := allow(rules, "/dev", unix.LANDLOCK_ACCESS_FS_IOCTL_DEV&a.Handled_access_fs); err != nil {
			return "", err
		}
	}
	if _, _, errno := psx.Syscall3(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return openBy(errno)
	}
	return "", nil
}

// allow grants rights on a file, or on everything below a directory. It ignores a path
// that does not exist.
func allow(rules int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil || rights == 0 {
		return nil
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFile | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV // the others apply to directories
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	switch _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno {
	case 0, unix.EBADFD: // a pipe, which is never restricted
		return nil
	default:
		return fmt.Errorf("%s: %w", filepath.Clean(path), errno)
	}
}
