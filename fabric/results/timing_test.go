package results

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// Keys of the last version are written, and read where those of this one are missing.
func TestTimingOfTheLastVersion(t *testing.T) {
	want := Timing{Scale: 10, Remedies: []string{"more workers"}, StoppedShare: 0.25, StoppedMax: 3, LateP99: 1e-6}
	b, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"remedies":["more workers"]`, `"advice":["more workers"]`, `"stopped_share":0.25`, `"stood_share":0.25`, `"stopped_max_real_seconds":3`, `"stood_max_real_seconds":3`} {
		if !strings.Contains(string(b), key) {
			t.Errorf("%s is missing in %s", key, b)
		}
	}
	old := strings.NewReplacer(`"remedies":["more workers"],`, "", `"stopped_share":0.25,`, "", `"stopped_max_real_seconds":3,`, "").Replace(string(b))
	for _, text := range []string{string(b), old} {
		var got Timing
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s reads as %+v", text, got)
		}
	}
}
