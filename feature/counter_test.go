package feature

import "testing"

// A counter that was renamed is summed up under both names, and once under each where
// sums are added.
func TestCounterOfTheLastVersion(t *testing.T) {
	c := &Counter{Name: "new_total", Was: "old_total"}
	a, b := map[string]float64{}, map[string]float64{}
	c.Sum(a, 2, nil)
	c.Sum(b, 3, nil)
	for _, key := range c.Keys() {
		c.Add(a, key, b[key])
	}
	if a["new_total"] != 5 || a["old_total"] != 5 {
		t.Errorf("%v", a)
	}
}
