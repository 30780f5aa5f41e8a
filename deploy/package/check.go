package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const billName = "/usr/share/doc/gswitch/bom.cdx.json"

// check opens packages, and makes sure that the bill of materials in each is that of the
// very programs beside it: by their digests, with all modules that they were built of.
func check(packages []string, out io.Writer) error {
	if len(packages) == 0 {
		return errors.New("there are no packages to check")
	}
	for _, name := range packages {
		files, err := contents(name)
		if err == nil {
			var programs, modules int
			if programs, modules, err = checkBill(files); err == nil {
				_, err = fmt.Fprintf(out, "%s: %d files; a bill of materials of %d programs and %d modules\n", name, len(files), programs, modules)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func checkBill(files map[string][]byte) (programs, modules int, err error) {
	var b bom
	if files[billName] == nil {
		return 0, 0, fmt.Errorf("there is no %s", billName)
	}
	if err := json.Unmarshal(files[billName], &b); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", billName, err)
	}
	listed := map[string]component{}
	for _, c := range b.Components {
		listed[c.Ref] = c
		if c.Type == "library" {
			modules++
		}
	}
	on := map[string][]string{}
	for _, d := range b.Dependencies {
		on[d.Ref] = d.On
	}
	for file, text := range files {
		if path.Dir(file) != "/usr/bin" {
			continue
		}
		programs++
		ref := "program/" + path.Base(file)
		sum := sha256.Sum256(text)
		if c := listed[ref]; len(c.Hashes) != 1 || c.Hashes[0].Content != hex.EncodeToString(sum[:]) {
			return 0, 0, fmt.Errorf("%s is not the program whose digest the bill has: %v", file, c.Hashes)
		}
		info, err := buildinfo.Read(bytes.NewReader(text))
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", file, err)
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if url := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version); listed[url].PURL != url || !slices.Contains(on[ref], url) {
				return 0, 0, fmt.Errorf("%s holds %s, which the bill does not list for it", file, url)
			}
		}
	}
	if programs == 0 || modules == 0 {
		return 0, 0, fmt.Errorf("%d programs, %d modules", programs, modules)
	}
	return programs, modules, nil
}

// contents returns the files that a package installs.
func contents(name string) (map[string][]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	switch filepath.Ext(name) {
	case ".deb":
		return debFiles(text)
	case ".rpm":
		return rpmFiles(text)
	}
	return nil, errors.New("is neither a deb nor an rpm")
}

// debFiles reads a deb: an archive of ar (deb(5)), of which data.tar.gz is installed.
func debFiles(text []byte) (map[string][]byte, error) {
	rest, ok := bytes.CutPrefix(text, []byte("!<arch>\n"))
	for ok && len(rest) >= 60 {
		name := strings.TrimRight(string(rest[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || size < 0 || size > len(rest)-60 {
			break
		}
		if name == "data.tar.gz" {
			return tarFiles(rest[60 : 60+size])
		}
		rest = rest[min(len(rest), 60+size+size%2):]
	}
	return nil, errors.New("has no data.tar.gz")
}

func tarFiles(text []byte) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if files[path.Join("/", h.Name)], err = io.ReadAll(t); err != nil {
				return nil, err
			}
		}
	}
}

// rpmFiles reads an rpm: a lead of 96 bytes, two headers, of which the first is padded to
// 8 bytes, and an archive of cpio, compressed by gzip (rpm.org, format V4).
func rpmFiles(text []byte) (map[string][]byte, error) {
	at := 96
	for i := range 2 {
		if len(text) < at+16 || !bytes.Equal(text[at:at+3], []byte{0x8e, 0xad, 0xe8}) {
			return nil, errors.New("has no header where one is to be")
		}
		at += 16 + 16*int(binary.BigEndian.Uint32(text[at+8:])) + int(binary.BigEndian.Uint32(text[at+12:]))
		if i == 0 {
			at = (at + 7) &^ 7
		}
	}
	if at > len(text) {
		return nil, errors.New("ends within its headers")
	}
	z, err := gzip.NewReader(bytes.NewReader(text[at:]))
	if err != nil {
		return nil, err
	}
	archive, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	return cpioFiles(archive)
}

// cpioFiles reads an archive in the format newc (cpio(5)): a header of 110 letters, the
// name and the content, each padded to 4 bytes.
func cpioFiles(b []byte) (map[string][]byte, error) {
	const header, regular = 110, 0o100000
	files := map[string][]byte{}
	for at := 0; ; {
		if len(b) < at+header || string(b[at:at+6]) != "070701" {
			return nil, errors.New("the archive ends early")
		}
		field := func(i int) int {
			v, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				return len(b) + 1
			}
			return int(v)
		}
		mode, size, letters := field(1), field(6), field(11)
		content := (at + header + letters + 3) &^ 3
		end := content + size
		if letters < 1 || end > len(b) {
			return nil, errors.New("the archive ends early")
		}
		name := string(b[at+header : at+header+letters-1])
		if name == "TRAILER!!!" {
			return files, nil
		}
		if mode&0o170000 == regular {
			files[path.Join("/", name)] = b[content:end]
		}
		at = (end + 3) &^ 3
	}
}
