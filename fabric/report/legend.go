package report

import (
	"fmt"
	"html/template"
	"strings"
)

// The page's style sheet gives colours and dash patterns to classes c0 ... and
// d0 ...: those of Okabe and Ito ("Color Universal Design", 2008), which
// people with any kind of colour vision tell apart.
const (
	colors = 7
	dashes = 6
)

// style is the look of what belongs to one run or object.
type style struct {
	color, dash int
	key         string // what a click on the legend hides and shows; "" nothing
}

// styleOf returns the look of number i: the first have a colour and a pattern
// of their own, and no two of the first 42 have both in common.
func styleOf(i int, key string) style {
	return style{color: i % colors, dash: (i + i/colors) % dashes, key: key}
}

func (s style) attr(class string) string {
	a := fmt.Sprintf(`class="%s c%d d%d"`, class, s.color, s.dash)
	if s.key != "" {
		a += ` data-k="` + esc(s.key) + `"`
	}
	return a
}

// entry is a line of a legend.
type entry struct {
	look style
	name string
	fill bool // a bar, not a line
}

// legend draws entries as buttons: a click hides what bears the same key.
func legend(entries []entry) template.HTML {
	var b strings.Builder
	b.WriteString(`<div class="legend">`)
	for _, e := range entries {
		mark := fmt.Sprintf(`<path %s d="M0 7h28"/>`, style{e.look.color, e.look.dash, ""}.attr("l"))
		if e.fill {
			mark = fmt.Sprintf(`<rect %s x="8" y="1" width="12" height="12"/>`, style{e.look.color, e.look.dash, ""}.attr("b"))
		}
		fmt.Fprintf(&b, `<button type="button" data-k="%s"><svg viewBox="0 0 28 14" width="28" height="14">%s</svg>%s</button>`, esc(e.look.key), mark, esc(e.name))
	}
	b.WriteString(`</div>`)
	return template.HTML(b.String())
}
