package policy

import (
	"maps"
	"math"
	"slices"
	"strings"

	"gswitch/frame"
)

// Packet is what a policy may know of a packet: a copy, so that what waits is
// compared without its frame.
type Packet struct {
	Arrival    frame.Time // when it was queued
	Value      int64
	Processing int64
	Slack      int64 // ns that it may wait
	Rank       int64
	Ref        frame.Ref
	Size       uint32 // bytes, as Meta.Wire
	Flow       uint32
	Random     uint32
	Src, Dst   uint32 // IPv4 addresses
	ID, Length uint16 // of the IPv4 header
	Sport      uint16
	Dport      uint16
	Inport     uint16
	DSCP, TOS  uint8
	Class, TTL uint8
	Proto      uint8
	Queue      uint8
	Marked     bool // was marked already when it came, or by the policy
	seq        uint32
}

// older reports whether a packet came before another one.
func (p *Packet) older(q *Packet) bool { return int32(p.seq-q.seq) < 0 }

// field is a number that an expression reads.
type field struct {
	name   string
	id     uint8
	lo, hi int64
	bytes  bool // is in the bytes of the frame: a shadow does not see it
}

const (
	most  = 1 << 61 // of times and ranks: two of them can be added
	never = int64(most)
	state = 1 << 53 // of weights and states: they saturate there
)

// Fields of packets.
const (
	pSize = iota
	pArrival
	pQueue
	pFlow
	pSlack
	pPolicy
	pValue
	pProcessing
	pDSCP
	pTOS
	pClass
	pECN
	pProto
	pSport
	pDport
	pTTL
	pInport
	pRank
	pID
	pLength
	pSrc
	pDst
	pRandom
)

var packetFields = map[string]field{
	"size": {"size", pSize, 1, 1 << 20, false}, "arrival": {"arrival", pArrival, 0, most, false}, "queue": {"queue", pQueue, 0, maxQueues - 1, false},
	"flow": {"flow", pFlow, 0, math.MaxUint32, false}, "slack": {"slack", pSlack, 0, most, false}, "policyId": {"policyId", pPolicy, 0, 0, false},
	"value": {"value", pValue, 0, 63, false}, "processing": {"processing", pProcessing, 1, 1, false}, "dscp": {"dscp", pDSCP, 0, 63, false},
	"tos": {"tos", pTOS, 0, 255, true}, "class": {"class", pClass, 0, 7, false}, "ecn": {"ecn", pECN, 0, 3, true}, "proto": {"proto", pProto, 0, 255, false},
	"protocol": {"protocol", pProto, 0, 255, false}, "sport": {"sport", pSport, 0, 65535, false}, "dport": {"dport", pDport, 0, 65535, false},
	"ttl": {"ttl", pTTL, 0, 255, false}, "inport": {"inport", pInport, 0, 65535, false}, "rank": {"rank", pRank, -most, most, false},
	"id": {"id", pID, 0, 65535, true}, "tot_len": {"tot_len", pLength, 0, 65535, true}, "saddr": {"saddr", pSrc, 0, math.MaxUint32, true},
	"daddr": {"daddr", pDst, 0, math.MaxUint32, true}, "random": {"random", pRandom, 0, math.MaxUint32, false},
}

// Fields of queues, and of a buffer or port.
const (
	qSize = iota
	qCurrSize
	qLength
	qID
	qWeightAdm
	qWeightSched
	qAdmState
	qSchedState
	qDropped
	qTotal
	qWait
	bSize
	bCurrSize
	bAdmState
	portRate
)

var queueFields = map[string]field{
	"size": {"size", qSize, 0, 1 << 40, false}, "max_len": {"max_len", qSize, 0, 1 << 40, false}, "currSize": {"currSize", qCurrSize, 0, 1 << 40, false},
	"length": {"length", qLength, 0, 1 << 32, false}, "len": {"len", qLength, 0, 1 << 32, false}, "id": {"id", qID, 0, maxQueues - 1, false},
	"weightAdm": {"weightAdm", qWeightAdm, 0, 1 << 20, false}, "weightSched": {"weightSched", qWeightSched, 0, 1 << 20, false},
	"admState": {"admState", qAdmState, -state, state, false}, "schedState": {"schedState", qSchedState, -state, state, false},
	"dropped": {"dropped", qDropped, 0, 1 << 50, false}, "total": {"total", qTotal, 0, 1 << 50, false}, "wait": {"wait", qWait, 0, most, false},
}

var bufferFields = map[string]field{
	"size": {"size", bSize, 0, 1 << 40, false}, "currSize": {"currSize", bCurrSize, 0, 1 << 40, false}, "admState": {"admState", bAdmState, -state, state, false},
}

var portFields = map[string]field{"rate": {"rate", portRate, 0, 1 << 50, false}}

// modifiable are what an action may write.
var modifiable = map[string]uint8{"weightAdm": qWeightAdm, "weightSched": qWeightSched, "admState": qAdmState, "schedState": qSchedState}

// lookup finds a field by its name; the Linux dialect writes some in capitals.
func lookup(in map[string]field, name string) (field, bool) {
	if f, ok := in[name]; ok {
		return f, true
	}
	f, ok := in[strings.ToLower(name)]
	return f, ok
}

func fieldNames(in map[string]field) []string { return slices.Sorted(maps.Keys(in)) }

func (p *Packet) field(id uint8) int64 {
	switch id {
	case pSize:
		return int64(p.Size)
	case pArrival:
		return int64(p.Arrival)
	case pQueue:
		return int64(p.Queue)
	case pFlow:
		return int64(p.Flow)
	case pSlack:
		return p.Slack
	case pValue:
		return p.Value
	case pProcessing:
		return p.Processing
	case pDSCP:
		return int64(p.DSCP)
	case pTOS:
		return int64(p.TOS)
	case pClass:
		return int64(p.Class)
	case pECN:
		return int64(p.TOS & 3)
	case pProto:
		return int64(p.Proto)
	case pSport:
		return int64(p.Sport)
	case pDport:
		return int64(p.Dport)
	case pTTL:
		return int64(p.TTL)
	case pInport:
		return int64(p.Inport)
	case pRank:
		return p.Rank
	case pID:
		return int64(p.ID)
	case pLength:
		return int64(p.Length)
	case pSrc:
		return int64(p.Src)
	case pDst:
		return int64(p.Dst)
	case pRandom:
		return int64(p.Random)
	}
	return 0
}
