package frame

import "testing"

func TestLoss(t *testing.T) {
	for r, want := range map[Reason]bool{
		Keep: false, PauseConsumed: false, LocalConsumed: false, // used up, or not dropped
		NoVLANMember: false, SamePort: false, ForeignMAC: false, LocalUnhandled: false, MulticastRouted: false, ReservedMulticast: false, // it had no receiver
		NoRoute: true, QueueTail: true, ACLDrop: true, HeadroomFull: true, PortDown: true, ParseShortIPv4: true,
	} {
		if got := r.Loss(); got != want {
			t.Errorf("%s: loss is %v, want %v", r, got, want)
		}
	}
}
