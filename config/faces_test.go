package config

import (
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
)

// Ports face hosts unless they cannot: a storm of pauses is ended there, and
// what only switches send is not taken from them.
func TestFaces(t *testing.T) {
	c, err := Parse("x.yaml", []byte(`version: 1
switches:
  - name: s1
    pfc: {classes: [3]}
    ports:
      - {interface: h1, rate: 10Gbps}
      - {interface: s2, faces: switch, rate: 10Gbps}
      - {name: w, wire: w, rate: 10Gbps}
      - {interface: h2, watchdog: {action: off}, rate: 10Gbps}
      - {interface: h3, watchdog: {detect: 50ms, action: forward}, rate: 10Gbps}
  - name: s2
    ports:
      - {wire: w}
      - {interface: h4}
`))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Resolved()
	usual := pfc.Watchdog{Detect: 200 * frame.Millisecond, Restore: 400 * frame.Millisecond, Action: pfc.Drop}
	for i, want := range []struct {
		edge bool
		dog  pfc.Watchdog
	}{{true, usual}, {false, pfc.Watchdog{}}, {false, pfc.Watchdog{}}, {true, pfc.Watchdog{}}, {true, pfc.Watchdog{Detect: 50 * frame.Millisecond, Restore: 400 * frame.Millisecond, Action: pfc.Forward}}} {
		v := r.Switches[0].VSwitch(nil)
		if v.Ports[i].Edge != want.edge || v.Watchdog(uint16(i)) != want.dog {
			t.Errorf("port %s: edge %v, %+v", v.Ports[i].Name, v.Ports[i].Edge, v.Watchdog(uint16(i)))
		}
	}
	if v := r.Switches[1].VSwitch(nil); v.Ports[0].Edge || !v.Ports[1].Edge || v.Watchdog(1) != (pfc.Watchdog{}) || !v.ShareOwn {
		t.Errorf("without flow control: %+v", v.Ports)
	}
	// What a document says of all ports holds.
	c.Switches[0].PFC.Watchdog = &Watchdog{Action: "alert"}
	if v := c.Resolved().Switches[0].VSwitch(nil); v.Watchdog(0).Action != pfc.Alert {
		t.Errorf("in place of pfc.watchdog: %+v", v.Watchdog(0))
	}
}

// A period whose notices are as much as the link carries is refused, with one
// that is not.
func TestPeriodsLeaveRoomForData(t *testing.T) {
	doc := func(rocc string) error {
		_, err := Parse("x.yaml", []byte("version: 1\nswitches:\n  - name: s1\n    qos: {fair: {rocc: {queues: [0], "+rocc+"}}}\n    ports:\n      - {interface: h1, rate: 60Mbps, qos: fair}\n"))
		return err
	}
	err := doc("period: 5ms")
	if err == nil || !strings.Contains(err.Error(), "in which the port sends 37500B: make the period at least ") {
		t.Fatalf("5 ms at 60 Mb/s: %v", err)
	}
	_, least, _ := strings.Cut(err.Error(), "at least ")
	least, _, _ = strings.Cut(least, ",")
	for _, good := range []string{"period: " + least, "", "period: 5ms, per_tick: 150"} {
		if err := doc(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}
