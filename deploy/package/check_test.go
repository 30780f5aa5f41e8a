package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed makes a deb and an rpm of files, as far as they are read.
func packed(t *testing.T, files map[string][]byte) (deb, rpm string) {
	t.Helper()
	var data, cpio bytes.Buffer
	z, _ := gzip.NewWriterLevel(&data, gzip.NoCompression) // programs are large
	w := tar.NewWriter(z)
	c, _ := gzip.NewWriterLevel(&cpio, gzip.NoCompression)
	entry := func(name string, mode int, text []byte) {
		head := fmt.Sprintf("070701%08X%08X%s%08X%s%08X%08X", 1, mode, strings.Repeat("00000000", 4), len(text), strings.Repeat("00000000", 4), len(name)+1, 0)
		fmt.Fprintf(c, "%s%s\x00%s%s%s", head, name, strings.Repeat("\x00", -(len(head)+len(name)+1)&3), text, strings.Repeat("\x00", -len(text)&3))
	}
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "." + name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		w.Write(text)
		entry("."+name, 0o100644, text)
	}
	entry("./usr", 0o040755, nil)
	entry("TRAILER!!!", 0, nil)
	w.Close()
	z.Close()
	c.Close()
	member := func(name string, text []byte) string {
		return fmt.Sprintf("%-16s%-12d%-6d%-6d%-8s%-10d`\n%s%s", name, 0, 0, 0, "100644", len(text), text, strings.Repeat("\n", len(text)%2))
	}
	header := func(entries, size int) string {
		return "\x8e\xad\xe8\x01\x00\x00\x00\x00" + string([]byte{0, 0, 0, byte(entries), 0, 0, 0, byte(size)}) + strings.Repeat("e", 16*entries) + strings.Repeat("s", size)
	}
	dir := t.TempDir()
	deb, rpm = filepath.Join(dir, "a.deb"), filepath.Join(dir, "a.rpm")
	first := header(2, 5)
	for name, text := range map[string]string{
		deb: "!<arch>\n" + member("debian-binary", []byte("2.0\n")) + member("control.tar.gz", []byte("odd")) + member("data.tar.gz", data.Bytes()),
		rpm: strings.Repeat("l", 96) + first + strings.Repeat("\x00", -len(first)&7) + header(1, 3) + cpio.String(),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return deb, rpm
}

// A package without a bill of materials, or with one of other programs, is found out.
func TestCheck(t *testing.T) {
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(me)
	if err != nil {
		t.Fatal(err)
	}
	bill, err := materials("v1", []string{me})
	if err != nil {
		t.Fatal(err)
	}
	at := "/usr/bin/" + filepath.Base(me)
	for what, c := range map[string]struct {
		files map[string][]byte
		want  string
	}{
		"whole":           {map[string][]byte{at: program, billName: bill, "/etc/x": nil}, ""},
		"no bill":         {map[string][]byte{at: program}, "there is no " + billName},
		"another program": {map[string][]byte{at: append(bytes.Clone(program), 0), billName: bill}, "is not the program"},
		"a module less":   {map[string][]byte{at: program, billName: bytes.ReplaceAll(bill, []byte("spf13/cobra@"), []byte("spf13/cobra2@"))}, "spf13/cobra@"},
		"no program":      {map[string][]byte{billName: bill}, "0 programs"},
	} {
		deb, rpm := packed(t, c.files)
		for _, name := range []string{deb, rpm} {
			var out strings.Builder
			err := check([]string{name}, &out)
			switch {
			case c.want == "" && (err != nil || !strings.Contains(out.String(), "bill of materials of 1 programs")):
				t.Errorf("%s: %v %s", what, err, &out)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), name)):
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	deb, rpm := packed(t, map[string][]byte{at: program, billName: bill})
	for _, name := range []string{deb, rpm} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 8, 50, 70, 100, 120, 200, len(text) - 9} {
			if err := os.WriteFile(name, text[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			if err := check([]string{name}, io.Discard); err == nil {
				t.Errorf("%d bytes of %s are a package", n, name)
			}
		}
	}
	if err := check(nil, io.Discard); err == nil {
		t.Error("no packages are right")
	}
}
