package privilege

import (
	"fmt"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// Grant gives the file of a program the capabilities for ports over interfaces, for users
// other than root (setcap). They are permitted, not effective: the program still starts
// in a container or unit that lacks one of them.
func Grant(file string) error {
	set := cap.NewSet()
	for i := range Used {
		if Used[i].value == cap.SYS_ADMIN {
			continue // for some configurations only, and equivalent to root
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

// Raise makes effective the capabilities that this process is permitted by its program's
// file. Other processes of its user may then inspect it, as they may any program.
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
	// With file capabilities, /proc/self belongs to root (proc(5)).
	return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}
