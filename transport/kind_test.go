package transport

import (
	"fmt"
	"strings"
	"testing"

	"gswitch/options"
)

// What Register refuses, it refuses with a clear text.
func TestRegisterRefuses(t *testing.T) {
	option := func(name string, unit options.Unit) options.Param {
		p := options.Param{Name: name, Unit: unit, Default: "1", Doc: "an option", Source: "ours"}
		if unit == options.Time {
			p.Default = "1us"
		}
		return p
	}
	scheme := func(code uint8, params ...options.Param) Kind {
		k := *GoBackN
		k.Name, k.Code, k.Params = "scheme", code, params
		return k
	}
	for _, c := range []struct {
		k    Kind
		want string
	}{
		{scheme(IRN.Code), "scheme has code 1; those of other modules are from 128 to 254"},
		{scheme(OwnCodes - 1), "scheme has code 127"},
		{scheme(255), "scheme has code 255"},
		{scheme(OwnCodes, option("n", options.Time)), `option "n" is a time, but irn has one of this name that is a count; take another name`},
		{scheme(OwnCodes, option("own", options.Count), option("own", options.Count)), `option "own" is described twice`},
		{scheme(OwnCodes, option("cap", options.Count)), `option "cap" has the name of a key that all schemes share`},
		{scheme(OwnCodes, option("own", "furlong")), `option "own" has the unit "furlong"`},
	} {
		before := len(kinds)
		said := func() (said string) {
			defer func() { said = fmt.Sprint(recover()) }()
			Register(c.k)
			return
		}()
		if !strings.Contains(said, c.want) || len(kinds) != before {
			t.Errorf("%d, %v: said %q, want %q", c.k.Code, c.k.Params, said, c.want)
			kinds = kinds[:before]
		}
	}
}
