package pipeline

import (
	"reflect"
	"testing"
)

func TestAction(t *testing.T) {
	if s := reflect.TypeFor[Action]().Size(); s > 16 {
		t.Errorf("Action takes %d bytes, want at most 16", s)
	}
	for _, c := range []struct {
		a    Action
		want string
	}{
		{Action{}, "none"},
		{Action{Ops: OpPermit}, "permit"},
		{Action{Ops: OpDrop | OpCount}, "drop, count"},
		{Action{Ops: OpSetClass | OpSetDSCP | OpSetPCP | OpPolice | OpMirror | OpRedirect, Class: 3, DSCP: 46, PCP: 5, Meter: 7, Session: 1, Port: 9},
			"set-class 3, set-dscp 46, set-pcp 5, police 7, mirror 1, redirect 9"},
	} {
		if s := c.a.String(); s != c.want {
			t.Errorf("String = %q, want %q", s, c.want)
		}
	}
	a := Action{Ops: OpDrop | OpCount}
	if !a.Has(OpDrop) || !a.Has(OpDrop|OpCount) || a.Has(OpDrop|OpMirror) {
		t.Error("Has")
	}
}
