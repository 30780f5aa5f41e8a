package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What the dissertation prints is taken as it stands, but for what it leaves to the
// reader: figures 2.8 to 2.11, 2.13 and section 2.3.2.
func TestFigures(t *testing.T) {
	for name, text := range map[string]string{
		"comparators": `
fifo_(p1, p2) = (p1.arrival < p2.arrival)
rfifo_(p1, p2) = (p1.arrival > p2.arrival)
srpt_(p1, p2) = (p1.processing < p2.processing)
defCongestion_() = currSize >= size, drop(1)
schedPrio(q1, q2) = (q1.getHOL().value > q2.getHOL().value)
q1 = Queue(64KB); q2 = Queue(64KB);
out = Port(100%, q1, q2);
q1.admPrio = rfifo_(); q2.admPrio = rfifo_();
q1.procPrio = fifo_(); q2.procPrio = srpt_();
q1.congestion = defCongestion_(); q2.congestion = defCongestion_();`,
		"congestion": `
congestion() =
  (currSize >= 0.95 * size, drop(1)).
  (currSize >= 0.90 * size, drop(0.9)).
  (currSize >= 0.75 * size, drop(0.5))
q = Queue(100KB);`,
		"shared buffer": `
const B = 512KB;
q1 = Queue(B); q2 = Queue(B); qn = Queue(B);
b = Buffer(B, q1, q2, qn);
b.admPrio = lqd;
out1 = Port(q1); out2 = Port(q2); outn = Port(qn);`,
		"switching fabric": figure213(),
	} {
		if _, err := Compile(name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, err := os.ReadFile("testdata/linux.oq")
	if err != nil {
		t.Fatal(err)
	}
	p := compile(t, string(text))
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0].Error(), ":21:37: a burst can jump over") {
		t.Errorf("the sample of the Linux prototype: %v", p.Warnings)
	}
	e := p.NewEngine(1, 0)
	for range 200 {
		e.Offer(&Packet{Size: 100})
	}
	if s := e.Stats(); s[0].Admitted+s[1].Admitted != 200 || s[0].Admitted < 60 || s[1].Admitted < 60 {
		t.Errorf("200 packets at random, 128 and 1024 places: %+v", s)
	}
}

