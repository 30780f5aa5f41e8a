package policy

import (
	"os"
	"regexp"
	"testing"

	"gswitch/frame"
)

var recipe = regexp.MustCompile("(?s)### (\\d+)\\. ([^\n]*)\n.*?```openqueue\n(.*?)```")

// Each policy of the cookbook does what its title says: claims are tried on what its
// queues counted after an overload, by the number of the recipe.
func TestCookbook(t *testing.T) {
	page, err := os.ReadFile("../docs/POLICIES.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := recipe.FindAllStringSubmatch(string(page), -1)
	if len(recipes) != 12 {
		t.Fatalf("the cookbook has %d recipes", len(recipes))
	}
	for _, r := range recipes {
		number, title, text := r[1], r[2], r[3]
		p := compile(t, text)
		if len(p.Warnings) > 0 {
			t.Errorf("%s: %v", title, p.Warnings)
		}
		o := overload(p)
		total := QueueStats{}
		for _, s := range o.Stats() {
			total.Refused += s.Refused
			total.PushedOut += s.PushedOut
			total.Late += s.Late
			total.Marked += s.Marked
		}
		ok := o.sent > 1000 && o.sent+o.lost+o.Len() == o.came
		s := o.Stats()
		switch number {
		case "1":
			ok = ok && total.Refused > 1000 && total.PushedOut == 0 && !o.overtook
		case "2":
			ok = ok && total.PushedOut > 1000 && !o.overtook && o.least > 1
		case "3":
			ok = ok && total.PushedOut > 1000 && o.overtook && o.wait[7] < o.wait[3]/10
		case "4":
			ok = ok && o.small < o.large/10
		case "5":
			ok = ok && total.Refused > 1000 && s[0].MaxPackets < 200
		case "6":
			ok = ok && total.Marked > 1000
		case "7":
			low, high := s[0].SentBytes, s[0].SentBytes
			for _, q := range s {
				low, high = min(low, q.SentBytes), max(high, q.SentBytes)
			}
			ok = ok && float64(high)/float64(low) < 1.05
		case "8":
			share := float64(s[1].SentBytes) / float64(s[2].SentBytes) // gold has all that it asks for
			ok = ok && s[0].Refused == 0 && share > 1.95 && share < 2.05
		case "9":
			ok = ok && total.Late > 1000 && o.longest <= 40*frame.Millisecond
		case "10":
			ok = ok && total.Refused+total.PushedOut > 1000 && s[0].Bytes < 128<<10
		case "11":
			ok = ok && o.wait[7] < o.wait[0]/10 && s[1].PushedOut > 100
		case "12":
			ok = o.sent > 20 && o.bytes*8 < 11e6*3/10 && o.bytes*8 > 9e6*3/10 && o.large == 0 && o.small < frame.Millisecond
		}
		if !ok {
			t.Errorf("%s. %s: %d came, %d sent, %d lost, overtook %v, least value %d, waits %v, small %v, large %v, longest %v\n%+v",
				number, title, o.came, o.sent, o.lost, o.overtook, o.least, o.wait, o.small, o.large, o.longest, s)
		}
	}
}

// outcome is what became of an overload.
type outcome struct {
	*Link
	came, sent, lost int
	bytes            uint64
	overtook         bool
	least            int64         // mean value of what was sent, in units of the mean of what came
	wait             [8]frame.Time // mean, by class
	small, large     frame.Time    // mean wait of packets below 300 bytes and above 1200
	longest          frame.Time
}

// overload offers 1.5 times what a link of 100 Mb/s carries, for 0.3 s.
func overload(p *Program) *outcome {
	o := &outcome{Link: p.NewLink(1, 100e6, 0)}
	var n [8]frame.Time
	var sizes [2]frame.Time
	var sum [2]frame.Time
	last := uint32(0)
	value, all := int64(0), int64(0)
	o.Sent = func(at frame.Time, p *Packet) {
		w := at - p.Arrival
		o.sent++
		o.bytes += uint64(p.Size)
		o.overtook = o.overtook || p.seq < last
		last = max(last, p.seq)
		n[p.Class]++
		o.wait[p.Class] += w
		o.longest = max(o.longest, w)
		value += int64(p.DSCP)
		k := -1
		if p.Size < 300 {
			k = 0
		} else if p.Size > 1200 {
			k = 1
		}
		if k >= 0 {
			sizes[k]++
			sum[k] += w
		}
	}
	o.Lost = func(frame.Time, *Packet) { o.lost++ }
	rng := frame.NewRand(2)
	for now := frame.Time(0); now < 300*frame.Millisecond; now += frame.Time(rng.Uint32n(83_000)) {
		d := uint8(rng.Uint32n(64))
		o.came++
		all += int64(d)
		o.Come(now, Packet{Size: 64 + rng.Uint32n(1437), DSCP: d, Class: d / 8, Flow: rng.Uint32n(1000), Sport: uint16(rng.Uint32n(9))})
	}
	for c := range n {
		o.wait[c] /= max(n[c], 1)
	}
	o.small, o.large = sum[0]/max(sizes[0], 1), sum[1]/max(sizes[1], 1)
	if value*int64(o.came)*10 > all*int64(o.sent)*12 {
		o.least = 2
	}
	return o
}
