package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"gswitch/capture"
	"gswitch/capture/capturetest"
	"gswitch/wire"
)

// A switch between files needs no interface and no privileges, and gives the
// same every time.
func TestOffline(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.pcapng")
	f := capturetest.Create(t, in, "in")
	// To a, to b, to both, and to none.
	a, b, src := wire.MAC{2, 0, 0, 0, 0, 0xa}, wire.MAC{2, 0, 0, 0, 0, 0xb}, wire.MAC{2, 0, 0, 0, 0, 1}
	const each = 500
	for n := range uint64(4 * each) {
		dst := []wire.MAC{a, b, broadcast, {1, 0x80, 0xc2, 0, 0, 0xe}}[n%4]
		f.Add(int64(n)*1000, testFrame(dst, src, -1, n, 60+int(n*7%1400)))
	}
	f.Close()
	once := func(run_ int) (frames [2][][]byte) {
		outA, outB := filepath.Join(dir, fmt.Sprintf("a%d.pcapng", run_)), filepath.Join(dir, fmt.Sprintf("b%d.pcapng", run_))
		d, _ := runConfig(t, fmt.Sprintf(`version: 1
workers: [{poll: sleep}]
switches:
  - name: s1
    ports:
      - {name: in, pcap: {read: %s, fast: true}}
      - {name: a, pcap: {write: %s}}
      - {name: b, pcap: {write: %s}}
    fdb: {static: [{mac: "%s", port: a}, {mac: "%s", port: b}]}
`, in, outA, outB, a, b))
		eventually(t, "the file is through", func() error {
			if p := d.ports(); p["a"].TxFrames != 2*each || p["b"].TxFrames != 2*each {
				return fmt.Errorf("%d and %d", p["a"].TxFrames, p["b"].TxFrames)
			}
			return nil
		})
		if n := d.drops()["reserved-multicast"]; n != each {
			t.Errorf("reserved-multicast: %d, want %d", n, each)
		}
		d.stop()
		for i, name := range []string{outA, outB} {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := capture.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			for {
				_, data, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				frames[i] = append(frames[i], bytes.Clone(data))
			}
		}
		return frames
	}
	first, second := once(1), once(2)
	for i := range first {
		if len(first[i]) != 2*each || len(second[i]) != 2*each {
			t.Fatalf("port %d: %d and %d frames, want %d", i, len(first[i]), len(second[i]), 2*each)
		}
		for k := range first[i] {
			if !bytes.Equal(first[i][k], second[i][k]) {
				t.Fatalf("port %d: frame %d differs between two runs", i, k)
			}
			// a gets 0, 2, 4, 6 ... of every four 0 and 2; b 1 and 2.
			want := uint64(4*(k/2)) + []uint64{0, 2, 1, 2}[2*i+k%2]
			if n, _ := numberOf(first[i][k]); n != want || len(first[i][k]) != 60+int(want*7%1400) {
				t.Fatalf("port %d: frame %d has number %d and %d bytes, want number %d", i, k, n, len(first[i][k]), want)
			}
		}
	}
}
