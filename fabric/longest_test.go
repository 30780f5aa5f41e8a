package fabric

import "testing"

func TestLongestPath(t *testing.T) {
	for expr, want := range map[string]int{"star(2)": 1, "dumbbell(2, 2)": 2, "line(8)": 8, "leaf-spine(2, 4, 2)": 3, "fat-tree(4)": 5, "ring(5)": 3, "line(1, 2)": 1} {
		if got := build(t, expr, Spec{}).LongestPath(); got != want {
			t.Errorf("%s: %d switches, want %d", expr, got, want)
		}
	}
}
