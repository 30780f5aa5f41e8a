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
// The tags of the types, which are the single source for the decoder, the
// defaults and the schema, are those of package section.
package config
