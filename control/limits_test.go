package control

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/vswitch"
)

// What is bounded is listed with what is in use of it, and with what was refused.
func TestLimits(t *testing.T) {
	d, address := listening(t, config.Control{}, patient)
	socket := d.Config().Control.Socket
	client := Dial(socket)
	ask := func(r *api.ListRequest) map[string]*api.Limit {
		t.Helper()
		m, err := client.ListLimits(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		v := map[string]*api.Limit{}
		for _, l := range m.Limits {
			v[strings.Trim(l.Switch+"/"+l.Port+" "+l.Name, "/ ")] = l
		}
		return v
	}
	// The TCP address has all the connections that it may have, and one more asks.
	for range maxConnections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, c)
	c.Close()
	d.units[0].sw.FDB().Learn(1, 0x020000000001, 0)
	v := ask(&api.ListRequest{})
	sw := d.Config().Switches[0].Name
	port := d.Snapshot().Switches[0].Ports[0].Config.Name
	for name, want := range map[string][3]uint64{
		"connections at " + address:  {maxConnections, maxConnections, 1},
		"requests under way":         {1, 2 * maxConnections * maxRequests, 0},
		"captures":                   {0, dataplane.MaxCaptures, 0},
		sw + "/ forwarding database": {1, 65536, 0},
		sw + "/ neighbours":          {0, vswitch.MaxNeighbors, 0},
		sw + "/" + port + " neighbours on account of the port":        {0, vswitch.NeighborsPerPort, 0},
		sw + "/" + port + " forwarding database, learned at the port": {1, 32768, 0},
	} {
		if l := v[name]; l == nil || l.Used != want[0] || l.Limit != want[1] || l.Refused != want[2] {
			t.Errorf("%s: %v, want %v", name, l, want)
		}
	}
	for _, name := range []string{"resident", "heap", "open files"} {
		if l := v[name]; l == nil || l.Used == 0 {
			t.Errorf("%s: %v", name, l)
		}
	}
	if l := v["packet memory"]; l.Limit < l.Used {
		t.Errorf("packet memory: %v", l)
	}
	if one := ask(&api.ListRequest{Switch: sw, Port: port}); len(one) != 4 {
		t.Errorf("of one port: %v", one)
	}
}
