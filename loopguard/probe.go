package loopguard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"gswitch/frame"
	"gswitch/wire"
)

// EtherType is that of probes, of Ethernet's Configuration Testing Protocol (Ethernet V2.0 section 8). They are replies
// of it, which stations take and do not answer; a text names the owner.
const EtherType uint16 = 0x9000

// Group is the address of probes, a locally administered one that bridges flood: a loop may go through bridges that
// do not implement this.
var Group = wire.MAC{0x03, 0x67, 0x73, 0x77, 0x00, 0x01}

// The body of a probe after the EtherType: skip count 2 bytes, function 2 (reply), receipt number 2, text 4, switch 8,
// port 2, instant 8, tag 16.
const (
	head    = "\x00\x00\x01\x00\x00\x00gsw1"
	idAt    = len(head)
	portAt  = idAt + 8
	sentAt  = portAt + 2
	tagAt   = sentAt + 8
	bodyLen = tagAt + tagLen
	tagLen  = 16
)

// Key makes and checks the probes of one switch.
type Key struct {
	secret [sha256.Size]byte
	id     uint64 // of the switch in clear text, so that those of others cost no hash
}

// NewKey returns the key of a switch: another one where secret or mac differ. Who does not know the secret makes no
// probe of this switch.
func NewKey(secret uint64, mac wire.MAC) Key {
	seed := binary.BigEndian.AppendUint64([]byte("loops"), secret)
	k := Key{secret: sha256.Sum256(append(seed, mac[:]...))}
	of := sha256.Sum256(k.secret[:])
	k.id = binary.BigEndian.Uint64(of[:])
	return k
}

// Phase is a number that depends on the key, by which switches that begin together send apart.
func (k *Key) Phase() uint8 { return uint8(k.id) }

// Probe is the contents of a probe.
type Probe struct {
	Port uint16     // by which it left
	Sent frame.Time // when, on the clock of the switch
}

// Encode writes the frame of a probe, padded to the least length, and returns its length in bytes: 0 if b has no room
// for it.
func (k *Key) Encode(b []byte, src wire.MAC, p Probe) int {
	ethernet := wire.EthernetFields{Dst: Group, Src: src, EtherType: EtherType}
	if len(b) < wire.MinFrame || ethernet.Encode(b) == 0 {
		return 0
	}
	body := b[wire.EthernetLen:wire.MinFrame]
	clear(body)
	copy(body, head)
	be := binary.BigEndian
	be.PutUint64(body[idAt:], k.id)
	be.PutUint16(body[portAt:], p.Port)
	be.PutUint64(body[sentAt:], uint64(p.Sent))
	copy(body[tagAt:], k.tag(body))
	return wire.MinFrame
}

// Claims reports whether the body of a frame, after its EtherType, says that it is a probe of this switch. Whether it
// is one, Decode reports.
func (k *Key) Claims(body []byte) bool {
	return len(body) >= bodyLen && string(body[:idAt]) == head && binary.BigEndian.Uint64(body[idAt:]) == k.id
}

// Decode reads the body of a frame that Claims to be a probe, and returns false if the switch has not made it.
func (k *Key) Decode(body []byte) (p Probe, ok bool) {
	if !k.Claims(body) || !hmac.Equal(k.tag(body), body[tagAt:bodyLen]) {
		return p, false
	}
	be := binary.BigEndian
	return Probe{Port: be.Uint16(body[portAt:]), Sent: frame.Time(be.Uint64(body[sentAt:]))}, true
}

// tag is HMAC-SHA-256 of what stands before it, cut to 128 bits (RFC 2104 section 5).
func (k *Key) tag(body []byte) []byte {
	h := hmac.New(sha256.New, k.secret[:])
	h.Write(body[:tagAt])
	return h.Sum(nil)[:tagLen]
}
