// Package config is the document that a gswitch daemon runs from: its Go
// types, a strict decoder that names file, line, column and key of everything
// it refuses, the reverse (generated files), units, defaults, validation, a
// readable difference between two documents, a JSON Schema made from the same
// types, and the translation to what the switch node and the engine take.
//
//	Load, Parse      bytes to *Config: unknown keys, bad units, duplicates and
//	                 contradictions are refused, all of them at once
//	(*Config).YAML   *Config to bytes; Parse of it gives the same document
//	(*Config).Resolved  a copy in which every default is written out
//	Diff             what changes between two documents, line by line
//	Schema           JSON Schema (draft 2020-12) of the document
//
// A field that is left out has its zero value in the Go types and the value
// of its `default` tag after Resolved. Fields whose zero is a legal value
// with another default are pointers.
//
// The tags of the types are the single source for the decoder, the defaults
// and the schema:
//
//	yaml     the key
//	doc      one sentence for humans, in the schema
//	default  the value of an absent key, written as in the document
//	enum     the legal words, separated by commas
//	range    least and greatest legal number, "0,63"; of sizes and rates in
//	         bytes and bit/s
//	keys     the same for the keys of a map
//	id       on lists: the key that names an element; must be unique
//	need     "yes": the key must be there
package config
