// Summary reads the output of go test -json, prints one line a package and
// the whole output of what failed, and ends with a count. With GSWITCH_CI=1 a
// skipped test is a failure: what CI did not run, it did not prove. With -skipped the
// tests that skipped, or a part of which did, are written to a file, a package and a
// name a line, so that they can be run again where nothing is missing.
//
//	go test -json ./... | GSWITCH_CI=1 go run .ci/summary.go
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is what go test -json prints a line (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output
	Test       string
	Output     string
}

func main() {
	skips := flag.String("skipped", "", "write the tests that skipped to this file")
	flag.Parse()
	strict := os.Getenv("GSWITCH_CI") != ""
	out := map[string]*strings.Builder{} // output of what has not ended yet, by package and test
	at := func(key string) *strings.Builder {
		if out[key] == nil {
			out[key] = &strings.Builder{}
		}
		return out[key]
	}
	var passed, failed, skipped, brokenPackages int
	again := map[string]bool{}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Printf("%s", line) // go itself speaking, such as a build that failed before any test
				continue
			}
			key := e.Package + " " + e.Test
			switch e.Action {
			case "build-output":
				fmt.Print(e.Output)
			case "output":
				switch {
				case e.Test != "":
					at(key).WriteString(e.Output)
				case summaryLine(e.Output):
					fmt.Print(e.Output)
				case e.Output != "PASS\n" && e.Output != "FAIL\n":
					at(key).WriteString(e.Output)
				}
			case "pass", "fail", "skip":
				if e.Test == "" {
					if e.Action == "fail" {
						brokenPackages++
						fmt.Print(at(key))
					}
					break
				}
				switch e.Action {
				case "pass":
					passed++
				case "fail":
					failed++
					fmt.Printf("--- failed: %s\n%s", key, at(key))
				case "skip":
					skipped++
					top, _, _ := strings.Cut(e.Test, "/")
					again[e.Package+" "+top] = true
					if strict {
						fmt.Printf("--- skipped: %s\n%s", key, at(key))
					}
				}
				delete(out, key)
			}
		}
		if err != nil {
			break
		}
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if *skips != "" {
		lines := strings.Join(slices.Sorted(maps.Keys(again)), "\n") + "\n"
		if err := os.WriteFile(*skips, []byte(lines), 0o644); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	switch {
	case failed > 0 || brokenPackages > 0:
		fmt.Printf("FAIL: %d tests in %d packages\n", failed, brokenPackages)
		os.Exit(1)
	case strict && skipped > 0:
		fmt.Println("FAIL: tests were skipped; in CI nothing may skip")
		os.Exit(1)
	case passed == 0:
		fmt.Println("FAIL: no test ran")
		os.Exit(1)
	}
}

// summaryLine reports whether go test prints s as the closing line of a package.
func summaryLine(s string) bool {
	return strings.HasPrefix(s, "ok  \t") || strings.HasPrefix(s, "FAIL\t") || strings.HasPrefix(s, "panic:")
}
