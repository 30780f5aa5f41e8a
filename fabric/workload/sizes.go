package workload

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gswitch/frame"
)

// Sizes is a distribution of message sizes in bytes.
type Sizes interface {
	Draw(r *frame.Rand) uint64
	Mean() float64
}

// Fixed is one size.
type Fixed uint64

// Draw implements Sizes.
func (f Fixed) Draw(*frame.Rand) uint64 { return uint64(f) }

// Mean implements Sizes.
func (f Fixed) Mean() float64 { return float64(f) }

// Bin is a range of sizes, all equally likely, and its share of all flows.
type Bin struct {
	Share    float64
	Min, Max uint64
}

// Bins is a mixture of ranges. IRN's heavy-tailed case (Mittal et al., SIGCOMM
// 2018, section 4.1) is 50 % of 32 B to 1 KB, 35 % of 1 KB to 200 KB and 15 %
// of 200 KB to 3 MB.
type Bins []Bin

// Check says what is wrong with the bins.
func (b Bins) Check() error {
	sum := 0.0
	for i := range b {
		if b[i].Min == 0 || b[i].Max < b[i].Min {
			return fmt.Errorf("bin %d reaches from %d to %d bytes; the least must be 1 or more and not above the most", i, b[i].Min, b[i].Max)
		}
		if b[i].Share <= 0 {
			return fmt.Errorf("bin %d has the share %v; it must be above 0", i, b[i].Share)
		}
		sum += b[i].Share
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("the shares add up to %v, not to 1", sum)
	}
	return nil
}

// Draw implements Sizes.
func (b Bins) Draw(r *frame.Rand) uint64 {
	u, i := r.Float64(), 0
	for i < len(b)-1 && u >= b[i].Share {
		u -= b[i].Share
		i++
	}
	return b[i].Min + uint64(r.Float64()*float64(b[i].Max-b[i].Min+1))
}

// Mean implements Sizes.
func (b Bins) Mean() float64 {
	m := 0.0
	for i := range b {
		m += float64(b[i].Share * (float64(b[i].Min) + float64(b[i].Max)) / 2)
	}
	return m
}

// CDF is a distribution given by points: a share P[i] of the flows has at
// most Bytes[i] bytes, and sizes between two points are equally likely.
type CDF struct {
	Bytes []float64
	P     []float64 // 0 to 1
}

// Draw implements Sizes by the inverse of the distribution.
func (c *CDF) Draw(r *frame.Rand) uint64 { return c.At(r.Float64()) }

// At returns the size below which a share u of the flows lies, at least 1.
func (c *CDF) At(u float64) uint64 {
	i := sort.SearchFloat64s(c.P, u) // first point at or above u
	switch {
	case i == 0:
		return max(1, uint64(c.Bytes[0]))
	case i == len(c.P):
		return max(1, uint64(c.Bytes[i-1]))
	}
	x := float64((u - c.P[i-1]) / (c.P[i] - c.P[i-1]))
	return max(1, uint64(c.Bytes[i-1]+float64(x*(c.Bytes[i]-c.Bytes[i-1]))))
}

// Mean implements Sizes.
func (c *CDF) Mean() float64 {
	m := float64(c.P[0] * c.Bytes[0])
	for i := 1; i < len(c.P); i++ {
		m += float64((c.P[i] - c.P[i-1]) * (c.Bytes[i] + c.Bytes[i-1]) / 2)
	}
	return m
}

// maxPoints bounds a distribution file.
const maxPoints = 100_000

// ParseCDF reads a distribution: lines of a size in bytes and the percentage
// of flows that are not larger, both rising, the last one 100. What follows
// a # is a comment. file is the name that errors carry.
func ParseCDF(file string, data []byte) (*CDF, error) {
	c := new(CDF)
	line := 0
	for text := range bytes.Lines(data) {
		line++
		s, _, _ := strings.Cut(string(text), "#")
		f := strings.Fields(s)
		if len(f) == 0 {
			continue
		}
		bad := func(format string, args ...any) error {
			return fmt.Errorf("%s:%d: %s; a line has a size in bytes and the percentage of flows up to it, such as 1000 60", file, line, fmt.Sprintf(format, args...))
		}
		if len(f) != 2 {
			return nil, bad("has %d numbers", len(f))
		}
		b, err1 := strconv.ParseFloat(f[0], 64)
		p, err2 := strconv.ParseFloat(f[1], 64)
		n := len(c.P)
		switch {
		case err1 != nil || !(b >= 0 && b <= 1<<50):
			return nil, bad("%q is not a size", f[0])
		case err2 != nil || !(p >= 0 && p <= 100):
			return nil, bad("%q is not a percentage", f[1])
		case n > 0 && b < c.Bytes[n-1]:
			return nil, bad("the size %v is below the one before", b)
		case n > 0 && p/100 < c.P[n-1]:
			return nil, bad("the percentage %v is below the one before", p)
		case n == maxPoints:
			return nil, bad("is point %d; at most %d are allowed", n+1, maxPoints)
		}
		c.Bytes, c.P = append(c.Bytes, b), append(c.P, p/100)
	}
	switch n := len(c.P); {
	case n == 0:
		return nil, fmt.Errorf("%s: has no points; write lines of a size in bytes and a percentage", file)
	case c.P[n-1] != 1:
		return nil, fmt.Errorf("%s: ends at %v %%; the last point must be at 100 %%", file, c.P[n-1]*100)
	case c.Bytes[n-1] < 1:
		return nil, fmt.Errorf("%s: all flows are empty", file)
	}
	return c, nil
}

//go:embed data/*.cdf
var tables embed.FS

// names of the distributions that come with this package.
var names = map[string]string{
	"WebSearch":     "websearch",
	"FB_Hadoop":     "fb_hadoop",
	"FbHdp":         "fb_hadoop",
	"FB_Hadoop2015": "fb_hadoop2015",
	"AliStorage":    "ali_storage",
	"GoogleRPC":     "google_rpc",
	"Solar":         "solar",
}

// Names lists the distributions that come with this package.
func Names() []string {
	var v []string
	for n := range names {
		v = append(v, n)
	}
	slices.SortFunc(v, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return v
}

// Named returns a distribution of this package, nil if it has none of that name.
func Named(name string) *CDF {
	file, ok := names[name]
	if !ok {
		return nil
	}
	path := "data/" + file + ".cdf"
	data, err := tables.ReadFile(path)
	if err != nil {
		panic("workload: " + err.Error())
	}
	c, err := ParseCDF(path, data)
	if err != nil {
		panic("workload: " + err.Error())
	}
	return c
}
