package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gswitch/config"
	"gswitch/options"
	"gswitch/transport"
	"gswitch/units"
)

// The words of hosts.transport.mode, and those of daemons, are the schemes that
// there are.
func TestModesAreTheSchemes(t *testing.T) {
	f, _ := reflect.TypeFor[Transport]().FieldByName("Mode")
	h, _ := reflect.TypeFor[config.Host]().FieldByName("Recovery")
	b, _ := reflect.TypeFor[config.Bump]().FieldByName("Recovery")
	all, transparent := transport.Names(), transport.TransparentNames()
	if slices.Equal(all, transparent) {
		t.Errorf("the ablation without selective acknowledgements serves the transparent mode: %v", transparent)
	}
	for _, c := range []struct {
		field reflect.StructField
		names []string
	}{{f, all}, {h, all}, {b, transparent}} {
		words := strings.Split(c.field.Tag.Get("enum"), ",")
		for _, name := range c.names {
			if !slices.Contains(words, name) || len(words) != len(c.names) {
				t.Errorf("%s is not among %q, or those are more than %v", name, words, c.names)
			}
		}
	}
}

func TestRecoveryOptions(t *testing.T) {
	set := func(tr Transport, keys ...any) Transport {
		for i := 0; i < len(keys); i += 2 {
			v := reflect.New(reflect.TypeOf(keys[i+1]))
			v.Elem().Set(reflect.ValueOf(keys[i+1]))
			tr.Set.Set(keys[i].(string), v.Interface())
		}
		return tr
	}
	for _, c := range []struct {
		in   Transport
		want transport.Config
		err  string
	}{
		{in: set(Transport{Mode: "irn"}, "n", 10, "partial_ack", true, "retransmit_delay", units.Duration(2000)), want: transport.Config{Recovery: transport.IRN, N: 10, NackThreshold: 1, PartialAck: true, RetransmitDelay: 2000}},
		{in: Transport{Mode: "irn", Params: Params{"n": "10"}}, want: transport.Config{Recovery: transport.IRN, N: 10, NackThreshold: 1}},
		{in: set(Transport{Mode: "go-back-n"}, "n", 10, "nak_interval", units.Duration(500_000)), want: transport.Config{Recovery: transport.GoBackN, NakInterval: 500_000}},
		{in: set(Transport{Mode: "newreno"}, "fast_retransmit", false), want: transport.Config{Recovery: transport.NewReno, NackThreshold: 3, NoFastRetransmit: true}},
		{in: set(Transport{Mode: "irn", Params: Params{"n": "11"}}, "n", 10), err: "n stands under params and beside it"},
		{in: Transport{Mode: "go-back-n", Params: Params{"n": "11"}}, err: `unknown option "n"`},
	} {
		got, err := c.in.Recovery()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v, want %q", c.in, err, c.err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%+v: %+v, %v; want %+v", c.in, got, err, c.want)
		}
	}
}

// No option of a scheme has the name of a key of hosts.transport that all schemes share:
// that is refused at registration.
func TestOptionsBesideSharedKeys(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Transport]()) {
		key := f.Tag.Get("yaml")
		if key == "" {
			continue // of the options
		}
		k := *transport.GoBackN
		k.Name, k.Code = "shared-"+key, transport.OwnCodes
		k.Params = []options.Param{{Name: key, Unit: options.Number, Default: "1", Doc: "an option", Source: "ours"}}
		said := func() (said string) {
			defer func() { said = fmt.Sprint(recover()) }()
			transport.Register(k)
			return
		}()
		if !strings.Contains(said, "has the name of a key that all schemes share") {
			t.Fatalf("an option %q: %s", key, said)
		}
	}
}
