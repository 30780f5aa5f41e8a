package report

import (
	"io"
	"os"
	"path/filepath"

	"gswitch/fabric/results"
	"gswitch/wholefile"
)

// Figures returns every drawing of the page of results.
func Figures(f *results.File) (all []*figure) {
	for _, s := range newDesign(f.Runs).sections() {
		all = append(all, s.Figures...)
	}
	return all
}

// WriteFigures writes every drawing of the page to a directory, as NAME.svg
// and NAME.pdf, and returns how many there are.
func WriteFigures(dir string, f *results.File) (int, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	figures := Figures(f)
	for _, fig := range figures {
		for ending, write := range map[string]func(io.Writer) error{".svg": fig.SVG, ".pdf": fig.PDF} {
			if err := wholefile.Write(filepath.Join(dir, fig.name+ending), 0o666, write); err != nil {
				return 0, err
			}
		}
	}
	return len(figures), nil
}

// WritePage writes the page of results to a file.
func WritePage(path string, f *results.File) error {
	return wholefile.Write(path, 0o666, func(w io.Writer) error { return HTML(w, f) })
}
