package main

import "testing"

func TestParseBenchmark(t *testing.T) {
	name, v, ok := parseBenchmark("BenchmarkLPM/100k-2   \t 1000\t  1234 ns/op\t 19.3 ns/frame\t 0 B/op\t 0 allocs/op")
	if !ok || name != "LPM/100k-2" || v["ns/frame"] != "19.3" || v["allocs/op"] != "0" {
		t.Errorf("got %q %v %v", name, v, ok)
	}
	for _, line := range []string{"", "PASS", "BenchmarkX", "ok  \tpkg\t0.1s", "BenchmarkX-2 100"} {
		if _, _, ok := parseBenchmark(line); ok {
			t.Errorf("%q was taken for a result", line)
		}
	}
}
