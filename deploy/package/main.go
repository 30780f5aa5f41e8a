// Command package writes what packages hold besides the programs: manual pages
// and completions, made of the commands themselves, the licences of the modules
// that the programs contain, and a bill of materials.
//
//	go run ./deploy/package -version v1.2.3 -out bin/package bin/gswitch bin/ghost bin/gfabric bin/gcollect
//
// Of packages that were made it checks that the bill is in them, and is that of their
// programs:
//
//	go run ./deploy/package -check bin/packages/*
package main

import (
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"gswitch/cli/gcollect"
	"gswitch/cli/gfabric"
	"gswitch/cli/ghost"
	"gswitch/cli/gswitch"
)

func main() {
	version := flag.String("version", "unknown", "version that the manual pages name")
	out := flag.String("out", "bin/package", "directory to write to")
	made := flag.Bool("check", false, "check packages that were made, by name")
	flag.Parse()
	if *made {
		if err := check(flag.Args(), os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := write(*out, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(out, version string, programs []string) error {
	for _, root := range []*cobra.Command{gswitch.Command(version), ghost.Command(version), gfabric.Command(version), gcollect.Command(version)} {
		if err := errors.Join(manual(filepath.Join(out, "man1"), root, version), completions(filepath.Join(out, "completions"), root)); err != nil {
			return err
		}
	}
	text, err := licences(programs)
	if err != nil {
		return err
	}
	bill, err := materials(version, programs)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(out, "THIRD-PARTY"), text, 0o644), os.WriteFile(filepath.Join(out, "bom.cdx.json"), bill, 0o644))
}

// manual writes a page for each verb, compressed as distributions want them.
// The date in them is that of SOURCE_DATE_EPOCH, so that a build repeats.
func manual(dir string, root *cobra.Command, version string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	var day time.Time
	if s := os.Getenv("SOURCE_DATE_EPOCH"); s != "" {
		var unix int64
		if _, err := fmt.Sscan(s, &unix); err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH=%s is no number of seconds", s)
		}
		day = time.Unix(unix, 0).UTC()
	} else {
		day = time.Now().UTC()
	}
	plain, err := os.MkdirTemp("", "man")
	if err != nil {
		return err
	}
	defer os.RemoveAll(plain)
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "gswitch " + version, Manual: "gswitch", Date: &day}, plain); err != nil {
		return err
	}
	pages, err := os.ReadDir(plain)
	if err != nil {
		return err
	}
	for _, p := range pages {
		text, err := os.ReadFile(filepath.Join(plain, p.Name()))
		if err != nil {
			return err
		}
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if _, err := z.Write(text); err != nil {
			return err
		}
		if err := errors.Join(z.Close(), os.WriteFile(filepath.Join(dir, p.Name()+".gz"), b.Bytes(), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// completions writes what bash, zsh and fish load.
func completions(dir string, root *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := filepath.Join(dir, root.Name())
	return errors.Join(root.GenBashCompletionFileV2(name+".bash", true), root.GenZshCompletionFile(name+".zsh"), root.GenFishCompletionFile(name+".fish", true))
}

// licences returns the licence texts of the modules that the programs contain.
func licences(programs []string) ([]byte, error) {
	modules := map[string]bool{}
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p)
		if err != nil {
			return nil, err
		}
		for _, m := range info.Deps {
			modules[m.Path] = true
		}
	}
	var b bytes.Buffer
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
		if err != nil {
			return nil, fmt.Errorf("go list -m %s: %w", path, err)
		}
		found := false
		for _, pattern := range []string{"LICEN*", "Licen*", "licen*", "NOTICE*", "COPYING*"} {
			files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), pattern))
			if err != nil {
				return nil, err
			}
			for i := 0; i < len(files); i++ { // of a folder of licences each
				f := files[i]
				if info, err := os.Stat(f); err == nil && info.IsDir() {
					more, _ := filepath.Glob(filepath.Join(f, "*"))
					files = append(files, more...)
					continue
				}
				text, err := os.ReadFile(f)
				if err != nil {
					return nil, err
				}
				found = true
				fmt.Fprintf(&b, "==== %s: %s\n\n%s\n\n", path, filepath.Base(f), bytes.TrimSpace(text))
			}
		}
		if !found {
			return nil, fmt.Errorf("module %s has no licence", path)
		}
	}
	return b.Bytes(), nil
}
