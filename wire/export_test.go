package wire

import "gswitch/frame"

// ParseGeneral is Parse without the short cut.
func (p *Parser) ParseGeneral(a *frame.Arena, v []frame.Ref) {
	for _, r := range v {
		p.general(a.Meta(r), a.Bytes(r))
	}
}

// ParsePlain reports for how many frames the short cut suffices.
func (p *Parser) ParsePlain(a *frame.Arena, v []frame.Ref) (n int) {
	var last hashed
	for _, r := range v {
		if p.plain(a.Meta(r), a.Bytes(r), &last) {
			n++
		}
	}
	return n
}
