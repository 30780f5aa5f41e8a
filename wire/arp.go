package wire

import "gswitch/frame"

// ARPLen is the length of an ARP packet for IPv4 over Ethernet, in bytes.
const ARPLen = 28

// ARP operations (RFC 826).
const (
	ARPRequest uint16 = 1
	ARPReply   uint16 = 2
)

// ARP is a view of an ARP packet for IPv4 over Ethernet (RFC 826).
type ARP []byte

func (a ARP) Op() uint16             { return be.Uint16(a[6:8]) }
func (a ARP) SenderMAC() MAC         { return MAC(a[8:14]) }
func (a ARP) SenderIP() [4]byte      { return [4]byte(a[14:18]) }
func (a ARP) TargetMAC() MAC         { return MAC(a[18:24]) }
func (a ARP) TargetIP() [4]byte      { return [4]byte(a[24:28]) }
func (a ARP) SetOp(op uint16)        { be.PutUint16(a[6:8], op) }
func (a ARP) SetSenderMAC(m MAC)     { copy(a[8:14], m[:]) }
func (a ARP) SetSenderIP(ip [4]byte) { copy(a[14:18], ip[:]) }
func (a ARP) SetTargetMAC(m MAC)     { copy(a[18:24], m[:]) }
func (a ARP) SetTargetIP(ip [4]byte) { copy(a[24:28], ip[:]) }
func (a ARP) isEthernetIPv4() bool   { return be.Uint64(a[0:8])>>16 == arpEthernetIPv4 }

// Hardware type 1 (Ethernet), protocol 0x0800, address lengths 6 and 4.
const arpEthernetIPv4 = 0x0001_0800_06_04

// ARPFields is an ARP packet for IPv4 over Ethernet.
type ARPFields struct {
	Op        uint16
	SenderMAC MAC
	SenderIP  [4]byte
	TargetMAC MAC
	TargetIP  [4]byte
}

func (f *ARPFields) Encode(b []byte) int {
	if len(b) < ARPLen {
		return 0
	}
	be.PutUint64(b, arpEthernetIPv4<<16|uint64(f.Op))
	a := ARP(b)
	a.SetSenderMAC(f.SenderMAC)
	a.SetSenderIP(f.SenderIP)
	a.SetTargetMAC(f.TargetMAC)
	a.SetTargetIP(f.TargetIP)
	return ARPLen
}

func (f *ARPFields) Decode(b []byte) (int, frame.Reason) {
	if len(b) < ARPLen || !ARP(b).isEthernetIPv4() {
		return 0, frame.ParseShortARP
	}
	a := ARP(b)
	*f = ARPFields{a.Op(), a.SenderMAC(), a.SenderIP(), a.TargetMAC(), a.TargetIP()}
	return ARPLen, frame.Keep
}
