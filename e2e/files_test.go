package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Tables, lists and documents that go to a full disk end with an error, whatever prints them.
func TestOutputOnAFullDisk(t *testing.T) {
	for _, words := range [][]string{
		{gswitch, "schema"}, {gswitch, "version"}, {gswitch, "doctor"}, {gswitch, "--help"}, {gswitch, "run", "--help"},
		{ghost, "schema"}, {ghost, "version"}, {ghost, "doctor"}, {gcollect, "version"}, {gcollect, "export", "--help"},
		{gfabric, "version"}, {gfabric, "headroom"}, {gfabric, "cc", "list"}, {gfabric, "cc", "show", "dcqcn"}, {gfabric, "schema", "scenario"}, {gfabric, "plan", "star:2"},
		{gfabric, "graph", "star:2"}, {gfabric, "status", "--help"}, {gfabric, "check", "../scenarios/quickstart.yaml"}, {gfabric, "recovery", "list"},
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		c := exec.Command(words[0], words[1:]...)
		c.Stdout, c.Stderr = full, &said
		if err := c.Run(); err == nil || !strings.Contains(said.String(), "no space left on device") {
			t.Errorf("%v: %v\n%s", words, err, &said)
		}
		full.Close()
	}
}

// An export for containers is there as a whole or not at all.
func TestExportOnAFullDisk(t *testing.T) {
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=16k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(small, 0) })
	out, err := exec.Command(gfabric, "export", "containerlab", "leaf-spine:4,8,4", "--dir", small).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no space left on device") || !strings.Contains(string(out), small+"/") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := filepath.WalkDir(small, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// What has no end is refused by the programs that read it, with its name,
// before it has taken much memory.
func TestFilesWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{gswitch, "validate", link}, {gswitch, "run", "-c", link}, {gswitch, "apply", "-f", link}, {gswitch, "policy", "check", link},
		{ghost, "validate", link}, {ghost, "run", "-c", link}, {ghost, "apply", link},
		{gcollect, "run", "--data", dir, "--fabric", link}, {gcollect, "status", "--nats", "nats://127.0.0.1:1", "--token-file", link},
		{gfabric, "check", link}, {gfabric, "run", link}, {gfabric, "plan", link}, {gfabric, "export", "compose", link, "--dir", dir}, {gfabric, "report", link},
		{gfabric, "compare", link, link}, {gfabric, "replay", link}, {gfabric, "traces", link}, {gfabric, "diagnose", link}, {gfabric, "losses", link}, {gfabric, "flows", link},
		{gfabric, "ns3", "--topology", link, "--flows", link}, {gfabric, "ns3", "--topology", "../fabric/ns3/testdata/ls16_FbHdp_30.topo", "--flows", link},
	} {
		// No more than 4 GB of memory, so that what reads without end ends here and leaves the machine alone.
		c := exec.Command("sh", append([]string{"-c", `ulimit -d 4000000; exec "$@"`, "sh"}, words...)...)
		out, err := c.CombinedOutput()
		if err == nil || !strings.Contains(string(out), link) || strings.Contains(string(out), "goroutine ") {
			t.Errorf("%v: %v\n%.2000s", words, err, out)
		}
		if used := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10; used > 1024 {
			t.Errorf("%v took %d MB", words, used)
		}
	}
}

// A network that is raised where there is no room for its files goes again, as a whole.
func TestUpOnAFullDisk(t *testing.T) {
	if err := os.MkdirAll("/run/gfabric", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, size := range []string{"4k", "12k", "24k"} {
		name := fmt.Sprintf("full%s%d", size, os.Getpid())
		var up, status []byte
		var err error
		done := make(chan struct{})
		go func() { // on a thread whose /run/gfabric is another, and which ends with this
			defer close(done)
			runtime.LockOSThread()
			if err = errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", "/run/gfabric", "tmpfs", 0, "size="+size)); err != nil {
				return
			}
			up, err = exec.Command(gfabric, "up", "leaf-spine:2,4,2", "--name", name, "--processes", "each", "--gswitch", gswitch).CombinedOutput()
			status, _ = exec.Command(gfabric, "status").CombinedOutput()
		}()
		<-done
		if err == nil || !strings.Contains(string(up), "no space left on device") || !strings.Contains(string(up), "/run/gfabric/") {
			t.Errorf("%s: %v\n%s", size, err, up)
		}
		if !strings.Contains(string(status), "no fabric is up") {
			t.Errorf("%s: %s", size, status)
		}
		if left, _ := filepath.Glob("/run/netns/*" + name + "*"); left != nil {
			t.Errorf("%s: left are %v", size, left)
		}
	}
}
