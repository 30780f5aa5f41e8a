package sweep

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxUnpacked bounds what is unpacked of one archive.
const maxUnpacked = 4 << 30

// maxEntries bounds how many files that are: each takes an inode, however small.
const maxEntries = 1 << 16

// pack writes files below a directory to an archive, all of them if names is nil.
func pack(w io.Writer, dir string, names []string) error {
	if names == nil {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				rel, e := filepath.Rel(dir, path)
				names, err = append(names, rel), e
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	t := tar.NewWriter(w)
	for _, name := range names {
		if err := add(t, dir, name); err != nil {
			return err
		}
	}
	return t.Close()
}

func add(t *tar.Writer, dir, name string) error {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: info.Size(), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

// unpack writes the files of an archive below a directory, and nowhere else.
func unpack(r io.Reader, dir string) error {
	return unpackInto(r, func(name string, text io.Reader) error {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, text)
		return errors.Join(err, f.Close())
	})
}

// unpackInto gives each file of an archive to write, by a name that is local.
func unpackInto(r io.Reader, write func(name string, text io.Reader) error) error {
	t := tar.NewReader(r)
	left := int64(maxUnpacked)
	for entries := 0; ; entries++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(h.Name)
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			return fmt.Errorf("an archive has %q, which is no plain file below its directory", h.Name)
		}
		if entries == maxEntries {
			return fmt.Errorf("an archive has more than %d files", maxEntries)
		}
		if left -= h.Size; left < 0 {
			return fmt.Errorf("an archive has more than %d bytes", int64(maxUnpacked))
		}
		if err := write(name, t); err != nil {
			return err
		}
	}
}
