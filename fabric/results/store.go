package results

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gswitch/wholefile"
)

const (
	jsonName = "results.json"
	flowName = "flows.csv"
	seriesIn = "series"
	cdfIn    = "cdf"
)

// saved are the files and directories that Save writes, besides the files of parts, in the
// order in which they take their place.
var saved = []string{jsonName, flowName, "values.csv", "values.parquet", "summary.csv", "summary.parquet", seriesIn, cdfIn}

// Saves says whether Save writes a file of a directory of results.
func Saves(path string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	return slices.Contains(saved, first) || slices.ContainsFunc(parts, func(p part) bool { return p.kind == nil && p.key == first })
}

// Save writes f to dir, which it makes if need be, in place of what an earlier
// Save wrote there. Everything is written beside first and renamed at the end,
// results.json first: a reader never sees half of a file.
func Save(dir string, f *File) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := refuseForeign(dir); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(dir, ".saving-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := writeAll(tmp, f); err != nil {
		return err
	}
	names := saved
	for _, p := range parts {
		if p.kind == nil {
			names = append(slices.Clip(names), p.key)
		}
	}
	for _, name := range names {
		if err := replace(filepath.Join(tmp, name), filepath.Join(dir, name), tmp); err != nil {
			return err
		}
	}
	return nil
}

// refuseForeign makes sure that Save replaces no folders of someone else.
func refuseForeign(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, jsonName)); err == nil {
		return nil
	}
	for _, name := range []string{seriesIn, cdfIn} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s: is there without a %s, so it is not from an earlier run; give another directory", filepath.Join(dir, name), jsonName)
		}
	}
	return nil
}

// replace renames from, if it is there, to to. A folder that is in the way
// goes to trash first, whether or not something takes its place.
func replace(from, to, trash string) error {
	if info, err := os.Lstat(to); err == nil && info.IsDir() {
		if err := os.Rename(to, filepath.Join(trash, "old-"+filepath.Base(to))); err != nil {
			return err
		}
	}
	err := os.Rename(from, to)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// No series, no distributions, no part: those of an earlier run go, too.
	if err := os.Remove(to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func writeAll(dir string, f *File) error {
	if err := writeFile(filepath.Join(dir, jsonName), func(w io.Writer) error { return Encode(w, f) }); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, flowName), func(w io.Writer) error { return EncodeFlows(w, f.Runs) }); err != nil {
		return err
	}
	if err := writeTidy(dir, "values", values(f.Runs)); err != nil {
		return err
	}
	if err := writeTidy(dir, "summary", summary(f.Runs)); err != nil {
		return err
	}
	for _, p := range parts {
		if p.kind != nil || !p.has(f.Runs) {
			continue
		}
		if err := writeFile(filepath.Join(dir, p.key), func(w io.Writer) error { return p.write(w, f.Runs) }); err != nil {
			return err
		}
	}
	names, series, cdfs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range f.Runs {
		r := &f.Runs[i]
		prefix := unused(names, FileName(r.Name))
		for _, s := range groupSeries(r.Series) {
			path := filepath.Join(dir, seriesIn, unused(series, prefix+"-"+FileName(s[0].Name))+".csv")
			if err := writeFile(path, func(w io.Writer) error { return encodeSeries(w, s) }); err != nil {
				return err
			}
		}
		for k := range r.CDFs {
			path := filepath.Join(dir, cdfIn, unused(cdfs, prefix+"-"+FileName(r.CDFs[k].Name))+".csv")
			if err := writeFile(path, func(w io.Writer) error { return encodeCDF(w, &r.CDFs[k]) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeTidy writes a table twice, as CSV and as Parquet.
func writeTidy(dir, name string, t *tidy) error {
	if err := writeFile(filepath.Join(dir, name+".csv"), t.csv); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, name+".parquet"), func(w io.Writer) error { return t.parquet(w, name) })
}

// groupSeries puts series of one name together, in the order of their first.
func groupSeries(all []Series) [][]Series {
	var groups [][]Series
	at := map[string]int{}
	for _, s := range all {
		i, ok := at[s.Name]
		if !ok {
			i = len(groups)
			at[s.Name] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

// FileName makes of a name such as "dcqcn, load 50%" one that any file system
// takes: "dcqcn-load-50".
func FileName(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '+', r == '.':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 80 {
			break
		}
	}
	if s := strings.Trim(b.String(), "-."); s != "" {
		return s
	}
	return "unnamed"
}

// unused returns name, with a number behind it if it was given out before.
func unused(used map[string]bool, name string) string {
	free := name
	for i := 2; used[free]; i++ {
		free = name + "-" + strconv.Itoa(i)
	}
	used[free] = true
	return free
}

func writeFile(path string, fill func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	return errors.Join(fill(w), w.Flush(), file.Close())
}

// maxResults is the most bytes of a results.json.
const maxResults = 1 << 30

// Load reads what Save wrote; path is the directory or its results.json. The
// flows are read if flows.csv is there.
func Load(path string) (*File, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		path = filepath.Join(path, jsonName)
	}
	b, err := wholefile.ReadPlain(path, maxResults)
	if err != nil {
		return nil, err
	}
	f, err := Decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	path = filepath.Join(filepath.Dir(path), flowName)
	flows, err := wholefile.OpenPlain(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	defer flows.Close()
	if err := DecodeFlows(bufio.NewReader(flows), f.Runs); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// LoadAll reads all that Save wrote to a directory, the files of parts included: what is
// not read is lost when the directory is written again.
func LoadAll(dir string) (*File, error) {
	f, err := Load(dir)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if p.kind != nil {
			continue
		}
		path := filepath.Join(dir, p.key)
		r, err := wholefile.OpenPlain(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // no run has it
		}
		if err != nil {
			return nil, err
		}
		err = p.read(bufio.NewReader(r), f.Runs)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return f, nil
}
