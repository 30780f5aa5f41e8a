package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// RequestOptions describe a latency test.
type RequestOptions struct {
	Address  string
	Time     time.Duration // how long to ask
	Interval time.Duration // time between requests; 0 = as soon as the last is answered
	Request  int           // bytes; 0 = 64
	Response int           // bytes; 0 = 64
	DSCP     int           // code point of what is sent, 0 to 63
}

// maxSamples bounds the memory of a test: the first so many are kept.
const maxSamples = 4 << 20

// Latency sums up round-trip times, in microseconds.
type Latency struct {
	Address string  `json:"address"`
	Count   int     `json:"count"`
	Lost    int     `json:"lost"`
	Min     float64 `json:"min_us"`
	Mean    float64 `json:"mean_us"`
	P50     float64 `json:"p50_us"`
	P90     float64 `json:"p90_us"`
	P99     float64 `json:"p99_us"`
	P999    float64 `json:"p999_us"`
	Max     float64 `json:"max_us"`
}

// NewLatency sums up samples, which it sorts.
func NewLatency(address string, samples []time.Duration, lost int) *Latency {
	l := &Latency{Address: address, Count: len(samples), Lost: lost}
	if len(samples) == 0 {
		return l
	}
	slices.Sort(samples)
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	var sum time.Duration
	for _, d := range samples {
		sum += d
	}
	// Nearest rank: the least sample that p of all samples do not exceed.
	rank := func(p float64) float64 {
		i := int(p*float64(len(samples))+0.999999) - 1
		return us(samples[min(max(i, 0), len(samples)-1)])
	}
	l.Min, l.Max, l.Mean = us(samples[0]), us(samples[len(samples)-1]), us(sum)/float64(len(samples))
	l.P50, l.P90, l.P99, l.P999 = rank(0.50), rank(0.90), rank(0.99), rank(0.999)
	return l
}

// Requests asks over one TCP connection, one request at a time.
func Requests(ctx context.Context, o RequestOptions) (*Latency, error) {
	if o.Time <= 0 {
		return nil, errors.New("a test of requests needs a time")
	}
	h := header{kindRequest, uint32(o.Request), uint32(o.Response)}
	if o.Request == 0 {
		h.request = 64
	}
	if o.Response == 0 {
		h.answer = 64
	}
	if _, err := decodeHeader(h.encode()); err != nil {
		return nil, err
	}
	c, err := dial(ctx, o.Address, o.DSCP, h)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()

	out, in := make([]byte, h.request), make([]byte, h.answer)
	var samples []time.Duration
	end := time.Now().Add(o.Time)
	for len(samples) < maxSamples {
		t := time.Now()
		if !t.Before(end) {
			break
		}
		c.SetDeadline(t.Add(idle))
		if _, err := c.Write(out); err != nil {
			return NewLatency(o.Address, samples, 1), fmt.Errorf("%s: %w", o.Address, err)
		}
		if _, err := io.ReadFull(c, in); err != nil {
			return NewLatency(o.Address, samples, 1), fmt.Errorf("%s: %w", o.Address, err)
		}
		took := time.Since(t)
		samples = append(samples, took)
		if rest := o.Interval - took; rest > 0 {
			select {
			case <-time.After(rest):
			case <-ctx.Done():
				return NewLatency(o.Address, samples, 0), ctx.Err()
			}
		}
	}
	return NewLatency(o.Address, samples, 0), nil
}