// What is refused names its place and says what to do.
func TestRefused(t *testing.T) {
	const q = "q = Queue(10KB);\n"
	for text, want := range map[string]string{
		"q = Queue(10KB)": `1:15: a semicolon is missing behind ")"`,
		"x(a, b) = a.vlaue > b.vlaue;" + q + "q.admPrio=x;":                          `1:11: a packet has no field "vlaue"; did you mean value?`,
		"x(a, b) = a.value != b.value;" + q + "q.procPrio = x;":                      "1:19: this puts each of two packets before the other",
		"x(a, b) = f(a) > f(b);":                                                     "1:12: f is called, and expressions call nothing",
		"x(a, b) = a.value <= b.value;\n" + q + "q.procPrio = x;":                    "1:19: this puts a packet before itself (a with value ",
		"x(a, b) = a.value > b.size;\n" + q + "q.procPrio = x;":                      "this puts a packet before itself (a with size 2, value 1500)",
		"x(a, b) = a.value > b.value and a.size > b.size;\n" + q + "q.procPrio = x;": "a equals b and b equals c",
		"x(q) = q.currSize > q.size, modify(size := 3);" + q + "q.postAdmAct = x;":   `1:29: "size" cannot be modified; there are admState, schedState`,
		"x(q) = q.currSize > q.size, drop(1.5);":                                     "1:34: drop wants a probability from 0 to 1",
		"x(q) = q.currSize >= 0, drop(1);" + q + "q.congestion = x;":                 "1:19: this holds for an empty queue, too",
		"x(q) = true, drop(1);" + q + "q.postAdmAct = x;":                            "drops nothing: write the drop into congestion",
		q + q: `2:1: "q" is there already`,
		q + "a = Port(50%, q); b = Port(50%, q);":                                          "2:19: q is given to a and to b; a queue belongs to one port",
		q + "r = Queue(1KB); a = Port(100%, q);":                                           "2:1: r belongs to no port",
		q + "r = Queue(1KB); a = Port(100%, q, q, r);":                                     "q is given to a twice",
		q + "a = Buffer(1KB, q); b = Buffer(1KB, q);":                                      "q is in a and in b",
		q + "a = Buffer(10 pkts, q);":                                                      "a counts packets and q counts bytes",
		q + "q.admPrio = fifi;":                                                            `2:13: there is no definition "fifi"; did you mean fifo?`,
		q + "q.admprio = fifo;":                                                            `a Queue has no attribute "admprio"; did you mean admPrio?`,
		q + "q.procPrio = fifo; q.procPrio = fifo;":                                        "q.procPrio is there already",
		"q1 = Queue(1KB); ...; qn = Queue(1KB);":                                           "1:18: \"...\" stands for what a reader can guess",
		"x(a, b) = a.arrival * a.arrival < b.arrival * b.arrival;" + q + "q.procPrio = x;": "1:21: \"*\" can overflow",
		q + "out = Port(120%, q);":                                                         "at most 100%",
		"out = Port(100%, q);":                                                             `1:18: there is no object "q"`,
		"q -> r;":                                                                          "an egress queue has one level",
		"classify colour = p.tos;" + q:                                                     `a packet's "colour" cannot be classified`,
		"q = Queue(0);":                                                                    "the size of q is a whole number of bytes or pkts, from 1",
		"":                                                                                 "1:1: there is no queue",
		q + "q.congestion = dt(2);":                                                        "the queue is in no buffer",
		"\"open":                                                                           "1:1: a string without its end",
		"é":                                                                                "means nothing here",
		"x(a, b) = a.value and b.value;" + q + "q.admPrio=x;":                              "here must stand a condition",
		"x(a) = a + 1 > 2, drop;" + q + "q.congestion=x;":                                  `"a" is no number; read a field of it`,
		"x(a, b) = a.value > b.value / 0;" + q + "q.admPrio=x;":                            "a division by 0",
		"import \"r.h\"; Queue q = Queue(8); q.admPrio = mine;":                            "C is not read here",
	} {
		_, err := Compile("x.oq", text)
		if err == nil {
			t.Errorf("%q is taken", text)
		} else if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "x.oq:") {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

// What constants cost to work out, by time and by memory, grows with the text and not
// with what they come to.
func TestConstantsOfConstants(t *testing.T) {
	chain := func(first, next string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "const c0 = %s;\n", first)
		for i := range 60 {
			fmt.Fprintf(&b, "const c%d = %s;\n", i+1, strings.ReplaceAll(next, "c", fmt.Sprint("c", i)))
		}
		return b.String() + "q = Queue(c60 * 8);"
	}
	for text, want := range map[string]string{
		chain("1", "c * c"):                           "",
		chain("1 pkts", "c + c - c"):                  "",
		chain("1/3", "c * c"):                         "a denominator of more than 96 bits",
		chain("1", "c / 7"):                           "a denominator of more than 96 bits",
		chain("2", "c * c"):                           "can overflow 64 bits",
		"const a = a; q = Queue(a);":                  "x:1:11: the constant a is made of itself",
		"const a = b; const b = 2 * a; q = Queue(a);": "x:1:11: the constant a is made of itself",
	} {
		_, err := Compile("x", text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// The structure that each form of comparator is kept in.
func TestStructures(t *testing.T) {
	for cmp, want := range map[string]orderKind{
		"a.arrival < b.arrival": byFirst, "b.arrival < a.arrival": byLast, "a.arrival > b.arrival": byLast, "false": byFirst,
		"a.dscp > b.dscp": byLevels, "a.tos > b.tos": byKey, "a.tos % 64 < b.tos % 64": byLevels, "b.size > a.size": byKey,
		"a.class * 8 + a.dscp / 8 > b.class * 8 + b.dscp / 8":                       byKey, // in eighths: more than 64
		"a.value > b.value or a.value == b.value and a.arrival < b.arrival":         byLevels,
		"a.value > b.value or (a.value == b.value and a.size < b.size)":             byKey,
		"a.class > b.class or a.class == b.class and a.ecn < b.ecn":                 byLevels,
		"a.value * b.size > b.value * a.size":                                       byCompare,
		"not (a.value < b.value or a.value == b.value)":                             byCompare,
		"a.rank < b.rank or a.rank == b.rank and a.rank + a.flow < b.rank + b.flow": byCompare,
	} {
		p := compile(t, "x(a, b) = "+cmp+";\nq = Queue(1KB); q.procPrio = x;")
		if got := p.queues[0].proc.kind; got != want {
			t.Errorf("%s is kept in a %v, want %v", cmp, got, want)
		}
	}
}

// Whatever the bytes, there is a program or an error with a place; a program runs.
func FuzzCompile(f *testing.F) {
	text, err := os.ReadFile("testdata/linux.oq")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(text), prelude, "policy x; const B = 2 pkts; q[1..3] = Queue(B); out = Port(100%, q[1..3]); q.admPrio = value;",
		"x(q) = (q.currSize > 0.5 * q.size, drop(0.1).mark).(true, notify); q = Queue(1KB); q.congestion = x;", "q[1..2][1..2] = Queue(1KB); b = Buffer(2KB, q); q.congestion = dt(0.5);"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Compile("f", text)
		if err != nil {
			if e, ok := err.(Errors); !ok || len(e) == 0 || e[0].Line < 1 || e[0].Col < 1 {
				t.Fatalf("%q: an error without a place: %v", text, err)
			}
			return
		}
		e := p.Parts()[len(p.Parts())-1].NewEngine(1, 1e9)
		for i := range 40 {
			e.Offer(&Packet{Size: 1 + uint32(i*97%1500), DSCP: uint8(i * 7 % 64), Class: uint8(i % 8)})
			if i%3 == 0 && e.Len() > 0 {
				e.Take()
			}
		}
		_ = strings.Join(p.Describe(), "\n")
		for e.Len() > 0 {
			e.Take()
		}
	})
}

// figure213 is the buffered crossbar of figure 2.13, with what the figure leaves out.
func figure213() string {
	var b strings.Builder
	b.WriteString("const B = 64KB;\nlqf(q1, q2) = (q1.currSize > q2.currSize);\n")
	queue := func(name string) {
		fmt.Fprintf(&b, "%s = Queue(B); %[1]s.admPrio = fifo; %[1]s.proPrio = fifo; %[1]s.congestion = defCongestion();\n", name)
	}
	for i := 1; i <= 3; i++ {
		for k := 1; k <= 3; k++ {
			queue(fmt.Sprintf("voq%d%d", i, k))
			queue(fmt.Sprintf("cq%d%d", i, k))
			fmt.Fprintf(&b, "cp%d%d = Port(100%%, cq%[1]d%[2]d);\n", i, k)
		}
		fmt.Fprintf(&b, "in%d = Port(100%%, voq%[1]d1, voq%[1]d2, voq%[1]d3); in%[1]d.schedPrio = lqf;\n", i)
		queue(fmt.Sprintf("oq%d", i))
		fmt.Fprintf(&b, "out%d = Port(100%%, oq%[1]d); out%[1]d.schedPrio = lqf;\n", i)
	}
	return b.String()
}

// The figure has a port for each crosspoint, each input and each output.
func TestFigure213(t *testing.T) {
	ports := map[string]int{}
	for _, p := range compile(t, figure213()).Parts() {
		ports[p.port] = len(p.queues)
	}
	if len(ports) != 15 || ports["in2"] != 3 || ports["cp31"] != 1 || ports["out3"] != 1 {
		t.Errorf("queues by port: %v", ports)
	}
}
