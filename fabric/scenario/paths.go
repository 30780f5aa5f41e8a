package scenario

// paths checks switch.paths.
func (v *validator) paths() {
	c := v.doc.Switch.Paths.Config()
	if err := c.Validate(); err != nil {
		v.sec.Fail("switch.paths", "%v", err)
	}
}
