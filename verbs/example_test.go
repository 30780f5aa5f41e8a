package verbs_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"gswitch/verbs"
)

// A program writes into the memory of another host, and reads it back. The
// other host is a program that listens, or "ghost run --serve".
func Example() {
	ctx := context.Background()
	host, err := verbs.Open(ctx, verbs.Config{Interface: "eth0", NetNS: "h0", Address: netip.MustParsePrefix("10.0.0.1/24")})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close()
	if err := hello(ctx, host, netip.MustParseAddr("10.0.0.2")); err != nil {
		log.Fatal(err)
	}
}

func hello(ctx context.Context, host *verbs.Host, peer netip.Addr) error {
	qp, err := host.Dial(ctx, peer, verbs.QPConfig{})
	if err != nil {
		return err
	}
	defer qp.Close()
	back := make([]byte, 5)
	if err := qp.Write(1, []byte("hello"), qp.Remote(), 4096); err != nil {
		return err
	}
	if err := qp.Read(2, back, qp.Remote(), 4096); err != nil {
		return err
	}
	var done [8]verbs.Completion
	for finished := 0; finished < 2; {
		if err := qp.CQ().Wait(ctx); err != nil {
			return err
		}
		n := qp.Poll(done[:])
		for i := range done[:n] {
			if err := done[i].Err(); err != nil {
				return err
			}
		}
		finished += n
	}
	_, err = fmt.Printf("%s\n", back)
	return err
}
