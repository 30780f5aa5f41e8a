package config

import (
	"fmt"

	"gswitch/policy"
	"gswitch/section"
	"gswitch/wholefile"
)

// Load reads and checks the document in a file.
func Load(path string) (*Config, error) {
	data, err := wholefile.Read(path, section.MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return ParseBeside(path, data)
}

// Parse decodes and checks a document. file is the name that errors carry.
// The error, if any, is of type section.Errors.
func Parse(file string, data []byte) (*Config, error) { return parse(file, data, nil) }

// ParseBeside is Parse for a document that may name files, which are looked for
// beside it; their text stands in the result.
func ParseBeside(file string, data []byte) (*Config, error) { return parse(file, data, readPolicy) }

// readPolicy reads a plain file that a document names: no device or pipe, which may
// have no end.
func readPolicy(path string) ([]byte, error) { return wholefile.ReadPlain(path, policy.MaxText) }

func parse(file string, data []byte, read func(string) ([]byte, error)) (*Config, error) {
	c := new(Config)
	d := decoder{section.Parse(file, data, c)}
	if d.Written() {
		d.inline(c, file, read)
		d.validate(c)
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Check validates a document that a program made.
func (c *Config) Check() error {
	d := decoder{new(section.Section)}
	d.validate(c)
	return d.Err()
}

// decoder is a decoded document that is checked.
type decoder struct{ *section.Section }

// Schema returns the JSON Schema of the document. It knows what single values
// look like; what values mean together only Parse knows.
func Schema() []byte { return section.Schema("gswitch configuration", new(Config)) }

// YAML writes the document. Keys that are left out stay left out.
func (c *Config) YAML() []byte { return section.YAML(c) }

// MarshalJSON writes the document with the keys and the units of its YAML.
func (c *Config) MarshalJSON() ([]byte, error) { return section.JSON(c) }

// Clone returns a deep copy.
func (c *Config) Clone() *Config { return section.Clone(c) }

// Diff returns what turns old into new. Both are compared with their defaults
// written out.
func Diff(old, new *Config) []section.Change { return section.Diff(old.Resolved(), new.Resolved()) }
