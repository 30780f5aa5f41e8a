package scenario

// Scalar is a value whose type somebody else knows, such as an option of a
// congestion control.
type Scalar string

// UnmarshalText takes any text.
func (s *Scalar) UnmarshalText(text []byte) error {
	*s = Scalar(text)
	return nil
}

// JSONSchema describes it for editors.
func (Scalar) JSONSchema() map[string]any {
	return map[string]any{"type": []string{"string", "number", "boolean"}}
}
