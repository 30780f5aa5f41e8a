package control

import (
	"reflect"
	"testing"

	"gswitch/policy"
)

// Each number of a queue of a policy goes through the API and back, those of other
// queues and fields apart.
func TestPolicyCounts(t *testing.T) {
	var q policy.QueueStats
	v := reflect.ValueOf(&q).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int64:
			f.SetInt(int64(-100 - i))
		case reflect.Uint64:
			f.SetUint(uint64(100 + i))
		}
	}
	m := innerQueues(policy.Inside("live", []policy.QueueStats{q}))[0]
	seen := map[int64]bool{}
	for k := range policy.Counters {
		got := InnerCount(m, &policy.Counters[k].Counter)
		n, whole := got.(int64)
		if u, is := got.(uint64); is {
			n, whole = int64(u), true
		}
		if want := policy.Counters[k].Of(&q); !whole || n != want || n == 0 || seen[n] {
			t.Errorf("%s: %v came through the API as %v", policy.Counters[k].Short(), want, got)
		}
		seen[n] = true
	}
}
