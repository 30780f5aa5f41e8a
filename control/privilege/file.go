package privilege

import (
	"fmt"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// Grant gives a program's file the capabilities that ports over interfaces take,
// for users who are not root (setcap). They are permitted, not effective: where
// a container or a unit has not got one of them the program starts all the same.
func Grant(file string) error {
	set := cap.NewSet()
	for i := range Used {
		if Used[i].value == cap.SYS_ADMIN {
			continue // for some configurations, and as much as root
		}
		if err := set.SetFlag(cap.Permitted, true, Used[i].value); err != nil {
			return err
		}
	}
	if err := set.SetFile(file); err != nil {
		return fmt.Errorf("%s: capabilities cannot be given to it: %w; it takes root, and a file system with extended attributes", file, err)
	}
	return nil
}

// Raise makes effective what this process is permitted, which it is by its
// program's file. Others of its user may look at it then, as at any program.
func Raise() error {
	before := cap.GetProc()
	after, err := before.Dup()
	if err != nil {
		return err
	}
	if err := after.Fill(cap.Effective, cap.Permitted); err != nil {
		return err
	}
	if after.String() == before.String() {
		return nil
	}
	if err := after.SetProc(); err != nil {
		return fmt.Errorf("capabilities of the program's file: %w", err)
	}
	// Where a file brings capabilities /proc/self is root's (proc(5)).
	return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}
