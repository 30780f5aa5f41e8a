package hostnic

import (
	"fmt"

	"gswitch/wire"
)

// FitMTU refuses a payload whose packets, with other bytes besides it and its padding,
// are longer than an MTU, and says what fits. name is the setting of the payload.
func FitMTU(name string, payload, other int, at string, mtu int) error {
	need := payload + int(wire.RoCEPad(uint32(payload))) + other
	if need <= mtu {
		return nil
	}
	lower := ""
	if most := (mtu - other) &^ 3; most > 0 {
		lower = fmt.Sprintf("lower %s to %d, or ", name, most)
	}
	return fmt.Errorf("a %s of %d bytes makes packets of %d with their headers, and the MTU of %s is %d: %sraise the MTU to %d", name, payload, need, at, mtu, lower, need)
}
