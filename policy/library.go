package policy

import "slices"

// prelude is the library, in the language itself. Section 2.4 of the dissertation
// has fifo, rfifo, srpt, tailDrop, the steps of red, lqf, sqf, maxqf, minqf, crr and
// lqd.
const prelude = `
fifo(a, b) = a.arrival < b.arrival;
rfifo(a, b) = a.arrival > b.arrival;
srpt(a, b) = a.processing < b.processing;
rsrpt(a, b) = a.processing > b.processing;
value(a, b) = a.value > b.value;
rvalue(a, b) = a.value < b.value;
shortest(a, b) = a.size < b.size;
edf(a, b) = a.arrival + a.slack < b.arrival + b.slack;
ranked(a, b) = a.rank < b.rank;

tailDrop(x) = x.currSize > x.size, drop(1);
defCongestion(x) = x.currSize > x.size, drop(1);
none(x) = false, notify;
red(x) = (x.currSize >= 0.95 * x.size, drop(1)).(x.currSize >= 0.90 * x.size, drop(0.9)).(x.currSize >= 0.75 * x.size, drop(0.5));
ecn(x) = x.currSize >= 0.5 * x.size, mark;
backpressure(x) = x.currSize >= 0.8 * x.size, notify;
dt(x) = (x.currSize > alpha * (x.buffer.size - x.buffer.currSize), drop(1)).(x.currSize > x.size, drop(1));
drop_tail(x) = x.currSize > x.size, drop(1);

lqf(q, r) = q.currSize > r.currSize;
sqf(q, r) = q.currSize < r.currSize;
maxqf(q, r) = q.schedState > r.schedState;
minqf(q, r) = q.schedState < r.schedState;
strict(q, r) = q.id < r.id;
hol(q, r) = q.hol.value > r.hol.value;
rr(q, r) = q.schedState < r.schedState;
crr(q, r) = q.schedState < r.schedState;
wrr(q, r) = q.schedState < r.schedState;
drr(q, r) = q.schedState < r.schedState;
lqd(q, r) = q.currSize < r.currSize;
sqd(q, r) = q.currSize > r.currSize;

rr_served(q) = true, modify(schedState := q.schedState + 1);
crr_served(q) = true, modify(schedState := q.schedState + p.processing);
wrr_served(q) = true, modify(schedState := q.schedState + 1000000 / q.weightSched);
drr_served(q) = true, modify(schedState := q.schedState + 1000 * p.size / q.weightSched);
`

// library are the definitions of the prelude.
var library = func() map[string]*def {
	f, err := parse("library", prelude)
	if err != nil {
		panic(err)
	}
	return f.defs
}()

// routines are those that the sample of the Linux prototype imports, by what takes
// their place here.
var routines = map[string]string{
	"my_adm_prio": "fifo", "my_pro_prio": "fifo", "my_congestion_condition": "tailDrop", "my_schd_prio": "rr", "select_admission_queue": "random",
}

// libraryFor returns the names that an attribute may have.
func libraryFor(attr string) (names []string) {
	lists := map[string][]string{
		"admPrio": {"fifo", "rfifo", "srpt", "rsrpt", "value", "rvalue", "shortest", "edf", "ranked"}, "queuePrio": {"lqd", "sqd", "lqf", "sqf"},
		"congestion": {"tailDrop", "red", "dt(alpha)", "none"}, "congAction": {"drop_tail"}, "postAdmAct": {"ecn", "backpressure"},
		"schedPrio": {"rr", "wrr", "drr", "crr", "strict", "hol", "lqf", "sqf", "maxqf", "minqf"}, "queueSelect": {"class", "flow", "random"},
	}
	lists["procPrio"] = lists["admPrio"]
	return slices.Sorted(slices.Values(lists[attr]))
}

// found returns the definition that an attribute names, with its argument put in.
func (c *compiler) found(a *assign) *def {
	name := a.name
	if r := routines[name]; r != "" && c.f.dialect {
		name = r
	}
	d := c.f.defs[name]
	if d == nil {
		d = library[name]
	}
	if d == nil {
		kind := "definition"
		if c.f.dialect {
			kind = "routine; C is not read here, so a routine is one of this program's. No"
		}
		c.fail(a.pos, "there is no %s %q%s", kind, a.name, nearest(a.name, append(libraryFor(a.attr), sortedKeys(c.f.defs)...)))
	}
	if c.f.defs[name] != nil {
		if a.expr != nil {
			c.fail(a.pos, "%q takes no argument", a.name)
		}
		return d
	}
	switch {
	case name == "dt" && a.expr == nil:
		c.fail(a.pos, "dt needs its factor, as in dt(2)")
	case name == "dt":
		return d.given(a.expr)
	case a.expr != nil:
		c.fail(a.pos, "%q takes no argument", a.name)
	}
	return d
}

// given returns a definition of the library with its argument in the place of alpha.
func (d *def) given(arg *expr) *def {
	out := *d
	out.cases = nil
	for _, k := range d.cases {
		out.cases = append(out.cases, &acts{cond: k.cond.given(arg), list: k.list})
	}
	return &out
}

func (e *expr) given(arg *expr) *expr {
	switch {
	case e == nil:
		return nil
	case e.op == "path" && e.path[0] == "alpha":
		return arg
	}
	out := *e
	out.l, out.r = e.l.given(arg), e.r.given(arg)
	return &out
}
