package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A daemon that waits for an interface ends by a signal, as one at work does: with exit
// code 0, and nothing of it is left.
func TestEndsWhileItWaits(t *testing.T) {
	l := newLab(t, 1, labOptions{})
	for program, file := range map[string]string{
		gswitch: "version: 1\nswitches: [{name: s1, ports: [{interface: d0, netns: %[1]s}, {interface: d9, netns: %[1]s}]}]\n",
		ghost:   "version: 1\nhosts: [{name: g0, interface: d9, netns: %[1]s, address: 10.0.0.1/24}]\n",
	} {
		t.Run(filepath.Base(program), func(t *testing.T) {
			doc, socket := filepath.Join(t.TempDir(), "doc.yaml"), filepath.Join(t.TempDir(), "sock")
			write(t, doc, fmt.Sprintf(file, l.sw))
			d := launchProgram(t, program, socket, "-c", doc, "--wait", "5m")
			eventually(t, "the control socket, behind which it waits", func() error {
				select {
				case <-d.done:
					t.Fatalf("it ended by itself; log:\n%s", d.log.String())
				default:
				}
				if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				return fs.ErrNotExist
			})
			d.stop(l.sw)
		})
	}
}
