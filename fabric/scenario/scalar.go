package scenario

// Scalar is a value whose type is defined elsewhere, such as an option of a congestion
// control.
type Scalar string

// UnmarshalText accepts any text.
func (s *Scalar) UnmarshalText(text []byte) error {
	*s = Scalar(text)
	return nil
}

// JSONSchema returns the schema of the value for editors.
func (Scalar) JSONSchema() map[string]any {
	return map[string]any{"type": []string{"string", "number", "boolean"}}
}
